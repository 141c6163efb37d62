import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

/// Tests with a memory budget of 400,000 bytes, of which bodies may use 300,000.
@Suite("A memory budget")
struct MemoryBudgetTests {
  private let fixture: ManagerFixture
  private var manager: ResourceManager { fixture.manager }
  private var network: ScriptedDownloader { fixture.network }

  init() throws {
    fixture = try ManagerFixture {
      $0.memoryBudget = 400_000
      $0.executor = Self.place
    }
  }

  /// An executor apart from the cooperative pool, because decoders that are held block a thread.
  private static var place: ProcessingExecutor {
    ProcessingExecutor(queue: DispatchQueue(label: "held", attributes: .concurrent))
  }

  private func serve(_ path: String, bytes: Int, _ change: (ScriptedResponse) -> ScriptedResponse = { $0 }) throws -> URL {
    let url = try fixture.url(path)
    network.respond(to: url, with: change(.ok(Data(count: bytes))))
    return url
  }

  private func load(_ url: URL, _ level: LoadPriority.Level = .normal) -> Task<Int, any Error> {
    Task { [manager] in try await manager.load(url, options: RequestOptions { $0.priority = level }).data.count }
  }

  private func expectNothingLeft() async throws {
    try await Turns.until { manager.memoryUse.inUse == 0 && manager.memoryUse.waiting == 0 }
  }

  /// Makes the manager expect small bodies.
  private func teach() async throws {
    for number in 0..<30 { _ = try await load(serve("/small/\(number)", bytes: 1_000)).value }
  }

  @Test("many simultaneous loads stay within the budget, and all of them end", arguments: [true, false])
  func bounded(statesLength: Bool) async throws {
    try await teach()
    let gate = Gate()
    let urls = try (0..<200).map { number in
      try serve("/\(number)", bytes: 50_000) {
        let response = $0.chunked(by: 7_000).bodyHeld(by: gate)
        return statesLength ? response : response.withoutLength()
      }
    }
    let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
      for url in urls { group.addTask { try await load(url).value } }
      try await Turns.until { manager.memoryUse.inUse >= 150_000 }
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(sizes == [Int](repeating: 50_000, count: 200))
    #expect(manager.memoryUse.peak <= 300_000)
    try await expectNothingLeft()
  }

  @Test("a load over budget sends no request until a body has been delivered, and the highest priority is next")
  func admission() async throws {
    let gate = Gate()
    let first = load(try serve("/first", bytes: 250_000) { $0.bodyHeld(by: gate) })
    await gate.arrived()
    let low = load(try serve("/low", bytes: 250_000), .low)
    try await Turns.until { manager.memoryUse.waiting == 1 }
    let high = load(try serve("/high", bytes: 250_000), .high)
    try await Turns.until { manager.memoryUse.waiting == 2 }
    #expect(network.requests.map(\.path) == ["/first"])
    #expect(manager.memoryUse.inUse == 250_000)

    gate.open()
    _ = try await (first.value, low.value, high.value)

    #expect(network.requests.map(\.path) == ["/first", "/high", "/low"])
    #expect(manager.memoryUse.peak == 250_000)
    try await expectNothingLeft()
  }

  @Test("a waiting load that becomes urgent overtakes earlier loads")
  func raised() async throws {
    let gate = Gate()
    let first = load(try serve("/first", bytes: 250_000) { $0.bodyHeld(by: gate) })
    await gate.arrived()
    let other = load(try serve("/other", bytes: 250_000), .normal)
    try await Turns.until { manager.memoryUse.waiting == 1 }
    let url = try serve("/raised", bytes: 250_000)
    let low = load(url, .low)
    try await Turns.until { manager.memoryUse.waiting == 2 }
    let high = load(url, .high)
    try await Turns.until { fixture.observer.joins == 1 }

    gate.open()
    _ = try await (first.value, other.value, low.value, high.value)

    #expect(network.requests.map(\.path) == ["/first", "/raised", "/other"])
  }

