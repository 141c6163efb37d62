import CacheCore
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

/// Tests with a memory budget of 400,000 bytes, of which bodies may use 262,500. Loads start while 32,812 bytes are available,
/// and a body reserves up to as many with its first byte.
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

  private func serve(
    _ path: String, bytes: Int, of host: String = "example.com", _ change: (ScriptedResponse) -> ScriptedResponse = { $0 }
  ) throws -> URL {
    let url = try #require(URL(string: "https://\(host)\(path)"))
    network.respond(to: url, with: change(.ok(Data(count: bytes))))
    return url
  }

  private func load(_ url: URL, _ level: LoadPriority.Level = .normal) -> Task<Int, any Error> {
    Task { [manager] in try await manager.load(url, options: RequestOptions { $0.priority = level }).data.count }
  }

  private func expectNothingLeft() async throws {
    try await Polling.until { manager.memoryUse.inUse == 0 && manager.memoryUse.waiting == 0 }
  }

  /// Starts a load that receives 240,000 bytes and then waits at the gate, so that no other load can start.
  private func fill(_ gate: Gate) async throws -> Task<Int, any Error> {
    let load = load(try serve("/first", bytes: 250_000) { $0.chunked(by: 240_000).bodyHeld(by: gate) })
    gate.letThrough()
    try await Polling.until { manager.memoryUse.inUse == 240_000 }
    return load
  }

  @Test("many simultaneous loads stay within the budget, and all of them end", arguments: [true, false])
  func bounded(statesLength: Bool) async throws {
    let gate = Gate()
    let urls = try (0..<200).map { number in
      try serve("/\(number)", bytes: 50_000) {
        let response = $0.chunked(by: 7_000).bodyHeld(by: gate)
        return statesLength ? response : response.withoutLength()
      }
    }
    let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
      for url in urls { group.addTask { try await load(url).value } }
      await gate.arrived(16)
      #expect(manager.memoryUse.inUse == 0)
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(sizes == [Int](repeating: 50_000, count: 200))
    // The first chunks of the loads that have sent requests are counted without waiting.
    #expect(manager.memoryUse.peak <= 262_500 + 50_000 + 16 * 7_000)
    try await expectNothingLeft()
  }

  @Test("a budget remembers no host without loads, however many it has seen")
  func idleHosts() async throws {
    for number in 0..<100 { _ = try await load(serve("/", bytes: 100, of: "host-\(number).example.com")).value }
    try await Polling.until { manager.core.environment.budget.slots == (0, 0) }
  }

  @Test(
    "loads that wait for silent servers hold no memory, loads from other servers do not wait for them, and all of them end",
    arguments: [true, false])
  func silent(sendsHead: Bool) async throws {
    let gate = Gate()
    let silent = try (0..<100).map { number in
      load(
        try serve("/\(number)", bytes: 50_000, of: "silent\(number % 3).example.com") {
          sendsHead ? $0.bodyHeld(by: gate) : $0.held(by: gate)
        })
    }
    // Sixteen loads of each server have sent their requests.
    await gate.arrived(48)
    #expect(manager.memoryUse.inUse == 0 && manager.memoryUse.waiting == 0)
    #expect(try await load(serve("/other", bytes: 200_000)).value == 200_000)
    silent[0].cancel()
    silent[99].cancel()
    for number in [0, 99] { await #expect(throws: CacheError.self) { try await silent[number].value } }
    gate.open()
    for load in silent[1..<99] { #expect(try await load.value == 50_000) }
    try await expectNothingLeft()
  }

  @Test("a load over budget sends no request until there is room for a body")
  func admission() async throws {
    let gate = Gate()
    let first = try await fill(gate)
    let low = load(try serve("/low", bytes: 250_000), .low)
    try await Polling.until { manager.memoryUse.waiting == 1 }
    let high = load(try serve("/high", bytes: 250_000), .high)
    try await Polling.until { manager.memoryUse.waiting == 2 }
    #expect(network.requests.map(\.path) == ["/first"])

    gate.open()
    for load in [first, low, high] { #expect(try await load.value == 250_000) }

    #expect(manager.memoryUse.peak <= 262_500 + 250_000)
    try await expectNothingLeft()
  }

  @Test("a body that waits for memory and becomes urgent overtakes earlier bodies")
  func raised() async throws {
    let (gate, small, bodies, urgent) = (Gate(), Gate(), Gate(), Gate())
    let held = load(try serve("/small", bytes: 60_000) { $0.chunked(by: 20_000).bodyHeld(by: small) })
    let url = try serve("/raised", bytes: 30_000) { $0.chunked(by: 10_000).bodyHeld(by: urgent) }
    let (other, low) = (
      load(try serve("/other", bytes: 36_000) { $0.chunked(by: 12_000).bodyHeld(by: bodies) }), load(url, .low)
    )
    for gate in [small, bodies, urgent] { await gate.arrived() }
    let first = try await fill(gate)
    // One body exceeds the budget, so the others wait for its end.
    small.letThrough(2)
    try await Polling.until { manager.memoryUse.inUse == 240_000 + 40_000 }
    for gate in [bodies, urgent] { gate.letThrough() }
    try await Polling.until { manager.memoryUse.inUse == 280_000 + 22_000 }
    for gate in [bodies, urgent] { gate.letThrough() }
    try await Polling.until { manager.memoryUse.waiting == 2 }
    let high = load(url, .high)
    try await Polling.until { fixture.observer.joins == 1 }

    small.open()
    #expect(try await held.value == 60_000)
    // The urgent body alone exceeds the budget now.
    try await Polling.until { manager.memoryUse.inUse == 240_000 + 12_000 + 20_000 && manager.memoryUse.waiting == 1 }
    for gate in [gate, bodies, urgent] { gate.open() }
    for load in [low, high] { #expect(try await load.value == 30_000) }
    #expect(try await [first.value, other.value] == [250_000, 36_000])
    try await expectNothingLeft()
  }

  @Test("a load that is cancelled while it waits sends no request and blocks no other load")
  func cancelled() async throws {
    let first = try await fill(Gate())
    let cancelled = load(try serve("/cancelled", bytes: 250_000))
    try await Polling.until { manager.memoryUse.waiting == 1 }
    let next = load(try serve("/next", bytes: 250_000))
    try await Polling.until { manager.memoryUse.waiting == 2 }
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
    let gate = Gate()
    let loads = try (0..<60).map { load(try serve("/\($0)", bytes: 150_000) { $0.chunked(by: 7_000).bodyHeld(by: gate) }) }
    await gate.arrived(3)
    gate.open()
    for load in loads { #expect(try await load.value == 150_000) }
    #expect(manager.memoryUse.peak <= 262_500 + 150_000 + 16 * 7_000)
    try await expectNothingLeft()
  }

  @Test("a server that announces much and sends little blocks neither loads from other servers nor disk reads")
  func slow() async throws {
    let stored = try serve("/stored", bytes: 250_000) { _ in .ok(Data(count: 250_000), cacheControl: "max-age=60") }
    _ = try await load(stored).value
    fixture.restart()
    let gate = Gate()
    let sizes = [1_000_000, 250_000] + [Int](repeating: 100_000, count: 20)
    let slow = try sizes.enumerated().map { number, bytes in
      load(try serve("/\(number)", bytes: bytes, of: "slow.example.com") { $0.chunked(by: 1_000).bodyHeld(by: gate) })
    }
    await gate.arrived(16)
    gate.letThrough(2)
    // The two bodies that have begun keep their slots, because the engine may buffer the rest. So no more requests were sent.
    await gate.arrived(16 + 2)
    #expect(manager.memoryUse.inUse == 2 * 1_000)

    let done = Counter()
    let quick = try ((0..<20).map { try serve("/quick/\($0)", bytes: 10_000) } + [stored]).map { url in
      let load = load(url)
      return Task {
        defer { done.increment() }
        return try await load.value
      }
    }
    try await Polling.until { done.value == quick.count }
    for load in quick { _ = try await load.value }
    #expect(gate.held == 16 && network.requests.count { $0.authority == "slow.example.com" } == 16)

    gate.open()
    for (load, bytes) in zip(slow, sizes) { #expect(try await load.value == bytes) }
    try await expectNothingLeft()
  }

  @Test("servers that send little block no load from another server, however many they are", arguments: [false, true])
  func trickling(intoFiles: Bool) async throws {
    let folder = try DownloadFolder()
    let gate = Gate()
    let slow = try (0..<60).map { number -> Task<Int, any Error> in
      let url = try serve("/\(number)", bytes: 100_000, of: "slow\(number % 6).example.com") {
        $0.chunked(by: 1_000).bodyHeld(by: gate)
      }
      guard intoFiles else { return load(url) }
      return Task { try await Data(contentsOf: manager.load(url, to: folder.file("\(number)")).file).count }
    }
    await gate.arrived(60)
    #expect(manager.memoryUse.inUse == 0)
    gate.letThrough(60)
    await gate.arrived(120)
    #expect(manager.memoryUse.inUse == 60 * 1_000)
    #expect(try await load(serve("/quick", bytes: 10_000)).value == 10_000)
    gate.open()
    for load in slow { #expect(try await load.value == 100_000) }
    try await expectNothingLeft()
  }

  @Test("joined loads of any form use one reservation")
  func joined() async throws {
    let gate = Gate()
    let url = try serve("/first", bytes: 250_000) { $0.chunked(by: 200_000).bodyHeld(by: gate) }
    let text = ResourceTransform<String>(id: "text", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
      "\(try await body.collect().count)"
    }
    let loads = (0..<5).map { _ in load(url) }
    let texts = (0..<5).map { _ in Task { try await fixture.load(text, at: url).value } }
    gate.letThrough()
    await gate.arrived(2)
    try await Polling.until { fixture.observer.joins == 9 }
    #expect(manager.memoryUse.inUse == 200_000 && manager.memoryUse.waiting == 0)
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
      fixture.network.respond(to: url, with: .ok(filePattern(700_000)).chunked(by: 300_000).bodyHeld(by: gate))
      return Task { try await fixture.manager.load(url, to: folder.file("\(number)")) }
    }
    await gate.arrived(10)
    #expect(fixture.manager.memoryUse.inUse == 0)
    gate.letThrough(10)
    await gate.arrived(20)
    #expect(fixture.manager.memoryUse.inUse == 10 * (256 << 10))
    gate.open()
    for load in loads { _ = try await load.value }
    try await Polling.until { fixture.manager.memoryUse.inUse == 0 }
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
    try await Polling.until { fixture.manager.memoryUse.waiting >= 1 }
    #expect(gate.arrivals == 1)
    gate.open()
    for value in values { #expect(try await value.value == 1_000) }
    #expect(fixture.manager.memoryUse.peak <= 253_000 + 3 * 8)
    try await Polling.until { fixture.manager.memoryUse.inUse == 0 }
  }

  @Test("a nested load of a downloader does not wait while all slots of its host are taken")
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
      for number in 0..<40 { group.addTask { try await nesting.manager.load(nesting.url("/\(number)")).text } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(values == [String](repeating: "secret", count: 40))
  }

  @Test("a body that loads something through the same manager does not wait for a slot of its host")
  func nestedBody() async throws {
    let (token, gate) = (try fixture.url("/token"), Gate())
    let manager = Lock<ResourceManager?>(nil)
    let network = ClosureDownloader { seen throws(CacheError) in
      guard seen.head.path != "/token" else { return .streaming(["secret"]) }
      let body = NestedBody { () async throws(CacheError) in
        await gate.pass()
        return try await manager.withLock { $0 }?.load(token, options: .policy(.reload)).text ?? ""
      }
      return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: 8, source: body))
    }
    let nesting = try ManagerFixture {
      $0.downloader = network
      $0.memoryBudget = 400_000
    }
    manager.withLock { $0 = nesting.manager }
    defer { manager.withLock { $0 = nil } }
    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for number in 0..<16 { group.addTask { try await nesting.manager.load(nesting.url("/\(number)")).text } }
      // All slots of the host are taken by bodies that have begun.
      await gate.arrived(16)
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(values == [String](repeating: "a secret", count: 16))
  }

  @Test("a nested load does not wait for memory that the load which waits for it holds")
  func nestedMemory() async throws {
    let (token, gate) = (try fixture.url("/token"), Gate())
    let chunk = String(repeating: "s", count: 100_000)
    let manager = Lock<ResourceManager?>(nil)
    let network = ClosureDownloader { seen throws(CacheError) in
      guard seen.head.path != "/token" else { return .streaming([chunk, chunk, chunk]) }
      let body = NestedBody(first: Data(count: 200_000)) { () async throws(CacheError) in
        await gate.pass()
        return "\(try await manager.withLock { $0 }?.load(token, options: .policy(.reload)).data.count ?? 0)"
      }
      return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: nil, source: body))
    }
    let nesting = try ManagerFixture {
      $0.downloader = network
      $0.memoryBudget = 400_000
    }
    manager.withLock { $0 = nesting.manager }
    defer { manager.withLock { $0 = nil } }
    let outer = Task { try await nesting.manager.load(nesting.url("/outer")).data.count }
    await gate.arrived()
    let other = Task { try await nesting.manager.load(nesting.url("/other")).data.count }
    await gate.arrived(2)
    #expect(nesting.manager.memoryUse.inUse == 400_000)
    gate.open()
    #expect(try await [outer.value, other.value] == [200_006, 200_006])
    try await Polling.until { nesting.manager.memoryUse.inUse == 0 }
  }

  @Test("loads that an observer starts at the end of a transfer are not a part of the load")
  func observerOfBodies() async throws {
    let (observer, url) = (ContextObserver(), try fixture.url("/a"))
    let watched = try ManagerFixture { $0.observer = observer }
    watched.network.respond(to: url, with: .ok(Data(count: 100)).chunked(by: 10))
    _ = try await watched.manager.load(url)
    #expect(observer.isInsideLoad.withLock { $0 } == [false])
  }

  /// An observer that records the context in which it learns of the end of a transfer.
  private final class ContextObserver: LoadObserver {
    let id = ComponentID.unique(ContextObserver.self)
    let isInsideLoad = Lock<[Bool]>([])

    func observe(_ event: CacheEvent, of load: LoadID) {
      if case .transferEnded = event { isInsideLoad.withLock { $0.append(MemoryBudget.isInsideLoad) } }
    }
  }

  /// A body of two chunks, of which the second one is made when it is read.
  private final class NestedBody: ResourceBody.Source {
    private let count = Counter()
    private let first: Data
    private let second: @Sendable () async throws(CacheError) -> String

    init(first: Data = Data("a ".utf8), _ second: @escaping @Sendable () async throws(CacheError) -> String) {
      (self.first, self.second) = (first, second)
    }

    var trailers: HTTPFields? { nil }

    func cancel() {}

    func next() async throws(CacheError) -> Data? {
      defer { count.increment() }
      switch count.value {
      case 0: return first
      case 1: return Data(try await second().utf8)
      default: return nil
      }
    }
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
