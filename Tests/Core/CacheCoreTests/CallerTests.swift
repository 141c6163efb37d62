import CacheCore
import Dispatch
import Foundation
import Testing

@Suite("Priorities, queues and options")
struct CallerTests {
  @Test("a priority only rises, and its observers are called only when it does")
  func priority() {
    let priority = LoadPriority(.low)
    let told = Lock<[LoadPriority.Level]>([])
    let observation = priority.onRaise { level in told.withLock { $0.append(level) } }
    defer { observation.cancel() }

    for level in [LoadPriority.Level.veryLow, .low, .normal, .low, .normal, .veryHigh, .high] { priority.raise(to: level) }

    #expect(priority.level == .veryHigh)
    #expect(told.withLock { $0 } == [.normal, .veryHigh])
  }

  @Test("an observer may use the priority that calls it")
  func observerCallsBack() {
    let priority = LoadPriority(.low)
    let seen = Lock<LoadPriority.Level?>(nil)
    let observation = priority.onRaise { [weak priority] _ in
      let level = priority?.level
      priority?.raise(to: .veryHigh)
      seen.withLock { $0 = $0 ?? level }
    }
    defer { observation.cancel() }
    priority.raise(to: .high)
    #expect(priority.level == .veryHigh)
    #expect(seen.withLock { $0 } == .veryHigh)
  }

  @Test("observers are called in the order of registration, unless their observation has ended")
  func observationsEnd() {
    let priority = LoadPriority(.veryLow)
    let told = Lock<[Int]>([])
    var observations = (0..<6).map { number in priority.onRaise { _ in told.withLock { $0.append(number) } } }
    #expect(priority.observers == 6)

    observations[1].cancel()
    observations[1].cancel()
    observations.remove(at: 4)
    priority.raise(to: .low)
    #expect(told.withLock { $0 } == [0, 2, 3, 5])

    observations = []
    priority.raise(to: .high)
    #expect(told.withLock { $0 } == [0, 2, 3, 5] && priority.observers == 0)
  }

  /// An object that uses a priority while it is deallocated.
  private final class Captured: Sendable {
    let priority: LoadPriority

    init(_ priority: LoadPriority) { self.priority = priority }

    deinit { priority.raise(to: .veryHigh) }
  }

  @Test("cancelling an observation releases its observer without holding a lock")
  func observerIsReleased() {
    let priority = LoadPriority(.low)
    var captured: Captured? = Captured(priority)
    weak let released = captured
    let observation = priority.onRaise { [captured] _ in _ = captured }
    captured = nil
    #expect(released != nil)

    observation.cancel()
    #expect(released == nil && priority.level == .veryHigh)
  }

  @Test("observers may end observations, including their own, during a raise")
  func observersEndObservations() {
    let priority = LoadPriority(.low)
    let kept = Lock<[LoadPriority.Observation]>([])
    let calls = Lock(0)
    for _ in 0..<2 {
      let observation = priority.onRaise { _ in
        calls.withLock { $0 += 1 }
        for observation in kept.withLock({ $0 }) { observation.cancel() }
      }
      kept.withLock { $0.append(observation) }
    }
    priority.raise(to: .normal)
    priority.raise(to: .high)
    // The second observer may be called by the raise that ends it, but not by a later one.
    #expect((1...2).contains(calls.withLock { $0 }) && priority.observers == 0)
  }

  @Test("levels are ordered by urgency")
  func levels() {
    #expect(LoadPriority.Level.allCases.sorted() == [.veryLow, .low, .normal, .high, .veryHigh])
  }

  @Test("an immediate callback runs on the calling thread")
  func untouched() {
    let called = Lock(false)
    CallbackQueue.immediate.execute { called.withLock { $0 = true } }
    #expect(called.withLock { $0 })
  }