  @Test("a load that is cancelled while it waits sends no request and blocks no other load")
  func cancelled() async throws {
    let gate = Gate()
    let first = load(try serve("/first", bytes: 200_000) { $0.bodyHeld(by: gate) })
    await gate.arrived()
    let cancelled = load(try serve("/cancelled", bytes: 250_000))
    try await Turns.until { manager.memoryUse.waiting == 1 }
    let next = load(try serve("/next", bytes: 250_000))
    try await Turns.until { manager.memoryUse.waiting == 2 }
    cancelled.cancel()
    await #expect(throws: CacheError.self) { try await cancelled.value }
    #expect(manager.memoryUse.waiting == 1)

    first.cancel()
    await #expect(throws: CacheError.self) { try await first.value }
    #expect(try await next.value == 250_000)
    #expect(network.requests.map(\.path) == ["/first", "/next"])
    try await expectNothingLeft()
  }

  @Test("a failed load returns its memory", arguments: [0, 1, 2, 3])
  func failures(kind: Int) async throws {
    for number in 0..<5 {
      let url = try serve("/\(number)", bytes: 250_000) { response in
        switch kind {
        case 0: .failure(.connectionLost)
        case 1: response.cut(after: 100_000)
        case 2: .response(.notFound, body: Data(count: 250_000))
        default: response.withoutLength().cut(after: 220_000)
        }
      }
      await #expect(throws: CacheError.self) { try await load(url).value }
    }
    #expect(try await load(serve("/last", bytes: 300_000)).value == 300_000)
    try await expectNothingLeft()
  }

