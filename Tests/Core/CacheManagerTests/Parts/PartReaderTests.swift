import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

/// Readers of parts that leave, that have other fields, or whose parts turn out to be outdated.
@Suite("Readers of parts", .timeLimit(.minutes(30))) struct PartReaderTests {
  /// Reads at least `count` bytes of a response, and leaves.
  private func read(_ count: Int, of response: CachedResponse) async throws {
    var iterator = response.body.makeAsyncIterator()
    var left = count
    while left > 0 { left -= try await iterator.next()?.count ?? left }
    response.body.source.cancel()
  }

  @Test("a missing part is requested with the fields of the reader that needs it, and of no other one")
  func fields() async throws {
    let (fixture, server) = try ManagerFixture.combining(4 << 20, mode: .shared)
    server.state.withLock { $0.change = { $1.chunked(by: 64 << 10) } }
    let (forwarded, cookies) = (try #require(HTTPField.Name("X-Forwarded-For")), HTTPField.Name.cookie)
    let slow = try await fixture.exchange([.range: "bytes=0-", cookies: "s=alice", forwarded: "1.1.1.1"])
    var iterator = slow.body.makeAsyncIterator()
    _ = try await iterator.next()
    #expect(try await fixture.range("2000000-2000999", [forwarded: "2.2.2.2"]).bytes == server.body[2_000_000..<2_001_000])
    let request = try #require(fixture.network.requests.last { $0.headerFields[.range]?.hasPrefix("bytes=2000000-") == true })
    #expect(request.headerFields[cookies] == nil && request.headerFields[forwarded] == "2.2.2.2")
    #expect(request.headerFields[.ifRange] == "\"1\"")
    slow.body.source.cancel()
  }

  @Test(
    "each try to read the whole continues after the bytes of the one before", arguments: PartCombiningTests.Layers.allCases,
    [true, false])
  func repeated(layers: PartCombiningTests.Layers, statesRanges: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20) {
      if layers == .disk { $0.memory = nil }
      if layers == .memory { $0.store = nil }
    }
    server.state.withLock { ($0.statesRanges, $0.change) = (statesRanges, { $1.chunked(by: 64 << 10) }) }
    _ = try await fixture.range("0-99")
    for megabytes in 1...2 {
      try await read(megabytes << 20, of: try await fixture.exchange([:]))
      // The part is stored in a task of its own.
      try await Polling.until {
        let options = RequestOptions { $0.policy = .cacheOnly }
        return try await fixture.exchange([.range: "bytes=\((megabytes << 20) - 1)-\((megabytes << 20) - 1)"], options: options)
          .head.status == .partialContent
      }
      server.reset()
    }
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(server.wholes == 0 && server.sent <= 1 << 20)
  }

  @Test("a whole whose later part is for its reader alone is complete, if no other request reads it")
  func aloneWithPrivatePart() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20, mode: .shared)
    _ = try await fixture.range("0-99999")
    server.state.withLock { state in
      state.change = { head, response in
        guard head.headerFields[.range]?.hasPrefix("bytes=1148576-") == true else { return response }
        return .part(1_148_576..<2_197_152, of: 3 << 20, cacheControl: "private", RangeServer.bytes(3 << 20))
      }
    }
    for _ in 0..<2 { #expect(try await fixture.range(nil).bytes == server.body) }
    let stored = try await fixture.exchange(options: RequestOptions { $0.policy = .cacheOnly })
    #expect(stored.head.status == .gatewayTimeout)
  }

  @Test("a part that is complete after another one has shown a new state is not stored", arguments: [true, false])
  func late(isGone: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20)
    let gate = Gate()
    server.state.withLock { state in
      state.change = { head, response in
        let range = head.headerFields[.range] ?? ""
        if range.hasPrefix("bytes=0-") { return response.bodyHeld(by: gate) }
        return isGone && range.hasPrefix("bytes=2000000-") ? .response(.notFound) : response
      }
    }
    let first = try await fixture.exchange([.range: "bytes=0-"])
    let task = Task { try await first.body.collect() }
    await gate.arrived()
    if !isGone {
      server.replace("\"2\"")
      server.state.withLock { $0.cacheControl = "no-store" }
    }
    _ = try? await fixture.range("2000000-2000999")
    gate.open()
    _ = try? await task.value
    // It is removed in a task of its own.
    try await Polling.until {
      try await fixture.exchange([.range: "bytes=0-99"], options: RequestOptions { $0.policy = .cacheOnly }).head.status
        == .gatewayTimeout
    }
  }

  @Test("a part that breaks off does not replace a longer one of the same range")
  func shorter() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000_000)
    #expect(try await fixture.range("100000-999999").bytes == server.body[100_000...])
    server.state.withLock { $0.change = { $1.chunked(by: 10_000) } }
    let options = RequestOptions { $0.policy = .reload }
    try await read(200_000, of: try await fixture.exchange([.range: "bytes=100000-999999"], options: options))
    // The part would be stored in a task of its own.
    for _ in 0..<200 { await Task.yield() }
    server.reset()
    #expect(try await fixture.range("100000-999999").bytes == server.body[100_000...])
    #expect(server.ranges.isEmpty)
  }

  @Test("a whole that is complete after another reader has found a new state is not stored")
  func lateWhole() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20)
    _ = try await fixture.range("0-99999")
    let gate = Gate()
    server.state.withLock { state in
      state.change = { head, response in
        head.headerFields[.range]?.hasPrefix("bytes=2197152-") == true ? response.bodyHeld(by: gate) : response
      }
    }
    let task = Task { try await fixture.range(nil).bytes }
    await gate.arrived()
    let old = server.body
    server.replace("\"2\"")
    server.state.withLock { ($0.cacheControl, $0.change) = ("no-store", { $1 }) }
    _ = try? await fixture.range("500000-500999")
    gate.open()
    #expect((try? await task.value) ?? old == old)
    let stored = try await fixture.exchange(options: RequestOptions { $0.policy = .cacheOnly })
    #expect(stored.head.status == .gatewayTimeout)
  }

  @Test("a response to HEAD with another tag makes parts stale, also those that are being read")
  func head() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20)
    server.state.withLock { $0.change = { $1.chunked(by: 64 << 10) } }
    _ = try await fixture.range("2000000-2000999")
    let reader = try await fixture.exchange([.range: "bytes=0-"])
    var iterator = reader.body.makeAsyncIterator()
    _ = try await iterator.next()
    server.replace("\"2\"")
    #expect(try await fixture.exchange([.cacheControl: "no-cache"], .head).head.headerFields[.eTag] == "\"2\"")
    #expect(try await fixture.range("100000-100999").bytes == server.body[100_000..<101_000])
    #expect(try await fixture.range("2000000-2000999").bytes == server.body[2_000_000..<2_001_000])
    #expect(try await fixture.range("3000000-3000999").bytes == server.body[3_000_000..<3_001_000])
    reader.body.source.cancel()
  }

  @Test("a part whose commit fails is requested again, and is no hit")
  func failedCommit() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20) { $0.memory = nil }
    _ = try await fixture.range("0-999")
    let gate = Gate()
    server.state.withLock { state in
      state.change = { head, response in
        let isHeld = head.headerFields[.range]?.hasPrefix("bytes=2000000-") == true
        return isHeld ? response.bodyHeld(by: gate) : response.chunked(by: 64 << 10)
      }
    }
    let reader = try await fixture.exchange([.range: "bytes=0-"])
    let part = Task { try await fixture.range("2000000-2000999").bytes }
    await gate.arrived()
    fixture.disk.failure = CacheError(.fileSystem, reason: "scripted")
    gate.open()
    #expect(try await part.value == server.body[2_000_000..<2_001_000])
    fixture.disk.failure = nil
    let options = RequestOptions { $0.policy = .cacheOnly }
    #expect(try await fixture.exchange([.range: "bytes=2000000-2000999"], options: options).head.status == .gatewayTimeout)
    reader.body.source.cancel()
  }
}
