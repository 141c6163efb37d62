import CacheCore
import Dispatch
import Testing

@Suite("Priorities, queues and options")
struct CallerTests {
  @Test("a priority rises and never falls, and its observers are told of rises alone")
  func priority() {
    let priority = LoadPriority(.low)
    let told = Lock<[LoadPriority.Level]>([])
    priority.onRaise { level in told.withLock { $0.append(level) } }

    for level in [LoadPriority.Level.veryLow, .low, .normal, .low, .normal, .veryHigh, .high] { priority.raise(to: level) }

    #expect(priority.level == .veryHigh)
    #expect(told.withLock { $0 } == [.normal, .veryHigh])
  }

  @Test("an observer may use the priority that tells it")
  func observerCallsBack() {
    let priority = LoadPriority(.low)
    let seen = Lock<LoadPriority.Level?>(nil)
    priority.onRaise { [weak priority] _ in
      let level = priority?.level
      priority?.raise(to: .veryHigh)
      seen.withLock { $0 = $0 ?? level }
    }
    priority.raise(to: .high)
    #expect(priority.level == .veryHigh)
    #expect(seen.withLock { $0 } == .veryHigh)
  }

  @Test("levels are ordered, the most urgent last")
  func levels() {
    #expect(LoadPriority.Level.allCases.sorted() == [.veryLow, .low, .normal, .high, .veryHigh])
  }

  @Test("an untouched callback is called at once, where it stands")
  func untouched() {
    let called = Lock(false)
    CallbackQueue.untouched.execute { called.withLock { $0 = true } }
    #expect(called.withLock { $0 })
  }

  @Test("a given queue gets the callback, later")
  func givenQueue() async {
    let queue = DispatchQueue(label: "callbacks")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let isThere = await withCheckedContinuation { continuation in
      CallbackQueue.dispatch(queue).execute { continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true) }
    }
    #expect(isThere)
  }

  @Test("the main queue gets the callback later, also when it is asked from there")
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

  @Test("the main queue gets the callback at once when it is asked from there, and later from elsewhere")
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

  @Test("what a caller sets goes before what the manager has")
  func overrides() {
    #expect(Override<Int>.inherited.resolved(1) == 1)
    #expect(Override<Int>.inherited.resolved(nil) == nil)
    #expect(Override<Int>.none.resolved(1) == nil)
    #expect(Override<Int>.some(2).resolved(1) == 2)
  }

  @Test("options set nothing, but for what is changed")
  func options() {
    let options = RequestOptions { $0.policy = .reload }
    #expect(options.policy == .reload)
    #expect(options.reads == .all && options.writes == .all)
    #expect(options.key == nil && options.partition == nil && options.timeout == nil)
    #expect(options.priority == .normal)
    #expect(CacheLayers.all == [.memory, .disk])
  }
}
