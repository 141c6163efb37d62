import CacheCore
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import CacheManager

@Suite("Shared steps of transforms")
struct SharedWorkTests {
  private let shop = TextTransformFixture()

  /// A transform whose first step waits at a gate, and is counted.
  private func slow(_ gate: Gate, _ made: Counter) -> ResourceTransform<String> {
    ResourceTransform<String>(id: "slow", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
      made.increment()
      await gate.pass()
      return String(decoding: try await body.collect(), as: UTF8.self)
    }
  }

  @Test("simultaneous transforms with the same first steps share one transfer and run each common step once")
  func commonSteps() async throws {
    let fixture = try ManagerFixture()
    let response = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60").held(by: response))
    let (gate, decoded, changed) = (Gate(), Counter(), Counter())
    let common = slow(gate, decoded).map("upper") { text in
      changed.increment()
      return text.uppercased()
    }
    let transforms = (1...4).map { count in common.map("first \(count)") { String($0.prefix(count)) } }

    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for transform in transforms { group.addTask { try await fixture.load(transform).value } }
      await response.arrived()
      try await Polling.until { fixture.observer.joins == 3 }
      response.open()
      await gate.arrived()
      try await Polling.until { fixture.observer.joins == 6 }
      gate.open()
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }

    #expect(values == ["A", "AB", "ABC", "ABCD"])
    #expect(decoded.value == 1 && changed.value == 1 && fixture.network.requests.count == 1)
    #expect(fixture.memory.keys().allSatisfy { !["slow", "slow|upper"].contains($0.transform) })
  }

  @Test("a transform continues from another one in memory that has its first steps")
  func fromMemory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.whole)

    #expect(try await fixture.load(shop.plain()).value == "AB")

    #expect(shop.decoded.value == 1)
  }

  @Test("transforms with different decoders share only the transfer")
  func otherDecoder() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    let made = Counter()
    let other = slow(Gate(isOpen: true), made).map("first 2") { String($0.prefix(2)).uppercased() }

    #expect([try await fixture.load(shop.plain()).value, try await fixture.load(other).value] == ["AB", "AB"])

    #expect(shop.decoded.value == 1 && made.value == 1 && fixture.network.requests.count == 1)
  }

  @Test("if the caller that runs a common step is cancelled, the step continues for the others")
  func cancelled() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    let (gate, made) = (Gate(), Counter())
    let (first, second) = (
      slow(gate, made).map("1") { String($0.prefix(1)) }, slow(gate, made).map("2") { String($0.prefix(2)) }
    )
    let leader = Task { try await fixture.load(first) }
    await gate.arrived()
    let follower = Task { try await fixture.load(second) }
    try await Polling.until { fixture.observer.joins == 1 }

    leader.cancel()
    #expect(await leader.result.isCancellation)
    gate.open()

    #expect(try await follower.value.value == "ab" && made.value == 1)
  }

  @Test(
    "bytes and a transform with a stored variant share one transfer, and the original is stored too",
    arguments: [true, false])
  func oneTransfer(_ formIsFirst: Bool) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60").bodyHeld(by: gate))
    let transform: @Sendable () async throws -> String = { [shop] in
      try await fixture.load(shop.short(), .keeping(.variants)).value
    }
    let bytes: @Sendable () async throws -> String = { try await fixture.manager.load(fixture.url).text }

    let first = Task { try await formIsFirst ? transform() : bytes() }
    await gate.arrived()
    let second = Task { try await formIsFirst ? bytes() : transform() }
    try await Polling.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(Set([try await first.value, try await second.value]) == ["AB", "abcdefgh"])
    #expect(fixture.network.requests.count == 1 && fixture.stored() == ["", shop.short().id])
  }

  @Test("a load of bytes joins a revalidation for a variant and gets the bytes")
  func bytesBehindVariant() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"),
      .notModified(cacheControl: "max-age=60").held(by: gate), .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"))
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    fixture.clock.advance(by: .seconds(100))

    let variant = Task { try await fixture.load(shop.short(), .keeping(.variants)) }
    await gate.arrived()
    let bytes = Task { try await fixture.manager.load(fixture.url) }
    try await Polling.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(try await bytes.value.text == "abcdefgh")
    #expect(try await variant.value.value == "AB")
    try fixture.network.verify()
  }

  @Test("a load of bytes joins a read of a variant and requests the bytes afterwards")
  func bytesTooLate() async throws {
    let clock = ManualClock()
    let held = HeldStore(clock: clock)
    let fixture = try ManagerFixture {
      $0.store = held
      $0.clock = clock
    }
    fixture.network.serve(fixture.url) { _ in .ok("abcdefgh", cacheControl: "max-age=60") }
    _ = try await fixture.load(shop.short(), .keeping(.variants))
    fixture.restart()
    let gate = held.hold(.open)

    let variant = Task { try await fixture.load(shop.short(), .keeping(.variants)) }
    await gate.arrived()
    let bytes = Task { try await fixture.manager.load(fixture.url) }
    try await Polling.until { fixture.observer.joins == 1 }
    gate.open()

    #expect(try await variant.value.origins == "disk disk")
    #expect(try await bytes.value.text == "abcdefgh" && fixture.network.requests.count == 2)
  }

  @Test("loads with different storage policies share the bytes and the steps, and each policy is applied")
  func policies() async throws {
    let (fixture, response) = (try ManagerFixture(), Gate())
    let (gate, made) = (Gate(), Counter())
    let transform = slow(gate, made).map("first 2") { String($0.prefix(2)).uppercased() }
      .stored(as: "utf8") {
        Data($0.utf8)
      } decode: {
        String(decoding: $0, as: UTF8.self)
      }
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60").bodyHeld(by: response))
    let variants = Task { try await fixture.load(transform, .keeping(.variants)).value }
    await response.arrived()
    let originals = Task { try await fixture.load(transform, .keeping(.originals)).value }
    try await Polling.until { fixture.observer.joins == 1 }
    response.open()
    await gate.arrived()
    try await Polling.until { fixture.observer.joins == 2 }
    gate.open()

    #expect(try await [variants.value, originals.value] == ["AB", "AB"])
    #expect(fixture.stored() == ["", transform.id])
    #expect(fixture.network.requests.count == 1 && made.value == 1)
  }

  @Test("the number of values that are made at once stays within the manager's limit", arguments: [1, 2])
  func limit(_ limit: Int) async throws {
    let fixture = try ManagerFixture { $0.maximumConcurrentTransforms = limit }
    let working = Lock((now: 0, most: 0))
    let transform = shop.whole.map("watched") { text in
      working.withLock { working in
        working.now += 1
        working.most = max(working.most, working.now)
      }
      for _ in 0..<1_000 { sched_yield() }
      working.withLock { $0.now -= 1 }
      return text
    }
    let executor = ProcessingExecutor(queue: DispatchQueue(label: "making", attributes: .concurrent))

    try await withThrowingTaskGroup(of: String.self) { group in
      for index in 0..<40 {
        let url = try fixture.url("/\(index)")
        fixture.network.respond(to: url, with: .ok("abcdefgh"))
        group.addTask { try await fixture.load(transform, RequestOptions { $0.executor = executor }, at: url).value }
      }
      for try await value in group { #expect(value == "abcdefgh") }
    }

    #expect(working.withLock { $0.most } <= limit)
  }

  @Test("a slot is given to the highest priority, and then to the oldest waiter")
  func places() async throws {
    let budget = MemoryBudget(1_000)
    let (gate, order) = (Gate(), CallLog())
    let levels: [LoadPriority.Level] = [.low, .normal, .veryHigh, .normal]
    let priorities = levels.map { LoadPriority($0) }
    let holder = Task { try? await budget.step(LoadPriority(.veryLow)) { () throws(CacheError) in await gate.pass() } }
    await gate.arrived()
    var waiting: [Task<Void, Never>] = []
    for (index, priority) in priorities.enumerated() {
      waiting.append(Task { try? await budget.step(priority) { () throws(CacheError) in order.append("\(index)") } })
      try await Polling.until { budget.slots.waiting == index + 1 }
    }
    // Its priority is raised while it waits.
    priorities[3].raise(to: .high)

    gate.open()
    for task in waiting + [holder].map({ holder in Task { _ = await holder.value } }) { await task.value }

    #expect(order.lines == ["2", "3", "1", "0"])
  }

  @Test("a load whose task is retained leaves no priority observer after its end")
  func observersEnd() async throws {
    let (fixture, response) = (try ManagerFixture(), Gate())
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60").bodyHeld(by: response))
    let ends = Counter()
    let tasks = (0..<20).map { index in
      fixture.manager.load(ResourceRequest(fixture.url), as: index % 2 == 0 ? shop.whole : shop.whole.map("last") { $0 }) { _ in
        ends.increment()
      }
    }
    await response.arrived()
    #expect(tasks.allSatisfy { $0.priority.observers == 1 })
    tasks[1].cancel()
    try await Polling.until { ends.value == 1 }
    #expect(tasks[1].priority.observers == 0)

    response.open()
    try await Polling.until { ends.value == 20 && tasks.allSatisfy { $0.priority.observers == 0 } }
  }

  @Test("waiters that share a priority are raised together, and leave no observer")
  func slotsAreRaised() async throws {
    let (budget, shared) = (MemoryBudget(1_000), LoadPriority(.low))
    let (gate, order) = (Gate(), CallLog())
    let holder = Task { try? await budget.step(LoadPriority()) { () throws(CacheError) in await gate.pass() } }
    await gate.arrived()
    var waiting: [Task<Void, Never>] = []
    for index in 0..<60 {
      let priority = index % 3 == 0 ? LoadPriority(.normal) : shared
      waiting.append(Task { try? await budget.step(priority) { () throws(CacheError) in order.append("\(index)") } })
      try await Polling.until { budget.slots.waiting == index + 1 }
    }
    #expect(shared.observers == 40)
    let cancelled = (0..<60).filter { $0 % 3 == 1 }
    for index in cancelled { waiting[index].cancel() }
    try await Polling.until { budget.slots.waiting == 40 && shared.observers == 20 }
    shared.raise(to: .high)

    gate.open()
    _ = await holder.value
    for task in waiting { await task.value }

    let (raised, others) = ((0..<60).filter { $0 % 3 == 2 }, (0..<60).filter { $0 % 3 == 0 })
    #expect(order.lines == (raised + others).map(String.init))
    #expect(shared.observers == 0 && budget.slots.waiting == 0)
  }

  @Test("within one priority, work that continues a value runs before work that begins one")
  func goingOn() async throws {
    let budget = MemoryBudget(1_000)
    let (gate, order) = (Gate(), CallLog())
    let holder = Task { try? await budget.step(LoadPriority()) { () throws(CacheError) in await gate.pass() } }
    await gate.arrived()
    var waiting: [Task<Void, Never>] = []
    let lines: [(LoadPriority.Level, Bool)] = [(.normal, false), (.low, true), (.normal, true), (.high, false), (.normal, true)]
    for (index, (level, isContinuing)) in lines.enumerated() {
      waiting.append(
        Task {
          try? await budget.step(LoadPriority(level), isContinuing: isContinuing) { () throws(CacheError) in
            order.append("\(index)")
          }
        })
      try await Polling.until { budget.slots.waiting == index + 1 }
    }

    gate.open()
    _ = await holder.value
    for task in waiting { await task.value }

    #expect(order.lines == ["3", "2", "4", "0", "1"])
  }

  @Test("a waiter that is cancelled leaves the queue, and uses no slot")
  func placesCancelled() async throws {
    let budget = MemoryBudget(1_000)
    let (gate, order) = (Gate(), CallLog())
    let holder = Task { try? await budget.step(LoadPriority()) { () throws(CacheError) in await gate.pass() } }
    await gate.arrived()
    let cancelled = Task { () -> Bool in
      do throws(CacheError) {
        try await budget.step(LoadPriority()) { () throws(CacheError) in order.append("cancelled") }
        return false
      } catch {
        return error.isCancellation
      }
    }
    try await Polling.until { budget.slots.waiting == 1 }
    cancelled.cancel()
    #expect(await cancelled.value)

    gate.open()
    _ = await holder.value
    try await budget.step(LoadPriority()) { () throws(CacheError) in order.append("next") }

    #expect(order.lines == ["next"] && budget.slots.waiting == 0)
  }
}
