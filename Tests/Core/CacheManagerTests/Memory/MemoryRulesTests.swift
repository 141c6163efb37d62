import CacheCore
import CacheTesting
import HTTPTypes
import Testing

@testable import CacheManager

/// Tests with a budget of 400 bytes, of which bodies may use 300. Loads start while 37 of them are available, and 16 loads of one
/// host may have sent requests.
@Suite("The rules of a memory budget")
struct MemoryRulesTests {
  private let budget = MemoryBudget(457, steps: 4)

  private func request(_ host: String = "a") -> HTTPRequest {
    HTTPRequest(method: .get, scheme: "https", authority: host, path: "/")
  }

  private func start(_ host: String = "a") -> MemoryReservation? {
    budget.startWithoutWaiting(request(host), LoadPriority(), isNested: false)
  }

  private func body(_ level: LoadPriority.Level = .normal) -> MemoryReservation {
    budget.reservation(holding: 0, LoadPriority(level))
  }

  /// Starts a task whose claim waits for memory.
  private func waiting(_ work: @escaping @Sendable () async throws -> Void) async throws -> Task<Void, any Error> {
    let before = budget.use.waiting
    let task = Task { try await work() }
    try await Polling.until { budget.use.waiting == before + 1 }
    return task
  }

  private func expectNothingLeft() {
    #expect(budget.use.inUse == 0 && budget.use.waiting == 0 && budget.slots == (0, 0))
  }

  @Test("the most bytes that a reservation counts fit sixteen times into the integers of the platform")
  func mostBytes() {
    #expect(MemoryAccounting.mostBytes(of: Int64.self) == 1 << 40)
    #expect(MemoryAccounting.mostBytes(of: Int32.self) == Int32.max / 16)
  }