  @Test("a callback on a given queue runs asynchronously")
  func givenQueue() async {
    let queue = DispatchQueue(label: "callbacks")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let isThere = await withCheckedContinuation { continuation in
      CallbackQueue.dispatch(queue).execute { continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true) }
    }
    #expect(isThere)
  }

  @Test("a callback on the main queue runs asynchronously, even if it is requested on that queue")
  @MainActor func mainAsync() async {
    let order = Lock<[String]>([])
    await withCheckedContinuation { continuation in
      CallbackQueue.mainAsync.execute {
        order.withLock { $0.append("callback") }
        continuation.resume()
      }
      order.withLock { $0.append("caller") }
    }
    #expect(order.withLock { $0 } == ["caller", "callback"])
  }

  @Test("a callback runs immediately on the main queue, and asynchronously from other threads")
  func mainCurrentOrAsync() async {
    let isImmediate = await MainActor.run {
      let called = Lock(false)
      CallbackQueue.mainCurrentOrAsync.execute { called.withLock { $0 = true } }
      return called.withLock { $0 }
    }
    #expect(isImmediate)

    let queue = DispatchQueue(label: "elsewhere")
    let isMain = await withCheckedContinuation { continuation in
      queue.async {
        CallbackQueue.mainCurrentOrAsync.execute {
          dispatchPrecondition(condition: .onQueue(.main))
          continuation.resume(returning: true)
        }
      }
    }
    #expect(isMain)
  }

  @Test("option sets print the names of their members, and accepted statuses print as ranges")
  func descriptions() {
    #expect("\(CacheLayers.all)" == "[memory, disk]" && "\(CacheLayers.disk)" == "[disk]" && "\(CacheLayers())" == "[]")
    #expect("\(NetworkAccess.all)" == "[cellular, expensive, constrained]")
    #expect("\(AddressPolicy.Kinds.all)" == "[loopback, privateUse, linkLocal, metadata, multicast, reserved]")
    #expect("\(AcceptedStatuses(200..<300, 304..<305))" == "200..<300, 304..<305")
    #expect("\(LoadPolicy.cacheFirst)" == "cacheFirst" && "\(ResourceSource.network)" == "network")
  }

  @Test("an override takes precedence over the manager's component")
  func overrides() {
    func resolved(_ override: Override<Int>?, _ inherited: Int?) -> Int? { override.resolved(inherited) }
    #expect(resolved(nil, 1) == 1 && resolved(nil, nil) == nil)
    #expect(resolved(.disabled, 1) == nil)
    #expect(resolved(.use(2), 1) == 2 && resolved(.use(2), nil) == 2)
    #expect(resolved(.adapted { $0 + 1 }, 1) == 2 && resolved(.adapted { $0 + 1 }, nil) == nil)
  }

  @Test("options set only what is changed")
  func options() {
    let options = RequestOptions { $0.policy = .reload }
    #expect(options.policy == .reload)
    #expect(options.reads == .all && options.writes == .all)
    #expect(options.key == nil && options.partition == nil && options.timeout == nil)
    #expect(options.priority == .normal)
    #expect(CacheLayers.all == [.memory, .disk])
  }

  @Test("options without a setting are one word and have no storage")
  func emptyOptions() {
    #expect(MemoryLayout<RequestOptions>.size == MemoryLayout<AnyObject?>.size)
    #expect(RequestOptions().storage == nil)
    #expect(RequestOptions { _ in }.storage == nil)
    #expect(RequestOptions { $0.reads = .memory }.storage != nil)
  }

  @Test("a change of a copy leaves the original options unchanged")
  func copiedOptions() throws {
    let mirror = try #require(URL(string: "https://mirror.example/a"))
    let original = RequestOptions {
      $0.policy = .reload
      $0.alternatives = [.mirror(mirror)]
    }
    var copy = original
    copy.policy = .cacheOnly
    copy.alternatives.append(.lowData(mirror))
    copy.reads.remove(.disk)
    #expect(original.policy == .reload && copy.policy == .cacheOnly)
    #expect(original.alternatives == [.mirror(mirror)] && copy.alternatives == [.mirror(mirror), .lowData(mirror)])
    #expect(original.reads == .all && copy.reads == .memory)
  }

  @Test("options that no copy shares are changed in place")
  func uniqueOptions() {
    var options = RequestOptions { $0.policy = .reload }
    let storage = options.storage.map { ObjectIdentifier($0) }
    options.priority = .high
    options.key = "k"
    #expect(options.storage.map { ObjectIdentifier($0) } == storage)
    let copy = options
    options.key = "other"
    #expect(options.storage.map { ObjectIdentifier($0) } != storage)
    #expect(copy.key == "k" && copy.priority == .high && copy.policy == .reload)
  }
}
