import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// Parts that must be confirmed, and readers of parts that others replace or are refused.
@Suite("Confirmation of parts", .timeLimit(.minutes(30))) struct PartConfirmationTests {
  private static let cacheOnly = RequestOptions { $0.policy = .cacheOnly }

  /// Stores a body of 300,000 bytes in two parts, and makes them stale.
  private func staleParts(
    mode: CacheMode = .private, until end: Int = 299_999, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }
  ) async throws -> (ManagerFixture, RangeServer) {
    let (fixture, server) = try ManagerFixture.combining(300_000, mode: mode, change)
    _ = try await fixture.range("0-99999")
    _ = try await fixture.range("100000-\(end)")
    fixture.clock.advance(by: .seconds(700))
    server.reset()
    return (fixture, server)
  }

  @Test("stale parts without a gap are confirmed by one byte, and are then fresh", arguments: ["0-", "50000-150000", nil])
  func complete(range: String?) async throws {
    let (fixture, server) = try await staleParts()
    let bounds = range == "50000-150000" ? 50_000..<150_001 : 0..<300_000
    let response = try await fixture.exchange(range.map { [.range: "bytes=\($0)"] } ?? [:])
    #expect(try await response.body.collect() == server.body[bounds])
    #expect(server.ranges == [0..<1] && server.wholes == 0)
    #expect(response.status.forward == .stale)
    #expect(try await fixture.range(range).bytes == server.body[bounds])
    #expect(server.ranges == [0..<1])
  }

  @Test("loads, also into files, confirm stale parts without a gap by one byte", arguments: [true, false])
  func loads(intoFile: Bool) async throws {
    let (fixture, server) = try await staleParts()
    let folder = try DownloadFolder()
    if intoFile {
      _ = try await fixture.manager.load(fixture.url, to: folder.file())
      #expect(folder.content() == server.body)
    } else {
      #expect(try await fixture.manager.load(fixture.url).data == server.body)
    }
    #expect(server.ranges == [0..<1] && server.wholes == 0)
  }

  @Test("if the first byte shows another state, the caller gets that state", arguments: ["0-", nil])
  func changed(range: String?) async throws {
    let (fixture, server) = try await staleParts()
    server.replace("\"2\"")
    #expect(try await fixture.range(range).bytes == server.body)
    #expect(try await fixture.range("1000-1999").bytes == server.body[1_000..<2_000])
  }

  @Test("without permission for a request, stale parts give 504")
  func onlyCached() async throws {
    let (fixture, server) = try await staleParts()
    #expect(try await fixture.range(nil, [.cacheControl: "only-if-cached"]).status == 504)
    #expect(server.ranges.isEmpty && server.wholes == 0)
  }

  @Test("requests for stale parts at the same time share one confirmation", arguments: [299_999, 199_999])
  func shared(end: Int) async throws {
    let (fixture, server) = try await staleParts(until: end)
    let gate = Gate()
    server.state.withLock { $0.change = { $1.held(by: gate) } }
    let tasks = (0..<5).map { number in
      // Other fields, so that the requests do not share a response.
      Task { try await fixture.range("0-", [.userAgent: "player \(number)"]).bytes }
    }
    await gate.arrived()
    // Without sharing, all of them send a request before the first one has its response.
    for _ in 0..<500 { await Task.yield() }
    gate.open()
    for task in tasks { #expect(try await task.value == server.body) }
    #expect(server.wholes == 0 && server.ranges.count < 5)
  }

  @Test("a request that accepts no fresh response does not share a confirmation", arguments: ["no-cache", "max-age=0"])
  func unshared(directive: String) async throws {
    let (fixture, server) = try await staleParts()
    let gate = Gate()
    server.state.withLock { $0.change = { $1.held(by: gate) } }
    let first = Task { try await fixture.range("0-").bytes }
    await gate.arrived()
    let second = Task { try await fixture.range("0-", [.cacheControl: directive]).bytes }
    await gate.arrived(2)
    gate.open()
    #expect(try await first.value == server.body)
    #expect(try await second.value == server.body)
    #expect(server.ranges == [0..<1, 0..<1])
  }

  @Test("equal requests share a confirmation that is not fresh, and all requests share missing parts", arguments: [true, false])
  func stillStale(isEqual: Bool) async throws {
    let (fixture, server) = try await staleParts(until: 199_999)
    let gate = Gate()
    server.state.withLock { ($0.cacheControl, $0.change) = ("no-cache", { $1.held(by: gate) }) }
    let tasks = (0..<5).map { number in
      Task { try await fixture.range("0-", [.userAgent: isEqual ? "player" : "player \(number)"]).bytes }
    }
    await gate.arrived()
    for _ in 0..<500 { await Task.yield() }
    gate.open()
    for task in tasks { #expect(try await task.value == server.body) }
    #expect(server.wholes == 0 && server.sent < 5 * 100_000)
    if isEqual { #expect(server.ranges.count < 5) }
  }

  @Test("a confirmation with the fields of another user is for that user alone")
  func selected() async throws {
    let (fixture, server) = try await staleParts(mode: .shared)
    let gate = Gate()
    let account = try #require(HTTPField.Name("X-Account"))
    server.state.withLock { state in
      state.change = { head, response in
        guard head.headerFields[.range] == "bytes=0-0" else { return response }
        var fields: HTTPFields = [
          .eTag: "\"1\"", .contentRange: "bytes 0-0/300000", .cacheControl: "max-age=600", .vary: "Cookie",
        ]
        fields[account] = head.headerFields[.cookie]
        return .response(.partialContent, fields: fields, body: RangeServer.bytes(1)).held(by: gate)
      }
    }
    let alice = Task { try await fixture.range("0-", [.cookie: "alice"]) }
    await gate.arrived()
    let bob = Task { try await fixture.range("0-", [.cookie: "bob"]) }
    for _ in 0..<500 { await Task.yield() }
    gate.open()
    let (first, second) = (try await alice.value, try await bob.value)
    #expect(first.bytes == server.body && second.bytes == server.body)
    #expect(first.fields[account] != "bob" && second.fields[account] != "alice")
    #expect(fixture.network.requests.contains { $0.headerFields[.cookie] == "bob" })
  }

  @Test("after a confirmation that shows another state, the waiting requests confirm nothing more")
  func stateForAll() async throws {
    let (fixture, server) = try await staleParts()
    let gate = Gate()
    server.replace("\"2\"")
    server.state.withLock { $0.change = { $0.headerFields[.ifRange] == nil ? $1 : $1.held(by: gate) } }
    let tasks = (0..<5).map { number in Task { try await fixture.range("0-", [.userAgent: "player \(number)"]).bytes } }
    await gate.arrived()
    for _ in 0..<500 { await Task.yield() }
    gate.open()
    for task in tasks { #expect(try await task.value == server.body) }
    let conditional = fixture.network.requests.filter { $0.headerFields[.ifRange] == "\"1\"" }
    // A request that arrives late sends one of its own. Not all of them do.
    #expect(conditional.count < 5)
  }

  @Test("a reader whose first byte is inside a part that arrives keeps that part, although its first reader leaves")
  func inside() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20)
    _ = try await fixture.range("0-99")
    let gate = Gate()
    server.state.withLock { $0.change = { $1.bodyHeld(by: gate) } }
    let first = try await fixture.exchange([:])
    let second = try await fixture.exchange([.range: "bytes=500000-600000"])
    first.body.source.cancel()
    gate.open()
    #expect(try await second.body.collect() == server.body[500_000...600_000])
    #expect(server.ranges == [0..<100, 100..<1_048_676])
  }

  @Test("a confirmation that is not fresh is for its request alone, because the origin may refuse another one")
  func refused() async throws {
    let (fixture, server) = try await staleParts(mode: .shared)
    let gate = Gate()
    server.state.withLock { state in
      state.cacheControl = "no-cache"
      state.change = { head, response in
        head.headerFields[.cookie] == "alice" ? response.held(by: gate) : .response(.forbidden)
      }
    }
    let alice = Task { try await fixture.range("0-", [.cookie: "alice"]).bytes }
    await gate.arrived()
    let bob = Task { try await fixture.range("0-", [.cookie: "bob"]).status }
    for _ in 0..<500 { await Task.yield() }
    gate.open()
    #expect(try await alice.value == server.body)
    #expect(try await bob.value == 403)
  }

  @Test("a refused request for a part ends its own body alone, and others request the part themselves")
  func otherReaders() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20, mode: .shared)
    _ = try await fixture.range("0-99")
    let gate = Gate()
    server.state.withLock { state in
      state.change = { head, response in
        head.headerFields[.cookie] == "alice" ? .response(.forbidden).held(by: gate) : response.chunked(by: 64 << 10)
      }
    }
    let alice = Task { try await fixture.range("1048676-2097151", [.cookie: "alice"]).status }
    await gate.arrived()
    // The next piece of this reader is the one that the other one has requested.
    let bob = try await fixture.exchange([.range: "bytes=0-2097151", .cookie: "bob"])
    var iterator = bob.body.makeAsyncIterator()
    var bytes = Data()
    while bytes.count < 1_048_676, let chunk = try await iterator.next() { bytes += chunk }
    gate.open()
    while let chunk = try await iterator.next() { bytes += chunk }
    #expect(bytes == server.body[0..<2_097_152])
    #expect(try await alice.value == 403)
  }

  @Test("a slow reader of parts continues with the whole that another request has stored", arguments: [true, false])
  func slow(isOnDisk: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20) { if isOnDisk { $0.memory = nil } else { $0.store = nil } }
    server.state.withLock { $0.change = { $1.chunked(by: 64 << 10) } }
    for start in stride(from: 0, to: 3 << 20, by: 1 << 20) {
      _ = try await fixture.range("\(start)-\(start + (1 << 20) - 1)")
    }
    server.reset()
    let slow = try await fixture.exchange([.range: "bytes=0-"], options: Self.cacheOnly)
    var iterator = slow.body.makeAsyncIterator()
    var bytes = try await iterator.next() ?? Data()
    #expect(try await fixture.range(nil).bytes == server.body)
    while let chunk = try await iterator.next() { bytes += chunk }
    #expect(bytes == server.body)
    #expect(server.ranges.isEmpty && server.wholes == 0)
  }

  @Test("parts are merged up to the size that the store accepts")
  func entryLimit() async throws {
    let folder = try DownloadFolder()
    var disk: DiskCache?
    let (fixture, server) = try ManagerFixture.combining(12 << 20) {
      let store = try DiskCache(
        folder: folder.file("disk"), configuration: .init(entrySizeLimit: 3_500_000, clock: $0.clock))
      (disk, $0.store, $0.memory) = (store, store, nil)
    }
    let cache = try #require(disk)
    #expect(try await fixture.range("0-").bytes == server.body)
    // 48 pieces of 256 KiB. Merging goes on in tasks of its own.
    try await Polling.until { try await cache.entries(where: { _, _ in true }).count <= 20 }
    server.reset()
    #expect(try await fixture.range("0-").bytes == server.body)
    #expect(server.ranges.isEmpty && server.wholes == 0)
    #expect(!fixture.observer.events.contains { if case .storeFailed = $0 { true } else { false } })
    await cache.close()
  }

  @Test("parts of separate ranges are merged up to the size that the store accepts")
  func entryLimitOfRanges() async throws {
    let folder = try DownloadFolder()
    var disk: DiskCache?
    let (fixture, server) = try ManagerFixture.combining(12 << 20) {
      let store = try DiskCache(
        folder: folder.file("disk"), configuration: .init(entrySizeLimit: 1_500_000, clock: $0.clock))
      (disk, $0.store, $0.memory) = (store, store, nil)
    }
    let cache = try #require(disk)
    for start in stride(from: 0, to: 12 << 20, by: 128 << 10) {
      _ = try await fixture.range("\(start)-\(start + (128 << 10) - 1)")
      // At most 64 parts are stored. Merging goes on in tasks of its own.
      try await Polling.until { try await cache.entries(where: { _, _ in true }).count <= 40 }
    }
    server.reset()
    #expect(try await fixture.range("0-").bytes == server.body)
    #expect(server.ranges.isEmpty && server.wholes == 0)
    await cache.close()
  }

  @Test("a merged part expires with the parts that it is made of")
  func expiration() async throws {
    let (fixture, server) = try ManagerFixture.combining(1 << 20) { $0.store = nil }
    let options = RequestOptions { $0.expiration = .after(.seconds(60)) }
    for start in stride(from: 0, to: 1 << 20, by: 64 << 10) {
      let range = "bytes=\(start)-\(start + (64 << 10) - 1)"
      _ = try await fixture.exchange([.range: range], options: options).body.collect()
    }
    // Merging goes on in tasks of its own. An entry is a part or the list of parts.
    try await Polling.until { fixture.memory.count <= 8 }
    #expect(try await fixture.exchange([.range: "bytes=0-999"], options: Self.cacheOnly).head.status == .partialContent)
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.exchange([.range: "bytes=0-999"], options: Self.cacheOnly).head.status == .gatewayTimeout)
    #expect(server.wholes == 0)
  }

  @Test("a range at the end of a body of the greatest length is requested, and overflows no number")
  func greatest() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    server.state.withLock { state in
      state.change = { head, response in
        let body = RangeServer.bytes(1_000)
        return head.headerFields[.range] == "bytes=0-99" ? .part(0..<100, of: .max, body) : .response(.badGateway)
      }
    }
    #expect(try await fixture.range("0-99").status == 206)
    for range in ["-500", "9223372036854774807-", "9223372036854775000-9223372036854775806", "50-"] {
      _ = try? await fixture.range(range)
    }
    #expect(fixture.network.requests.contains { $0.headerFields[.range]?.hasPrefix("bytes=9223372036854775307-") == true })
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
  }

  @Test("a load into a file that writes nothing to the cache leaves a part of the file, although parts are stored")
  func fileAlone() async throws {
    let (fixture, server) = try ManagerFixture.combining(2 << 20)
    _ = try await fixture.range("0-99999")
    server.reset()
    let folder = try DownloadFolder()
    let options = RequestOptions { $0.writes = [] }
    server.state.withLock { $0.change = { $1.cut(after: 1 << 20) } }
    await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url, options: options), to: folder.file())
    }
    server.state.withLock { $0.change = { $1 } }
    _ = try await fixture.manager.load(ResourceRequest(fixture.url, options: options), to: folder.file())
    #expect(folder.content() == server.body)
    #expect(server.ranges == [(1 << 20)..<(2 << 20)])
  }

  @Test("the request that opens a representation gets the interim responses")
  func interim() async throws {
    let (fixture, server) = try ManagerFixture.combining(300_000)
    server.state.withLock { $0.change = { $1.preceded(by: HTTPResponse(status: .init(code: 103))) } }
    let reported = Lock<[Int]>([])
    var head = try HTTPRequest(resource: fixture.url)
    head.headerFields[.range] = "bytes=0-"
    let response = try await fixture.manager.respond(to: head) { response in
      reported.withLock { $0.append(response.status.code) }
    }
    #expect(try await response.body.collect() == server.body)
    #expect(reported.withLock { $0 } == [103])
  }
}