  @Test("bodies that are reserved in parts stay within the budget, except for one")
  func large() async throws {
    try await teach()
    let gate = Gate()
    let loads = try (0..<60).map { load(try serve("/\($0)", bytes: 150_000) { $0.chunked(by: 7_000).bodyHeld(by: gate) }) }
    await gate.arrived(3)
    gate.open()
    for load in loads { #expect(try await load.value == 150_000) }
    #expect(manager.memoryUse.peak <= 300_000 + 150_000)
    try await expectNothingLeft()
  }

  @Test("a server that announces much and sends nothing blocks neither later loads nor disk reads")
  func slow() async throws {
    let stored = try serve("/stored", bytes: 250_000) { _ in .ok(Data(count: 250_000), cacheControl: "max-age=60") }
    _ = try await load(stored).value
    try await teach()
    fixture.restart()
    let gate = Gate()
    var slow: [Task<Int, any Error>] = []
    for bytes in [1_000_000, 250_000] {
      slow.append(load(try serve("/\(bytes)", bytes: bytes) { $0.bodyHeld(by: gate) }))
      try await Turns.until { gate.arrivals == slow.count }
    }
    #expect(manager.memoryUse.inUse <= 2 * 75_000)

    let done = Counter()
    let quick = try ((0..<20).map { try serve("/quick/\($0)", bytes: 10_000) } + [stored]).map { url in
      let load = load(url)
      return Task {
        defer { done.increment() }
        return try await load.value
      }
    }
    try await Turns.until { done.value == quick.count }
    for load in quick { _ = try await load.value }
    #expect(gate.held == 2)

    gate.open()
    #expect(try await [slow[0].value, slow[1].value] == [1_000_000, 250_000])
    try await expectNothingLeft()
  }

  @Test("joined loads of any form use one reservation")
  func joined() async throws {
    let gate = Gate()
    let url = try serve("/first", bytes: 250_000) { $0.bodyHeld(by: gate) }
    let text = ResourceTransform<String>(id: "text", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
      "\(try await body.collect().count)"
    }
    let loads = (0..<5).map { _ in load(url) }
    let texts = (0..<5).map { _ in Task { try await fixture.load(text, at: url).value } }
    await gate.arrived()
    try await Turns.until { fixture.observer.joins == 9 }
    #expect(manager.memoryUse.inUse == 250_000 && manager.memoryUse.waiting == 0)
    gate.open()
    for load in loads { #expect(try await load.value == 250_000) }
    for text in texts { #expect(try await text.value == "250000") }
    try await expectNothingLeft()
  }

  @Test("loads into files reserve little memory for any body")
  func files() async throws {
    let fixture = try ManagerFixture { $0.memoryBudget = 4 << 20 }
    let folder = try DownloadFolder()
    let gate = Gate()
    let loads = try (0..<10).map { number in
      let url = try fixture.url("/\(number)")
      fixture.network.respond(to: url, with: .ok(filePattern(700_000)).bodyHeld(by: gate))
      return Task { try await fixture.manager.load(url, to: folder.file("\(number)")) }
    }
    await gate.arrived(10)
    #expect(fixture.manager.memoryUse.inUse == 10 * (256 << 10))
    gate.open()
    for load in loads { _ = try await load.value }
    try await Turns.until { fixture.manager.memoryUse.inUse == 0 }
  }

  @Test("bodies from the disk count while they are read, and until the value is made")
  func disk() async throws {
    let url = try serve("/first", bytes: 250_000) { _ in .ok(Data(count: 250_000), cacheControl: "max-age=60") }
    _ = try await load(url).value
    fixture.restart()
    let gate = Gate()
    let held = HeldDecoder(gate: gate, memory: 0)
    let value = Task { try await fixture.load(ResourceTransform(decoder: held), at: url).value }
    await gate.arrived()
    #expect(manager.memoryUse.inUse == 250_000)
    gate.open()
    #expect(try await value.value == 250_000)
    try await expectNothingLeft()
  }

  @Test("making a value reserves the decoder's working memory, and one value is always made")
  func work() async throws {
    let fixture = try ManagerFixture {
      $0.memoryBudget = 400_000
      $0.maximumConcurrentTransforms = 4
      $0.executor = Self.place
    }
    let gate = Gate()
    let transform = ResourceTransform(decoder: HeldDecoder(gate: gate, memory: 250_000))
    let values = try (0..<3).map { number in
      let url = try fixture.url("/\(number)")
      fixture.network.respond(to: url, with: .ok(Data(count: 1_000)))
      return Task { try await fixture.load(transform, at: url).value }
    }
    await gate.arrived()
    try await Turns.until { fixture.manager.memoryUse.waiting >= 1 }
    #expect(gate.arrivals == 1)
    gate.open()
    for value in values { #expect(try await value.value == 1_000) }
    #expect(fixture.manager.memoryUse.peak <= 253_000)
    try await Turns.until { fixture.manager.memoryUse.inUse == 0 }
  }

  @Test("a nested load of a downloader does not wait while all places are taken")
  func nested() async throws {
    let token = try fixture.url("/token")
    let manager = Lock<ResourceManager?>(nil)
    let network = ClosureDownloader { seen throws(CacheError) in
      guard seen.head.path != "/token", let manager = manager.withLock({ $0 }) else { return .streaming(["secret"]) }
      return .streaming([try await manager.load(token, options: .policy(.reload)).text])
    }
    let nesting = try ManagerFixture {
      $0.downloader = network
      $0.memoryBudget = 4
    }
    manager.withLock { $0 = nesting.manager }
    defer { manager.withLock { $0 = nil } }
    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for number in 0..<10 { group.addTask { try await nesting.manager.load(nesting.url("/\(number)")).text } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(values == [String](repeating: "secret", count: 10))
  }

  @Test("a transform that loads something through the same manager blocks no load")
  func nestedTransform() async throws {
    let manager = manager
    let other = try serve("/other", bytes: 300_000)
    let transform = ResourceTransform<Int>(id: "two", cost: { _ in 8 }) { body, _ throws(CacheError) in
      try await body.collect().count + manager.load(other).data.count
    }
    let url = try serve("/one", bytes: 300_000)
    #expect(try await fixture.load(transform, at: url).value == 600_000)
    try await expectNothingLeft()
  }
}

/// A decoder that returns the number of bytes once its gate is open.
private struct HeldDecoder: ResourceDecoder {
  let gate: Gate
  let memory: Int
  var id: ComponentID { ComponentID(Self.self, parameters: "\(memory)") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Int {
    gate.hold()
    return data.count
  }

  func cost(of value: Int) -> Int { 8 }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { memory }
}

extension Gate {
  /// Arrives and blocks the thread until the gate opens.
  func hold() {
    let passage = DispatchSemaphore(value: 0)
    _ = arrive { passage.signal() }
    passage.wait()
  }
}