  @Test("loads start while there is room for a body, and hold nothing until it arrives")
  func starts() async throws {
    let loads = try (0..<100).map { try #require(start("host-\($0)")) }
    #expect(budget.use.inUse == 0)
    loads[0].hold(264)
    #expect(start() == nil)
    let late = try await waiting { [budget, request] in try await budget.start(request("a"), LoadPriority()).release() }

    loads[0].hold(263)
    try await late.value
    #expect(budget.use.peak == 264)
    for load in loads { load.release() }
    expectNothingLeft()
  }

  @Test("loads that wait for a silent server delay only further loads from that server, and streams are still collected")
  func silent() async throws {
    let silent = try (0..<16).map { _ in try #require(start("silent")) }
    #expect(start("silent") == nil)
    let late = Task { [budget, request] in try await budget.start(request("silent"), LoadPriority()) }
    try await Polling.until { budget.slots.waiting == 1 }
    #expect(budget.use.inUse == 0 && budget.use.waiting == 0)

    let other = try #require(start("other"))
    try await other.grow(to: 300, most: 300)
    other.release()
    #expect(budget.streamReservation(holding: 10) != nil)

    // The beginning of a longer body keeps the slot.
    silent[0].begin(holding: 10, of: 20)
    #expect(budget.slots.waiting == 1)
    try await silent[0].grow(to: 20, most: 20)
    try await late.value.release()
    for load in silent { load.release() }
    expectNothingLeft()
  }

  @Test("a load that is cancelled while it waits for a slot or for memory leaves nothing")
  func cancelled() async throws {
    let silent = try (0..<16).map { _ in try #require(start("silent")) }
    let first = Task { [budget, request] in _ = try await budget.start(request("silent"), LoadPriority()) }
    try await Polling.until { budget.slots.waiting == 1 }
    let full = body()
    full.hold(300)
    let second = try await waiting { [budget, request] in _ = try await budget.start(request("other"), LoadPriority()) }
    first.cancel()
    second.cancel()
    for task in [first, second] { await #expect(throws: CacheError.self) { try await task.value } }
    #expect(budget.use.waiting == 0 && budget.slots == (1, 0))
    for load in silent + [full] { load.release() }
    expectNothingLeft()
  }

  @Test("streams take memory at once or not at all, and never so much that loads cannot have bodies")
  func streams() async throws {
    let stream = try #require(budget.streamReservation(holding: 100))
    #expect(budget.streamReservation(holding: 51) == nil)
    #expect(stream.growStream(to: 150) && !stream.growStream(to: 151))
    stream.hold(100)
    // No load has a body, so the first one starts whatever other memory is held.
    let value = budget.counted(0) { _ in 400 }
    let load = try #require(start())
    value.reservation?.release()

    try await load.grow(to: 165, most: 165)
    let late = try await waiting { [budget, request] in try await budget.start(request("a"), LoadPriority()).release() }
    // Memory that becomes available is for the load that waits.
    #expect(!stream.growStream(to: 110) && budget.streamReservation(holding: 1) == nil)
    load.release()
    try await late.value
    #expect(stream.growStream(to: 110))
    stream.release()
    expectNothingLeft()
  }

  @Test("of the bodies that grow beyond the budget, one at a time continues to its end, and the others wait")
  func growth() async throws {
    let (first, second) = (body(), body())
    for body in [first, second] { try await body.grow(to: 150, most: 400) }
    try await first.grow(to: 200, most: 400)
    let late = try await waiting { try await second.grow(to: 200, most: 400) }
    // It does not wait behind the body that waits for its end.
    try await first.grow(to: 300, most: 400)
    #expect(budget.use.inUse == 450 && budget.use.waiting == 1)

    first.release()
    try await late.value
    #expect(budget.use.inUse == 200)
    second.release()
    expectNothingLeft()
  }

  @Test("a body that is within the budget again grows like every other body")
  func backWithin() async throws {
    let (first, second, third) = (body(), body(), body())
    for body in [first, second] { try await body.grow(to: 150, most: 400) }
    try await first.grow(to: 200, most: 400)
    second.release()
    try await third.grow(to: 150, most: 400)
    #expect(budget.use.inUse == 350)

    let late = try await waiting { try await first.grow(to: 250, most: 400) }
    third.release()
    try await late.value
    #expect(budget.use.inUse == 250)
    first.release()
  }

  @Test("a body that is larger than the budget arrives, and other bodies wait for its end")
  func giant() async throws {
    let (small, giant) = (body(), body())
    small.hold(10)
    try await giant.grow(to: 5_000, most: 5_000)
    #expect(budget.use.inUse == 5_010 && start() == nil)
    let late = try await waiting { try await small.grow(to: 11, most: 11) }
    giant.hold(200)
    try await late.value
    #expect(budget.use.inUse == 211)
  }

  @Test("a body that grows is served before loads that start")
  func bodies() async throws {
    let (first, second, third) = (body(), body(), body(.low))
    try await first.grow(to: 300, most: 300)
    try await second.grow(to: 100, most: 100)
    let load = try await waiting { [budget, request] in
      _ = try await budget.start(request("a"), LoadPriority(.veryHigh))
    }
    let growing = try await waiting { try await third.grow(to: 50, most: 50) }
    second.release()
    try await growing.value
    #expect(budget.use.inUse == 350 && budget.use.waiting == 1)
    first.release()
    try await load.value
  }

  @Test("the most urgent body comes first, and every eighth turn is that of the oldest one")
  func turns() async throws {
    let (first, second, order) = (body(), body(), CallLog())
    try await first.grow(to: 300, most: 300)
    try await second.grow(to: 100, most: 100)
    let late = LoadPriority(.veryLow)
    var waiters: [Task<Void, any Error>] = []
    for number in 0..<10 {
      let priority = number == 9 ? late : LoadPriority(number == 0 ? .low : .normal)
      let body = budget.reservation(holding: 0, priority)
      waiters.append(
        try await waiting {
          // Each of them exceeds the budget, so the next one is served when it ends.
          try await body.grow(to: 10, most: 10)
          order.append("\(number)")
          body.release()
        })
    }
    late.raise(to: .high)
    second.release()
    for waiter in waiters { try await waiter.value }
    #expect(order.lines == ["9", "1", "2", "3", "4", "5", "6", "0", "7", "8"])
  }

  @Test("the first piece of work is always granted, and others wait while there is no room")
  func work() async throws {
    let (first, other, gate) = (body(), body(), Gate())
    try await first.grow(to: 300, most: 300)
    let working = Task { [budget] in
      try await budget.work(150, LoadPriority(), weight: { _ in 20 }) { () async throws(CacheError) in await gate.pass() }
    }
    await gate.arrived()
    #expect(budget.use.inUse == 450)
    let late = try await waiting { [budget] in
      let value = try await budget.work(10, LoadPriority(), weight: { _ in 0 }) { () throws(CacheError) in }
      withExtendedLifetime(value) {}
    }
    // Work helps loads to end, so it comes first.
    let growing = try await waiting { try await other.grow(to: 10, most: 10) }
    gate.open()
    let value = try await working.value
    for task in [late, growing] { try await task.value }
    // The value replaces the work that has made it, so both never count together.
    #expect(budget.use.inUse == 330 && budget.use.peak == 450)
    withExtendedLifetime(value) {}
  }

  @Test("work that needs more than the budget runs alone, and costs of values do not overflow")
  func hugeWork() async throws {
    let values = try await [1, Int.max, 1].asyncMap { bytes in
      try await budget.work(bytes, LoadPriority(), weight: { _ in .max }) { () throws(CacheError) in }
    }
    #expect(budget.use.inUse == values.count << 40)
  }

  @Test("a reservation that is released stays empty, also if it waits")
  func released() async throws {
    let (first, second) = (body(), body())
    try await first.grow(to: 400, most: 400)
    let late = try await waiting { try await second.grow(to: 100, most: 100) }
    second.release()
    second.hold(100)
    first.release()
    try await late.value
    expectNothingLeft()
  }

  @Test("loads in any order all end, within the budget except for one body, one value and first bytes", arguments: UInt64(1)...40)
  func anyOrder(seed: UInt64) async throws {
    var random = SplitMix(state: seed)
    var tasks: [Task<Void, any Error>] = []
    var priorities: [LoadPriority] = []
    for number in 0..<60 {
      let size = Int.random(in: 1..<(number % 20 == 0 ? 1_500 : 150), using: &random)
      let work = number % 2 == 0 ? Int.random(in: 0...250, using: &random) : 0
      let fails = Int.random(in: 0..<20, using: &random) == 0
      let host = "\(Int.random(in: 0..<3, using: &random))"
      let priority = LoadPriority(LoadPriority.Level.allCases.randomElement(using: &random) ?? .normal)
      priorities.append(priority)
      tasks.append(
        Task { [request, budget] in
          let load: MemoryReservation
          if let started = budget.startWithoutWaiting(request(host), priority, isNested: false) {
            load = started
          } else {
            load = try await budget.start(request(host), priority)
          }
          await Task.yield()
          load.begin(holding: Int64(size / 4), of: Int64(size))
          for quarter in 2...4 {
            await Task.yield()
            try await load.grow(to: Int64(size * quarter / 4), most: Int64(size))
          }
          if fails { throw CacheError.cancelled }
          load.hold(Int64(size))
          guard work > 0 else { return }
          _ = try await budget.step(priority) { () async throws(CacheError) in
            try await budget.work(work, priority, weight: { _ in 1 }) { () async throws(CacheError) in await Task.yield() }
          }
        })
    }
    for _ in 0..<10 {
      priorities.randomElement(using: &random)?.raise(to: .high)
      tasks.randomElement(using: &random)?.cancel()
      await Task.yield()
    }
    for task in tasks { _ = await task.result }
    #expect(budget.use.peak <= 400 + 1_500 + 250 + 60 + 60 * 37)
    expectNothingLeft()
  }
}

extension Array {
  fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async throws -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
