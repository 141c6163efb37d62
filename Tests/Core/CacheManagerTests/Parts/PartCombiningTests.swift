import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import ETagValidation

@Suite("Combining parts", .timeLimit(.minutes(30))) struct PartCombiningTests {
  /// The layers that a manager has.
  enum Layers: CaseIterable { case memory, disk, both }

  private func fixture(_ count: Int, _ layers: Layers = .both) throws -> (fixture: ManagerFixture, server: RangeServer) {
    try ManagerFixture.combining(count) {
      if layers == .disk { $0.memory = nil }
      if layers == .memory { $0.store = nil }
    }
  }

  @Test(
    "a wider range requests only the missing bytes, and ranges inside what is stored request nothing", arguments: Layers.allCases)
  func wider(layers: Layers) async throws {
    let (fixture, server) = try fixture(1_000, layers)
    #expect(try await fixture.range("100-199").bytes == server.body[100..<200])
    let wide = try await fixture.range("50-299")
    #expect(wide.status == 206 && wide.bytes == server.body[50..<300])
    #expect(wide.fields[.contentRange] == "bytes 50-299/1000")
    #expect(server.ranges == [100..<200, 50..<100, 200..<300])
    server.reset()
    for (range, expected) in [("60-280", 60..<281), ("50-299", 50..<300), ("150-", 150..<1_000), ("-750", 250..<1_000)] {
      #expect(try await fixture.range(range).bytes == server.body[expected], "\(range)")
    }
    #expect(server.ranges == [300..<1_000])
    #expect(server.wholes == 0)
  }

  @Test("parts that a store kept over a restart are combined")
  func restarted() async throws {
    let (fixture, server) = try fixture(1_000)
    _ = try await fixture.range("0-299")
    _ = try await fixture.range("600-799")
    fixture.restart()
    server.reset()
    #expect(try await fixture.range("100-899").bytes == server.body[100..<900])
    #expect(server.ranges == [300..<600, 800..<900])
  }

  /// The forms that get the whole response.
  enum Form: CaseIterable { case respond, load, file }

  @Test("the whole response is completed from parts, in each form, and replaces them", arguments: Form.allCases, Layers.allCases)
  func whole(form: Form, layers: Layers) async throws {
    let (fixture, server) = try fixture(1_000, layers)
    let folder = try DownloadFolder()
    _ = try await fixture.range("200-399")
    _ = try await fixture.range("700-999")
    server.reset()
    let bytes: Data
    switch form {
    case .respond: bytes = try await fixture.range(nil).bytes
    case .load: bytes = try await fixture.manager.load(fixture.url).data
    case .file: bytes = try Data(contentsOf: await fixture.manager.load(fixture.url, to: folder.file("whole")).file)
    }
    #expect(bytes == server.body)
    #expect(server.ranges == [0..<200, 400..<700] && server.wholes == 0)
    server.reset()
    if form != .file || layers != .memory {
      #expect(try await fixture.manager.load(fixture.url).data == server.body)
      #expect(server.ranges.isEmpty && server.wholes == 0)
    }
    if layers != .memory { #expect(fixture.disk.keys.count == 1) }
  }

  @Test(
    "what has arrived of a broken transfer is stored, and only the rest is requested", arguments: Form.allCases, Layers.allCases)
  func broken(form: Form, layers: Layers) async throws {
    let (fixture, server) = try fixture(300_000, layers)
    let folder = try DownloadFolder()
    server.state.withLock { $0.change = { $1.chunked(by: 50_000).cut(after: 200_000) } }
    _ = try? await fixture.range(nil)
    server.state.withLock { $0.change = { $1 } }
    try await Polling.until {
      fixture.disk.keys.count + (try await fixture.manager.usage().memory?.entries ?? 0) > 0
    }
    server.reset()
    switch form {
    case .respond: #expect(try await fixture.range(nil).bytes == server.body)
    case .load: #expect(try await fixture.manager.load(fixture.url).data == server.body)
    case .file:
      let file = try await fixture.manager.load(fixture.url, to: folder.file("whole")).file
      #expect(try Data(contentsOf: file) == server.body)
    }
    #expect(server.ranges == [200_000..<300_000] && server.wholes == 0)
    #expect(fixture.network.requests.last?.headerFields[.ifRange] == "\"1\"")
  }

  @Test("what a reader that leaves has read is stored, of a whole and of a range", arguments: [nil, "100000-"])
  func left(range: String?) async throws {
    let (fixture, server) = try fixture(1_000_000)
    server.state.withLock { $0.change = { $1.chunked(by: 10_000) } }
    let start = range == nil ? 0 : 100_000
    do {
      let response = try await fixture.exchange(range.map { [.range: "bytes=\($0)"] } ?? [:])
      var iterator = response.body.makeAsyncIterator()
      var count = 0
      while count < 100_000 { count += try await iterator.next()?.count ?? 0 }
      response.body.source.cancel()
    }
    try await Polling.until { !fixture.disk.keys.isEmpty }
    server.reset()
    #expect(
      try await fixture.range("\(start + 1_000)-\(start + 60_000)").bytes == server.body[(start + 1_000)...(start + 60_000)])
    #expect(server.ranges.isEmpty)
  }

  @Test("a reader that leaves a range without an end has caused at most one piece more than it read")
  func openEnded() async throws {
    let (fixture, server) = try fixture(4 << 20)
    for start in [0, 1 << 20, 3 << 20] {
      let response = try await fixture.exchange([.range: "bytes=\(start)-"])
      #expect(response.head.headerFields[.contentRange] == "bytes \(start)-\((4 << 20) - 1)/\(4 << 20)")
      var iterator = response.body.makeAsyncIterator()
      var bytes = Data()
      while bytes.count < 300_000 { bytes += try await iterator.next() ?? Data() }
      response.body.source.cancel()
      #expect(bytes == server.body[start..<start + bytes.count])
    }
    let (piece, jump): (Int64, Int64) = (256 << 10, 1 << 20)
    let starts: [Int64] = [0, piece, jump, jump + piece, 3 * jump, 3 * jump + piece]
    #expect(server.ranges == starts.map { $0..<$0 + piece })
  }

  @Test("each byte is requested once, whichever overlapping ranges many readers want")
  func overlapping() async throws {
    let (fixture, server) = try fixture(3 << 20)
    server.state.withLock { $0.change = { $1.chunked(by: 40_000) } }
    let ranges = (0..<40).map { index in
      let start = (index * 7 % 13) << 17
      return index % 3 == 0 ? start..<(3 << 20) : start..<start + (1 << 19) + index * 1_000
    }
    let whole = server.body
    try await withThrowingTaskGroup(of: Void.self) { group in
      for range in ranges {
        group.addTask {
          let text = range.upperBound == 3 << 20 ? "\(range.lowerBound)-" : "\(range.lowerBound)-\(range.upperBound - 1)"
          let part = try await fixture.range(text)
          #expect(part.status == 206 && part.bytes == whole[range], "\(range)")
        }
      }
      try await group.waitForAll()
    }
    var next: Int64 = 0
    for range in server.ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      #expect(range.lowerBound == next, "bytes \(range) after \(next)")
      next = range.upperBound
    }
    #expect(next == 3 << 20 && server.wholes == 0)
  }

  @Test(
    "a range of all bytes is stored, whether its reader reads it to the end or leaves", arguments: Layers.allCases, [true, false])
  func rangeOfAllBytes(layers: Layers, isComplete: Bool) async throws {
    let (fixture, server) = try fixture(3 << 20, layers)
    server.state.withLock { $0.change = { $1.chunked(by: 64 << 10) } }
    if isComplete {
      #expect(try await fixture.range("0-").bytes == server.body)
    } else {
      let response = try await fixture.exchange([.range: "bytes=0-"])
      var iterator = response.body.makeAsyncIterator()
      var count = 0
      while count < 1 << 20 { count += try await iterator.next()?.count ?? 0 }
      response.body.source.cancel()
    }
    server.reset()
    #expect(try await fixture.range("1000-500000").bytes == server.body[1_000...500_000])
    #expect(server.ranges.isEmpty && server.wholes == 0)
    #expect(try await fixture.range("0-3145727").bytes == server.body)
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(server.wholes == 0 && (!isComplete || server.ranges.isEmpty))
    #expect(server.sent <= 3 << 20)
  }

  @Test("requests for the whole that arrive while parts are completed share one body", arguments: Layers.allCases)
  func sharedWhole(layers: Layers) async throws {
    let (fixture, server) = try fixture(300_000, layers)
    _ = try await fixture.range("0-99999")
    let gate = Gate()
    server.state.withLock { $0.change = { $1.bodyHeld(by: gate) } }
    server.reset()
    let first = try await fixture.exchange([:])
    let task = Task { try await first.body.collect() }
    await gate.arrived()
    let others = (0..<3).map { _ in Task { try await fixture.range(nil).bytes } }
    try await Polling.until {
      fixture.observer.events.count { if case .joined = $0 { true } else { false } } == 3
    }
    #expect(fixture.network.requests.count == 2)
    gate.open()
    #expect(try await task.value == server.body)
    for other in others { #expect(try await other.value == server.body) }
    #expect(server.ranges == [100_000..<300_000] && server.wholes == 0)
  }

  @Test(
    "if a missing part does not arrive, each request for the whole gets its own response", arguments: Layers.allCases,
    [true, false])
  func unsharedWhole(layers: Layers, isReplaced: Bool) async throws {
    let (fixture, server) = try fixture(300_000, layers)
    _ = try await fixture.range("0-99999")
    if isReplaced { server.replace("\"2\"") }
    server.reset()
    let gate = Gate()
    server.state.withLock { state in
      state.cacheControl = "no-store"
      state.change = { head, response in
        let response = isReplaced ? response : .response(.serviceUnavailable)
        return head.headerFields[.range] == nil ? response : response.held(by: gate)
      }
    }
    let requests = (0..<4).map { _ in Task { try await fixture.range(nil) } }
    await gate.arrived()
    try await Polling.until {
      fixture.observer.events.count { if case .joined = $0 { true } else { false } } == 3
    }
    gate.open()
    for request in requests {
      let response = try await request.value
      #expect(response.status == (isReplaced ? 200 : 503))
      #expect(!isReplaced || response.bytes == server.body)
    }
    // The one to the request for the missing part shows that the parts are outdated.
    #expect(!isReplaced || server.wholes == 5)
  }

  @Test("if a reader of the whole leaves, the next one stores the whole", arguments: Layers.allCases)
  func left(layers: Layers) async throws {
    let (fixture, server) = try fixture(300_000, layers)
    _ = try await fixture.range("0-99999")
    server.state.withLock { $0.change = { $1.chunked(by: 10_000) } }
    do {
      let response = try await fixture.exchange([:])
      var iterator = response.body.makeAsyncIterator()
      _ = try await iterator.next()
      response.body.source.cancel()
    }
    #expect(try await fixture.range(nil).bytes == server.body)
    server.reset()
    let count = fixture.network.requests.count
    #expect(try await fixture.range(nil, [.ifNoneMatch: "\"1\""]).status == 304)
    #expect(fixture.network.requests.count == count, "parts are not combined for a request with a condition")
  }

  @Test("at most 64 parts of a resource are stored, also if one body leaves more")
  func limited() async throws {
    let (fixture, server) = try ManagerFixture.combining(0) {
      ($0.store, $0.memory) = (nil, MemoryCache(limits: .init(cost: 64 << 20)))
      // Eight parts of 256 KiB are not merged.
      $0.maximumBodyInMemory = 2_000_000
    }
    // A body without an end is requested in pieces of 256 KiB up to 16 MiB.
    let count = 20 << 20
    server.state.withLock { $0.body = Data(count: count) }
    #expect(try await fixture.range("0-").bytes.count == count)
    #expect(server.ranges.count > 64)
    server.reset()
    #expect(try await fixture.range("\(count - 1_000)-\(count - 1)").bytes.count == 1_000)
    #expect(server.ranges.isEmpty)
    #expect(try await fixture.range("0-999").bytes.count == 1_000)
    #expect(server.ranges == [0..<1_000])
  }

  @Test("a reader does not wait for bytes before its own, while another reader waits for its own")
  func ahead() async throws {
    let (fixture, server) = try fixture(4 << 20)
    let gate = Gate()
    server.state.withLock { $0.change = { $0.headerFields[.range]?.hasPrefix("bytes=0-") == true ? $1.bodyHeld(by: gate) : $1 } }
    let slow = try await fixture.exchange([.range: "bytes=0-"])
    let task = Task { try await slow.body.collect() }
    await gate.arrived()
    #expect(try await fixture.range("2000000-2000999").bytes == server.body[2_000_000..<2_001_000])
    gate.open()
    #expect(try await task.value == server.body)
  }

  @Test("many small parts in a row are joined, so that their number stays small")
  func joined() async throws {
    let (fixture, server) = try fixture(256_000)
    for index in 0..<128 {
      let start = index * 2_000
      #expect(try await fixture.range("\(start)-\(start + 1_999)").bytes == server.body[start..<start + 2_000])
    }
    try await Polling.until { fixture.disk.keys.count < 40 }
    server.reset()
    fixture.restart()
    #expect(try await fixture.range("0-255998").bytes == server.body.dropLast())
    #expect(server.ranges.isEmpty)
  }
}
