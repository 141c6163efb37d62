import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import ETagValidation

/// Origins that change, lie or do not support ranges. Bytes of two states are never combined, and the entry heals by itself.
@Suite("Parts that do not fit", .timeLimit(.minutes(30))) struct PartMismatchTests {
  @Test("if the origin has a new state, the whole response is new, and nothing of the old state stays", arguments: [true, false])
  func replaced(honoursIfRange: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.replace("\"2\"")
    if !honoursIfRange {
      // The server sends the range of its current state, as if the request had no If-Range.
      server.state.withLock { state in
        state.change = { [body = state.body] head, response in
          guard head.headerFields[.ifRange] != nil else { return response }
          return .response(
            .partialContent, fields: [.eTag: "\"2\"", .contentRange: "bytes 400-999/1000", .cacheControl: "max-age=600"],
            body: body[400..<1_000])
        }
      }
    }
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(try await fixture.manager.load(fixture.url).data == server.body)
    fixture.restart()
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
    #expect(server.wholes == 2, "one to the request with If-Range, and one to the request itself")
  }

  /// Responses to the request for `bytes=400-599`, of which none may be combined with the stored bytes before it.
  static let misfits: [(String, @Sendable (Data) -> ScriptedResponse)] = [
    ("another length", { .part(400..<600, of: 1_200, $0) }),
    ("another tag", { .part(400..<600, of: 1_000, tag: "\"x\"", $0) }),
    ("a weak tag", { .part(400..<600, of: 1_000, tag: "W/\"1\"", $0) }),
    ("another start", { .part(300..<500, of: 1_000, $0) }),
    ("a start beyond", { .part(500..<600, of: 1_000, $0) }),
    ("no Content-Range", { .response(.partialContent, fields: [.eTag: "\"1\""], body: $0[400..<600]) }),
    ("an invalid Content-Range", {
      .response(.partialContent, fields: [.eTag: "\"1\"", .contentRange: "bytes 600-400/1000"], body: $0[400..<600])
    }),
    ("several parts", {
      .response(
        .partialContent, fields: [.eTag: "\"1\"", .contentType: "multipart/byteranges; boundary=x"], body: $0[400..<600])
    }),
    ("416", { _ in .response(.rangeNotSatisfiable, fields: [.contentRange: "bytes */200"]) }),
    ("404", { _ in .response(.notFound) }),
  ]

  @Test(
    "a part that does not fit is not combined: the request itself is sent, or the body fails and the next request succeeds",
    arguments: misfits.map(\.0))
  func misfit(name: String) async throws {
    let misfit = try #require(Self.misfits.first { $0.0 == name }?.1)
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    let body = server.body
    server.state.withLock { $0.change = { $0.headerFields[.ifRange] == nil ? $1 : misfit(body) } }
    await #expect(throws: CacheError.self) { try await fixture.range("100-599") }
    for range in ["100-599", "400-599"] {
      let response = try await fixture.range(range)
      #expect(response.status == 206 && response.bytes == body[range.hasPrefix("1") ? 100..<600 : 400..<600])
    }
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("if the first missing part does not fit, the request itself is sent", arguments: misfits.map(\.0))
  func firstMisfit(name: String) async throws {
    let misfit = try #require(Self.misfits.first { $0.0 == name }?.1)
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("600-799")
    let body = server.body
    server.state.withLock { $0.change = { $0.headerFields[.ifRange] == nil ? $1 : misfit(body) } }
    #expect(try await fixture.range("400-799").bytes == body[400..<800])
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("bytes beyond the range of a part are not used, and missing ones are requested again")
  func lengths() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    let body = server.body
    server.state.withLock {
      $0.change = { head, response in
        switch head.headerFields[.range] {
        case "bytes=400-599": ScriptedResponse.part(400..<450, of: 1_000, body)
        case "bytes=450-599":
          .response(
            .partialContent, fields: [.eTag: "\"1\"", .contentRange: "bytes 450-599/1000", .cacheControl: "max-age=600"],
            body: body[450..<600] + Data("too much".utf8)
          ).withoutLength()
        default: response
        }
      }
    }
    #expect(try await fixture.range("100-599").bytes == body[100..<600])
    #expect(try await fixture.range("100-620").bytes == body[100...620])
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("a part that is cut off fails the body, and the next request continues after it")
  func cut() async throws {
    let (fixture, server) = try ManagerFixture.combining(400_000)
    _ = try await fixture.range("0-99999")
    server.state.withLock { $0.change = { $1.chunked(by: 50_000).cut(after: 100_000) } }
    await #expect(throws: CacheError.self) { try await fixture.range(nil) }
    server.state.withLock { $0.change = { $1 } }
    try await Polling.until { fixture.disk.keys.count == 2 }
    server.reset()
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(server.ranges == [200_000..<400_000])
  }

  @Test("a server that ignores ranges is asked once for each request, and its response is passed on")
  func ignoring() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000) { $0.memory = nil; $0.store = VolatileStore() }
    server.state.withLock { ($0.sendsWholes, $0.cacheControl) = (true, "no-store") }
    for _ in 0..<3 {
      let response = try await fixture.range("100-")
      #expect(response.status == 200 && response.bytes == server.body)
    }
    #expect(server.wholes == 3)
    #expect(fixture.network.requests.map { $0.headerFields[.range] } == ["bytes=100-262243", "bytes=100-", "bytes=100-"])
  }

  @Test("the whole range is requested if the origin's parts have no strong validator, without a piece the next time")
  func withoutValidator() async throws {
    let (fixture, server) = try ManagerFixture.combining(600_000)
    server.state.withLock { $0.tag = "W/\"1\"" }
    for _ in 0..<2 { #expect(try await fixture.range("1000-").bytes == server.body[1_000...]) }
    #expect(fixture.network.requests.map { $0.headerFields[.range] } == ["bytes=1000-263143", "bytes=1000-", "bytes=1000-"])
  }

  @Test("an origin that fails for a missing part fails the request, and the stored parts stay")
  func unavailable() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.state.withLock { $0.change = { _, _ in .response(.serviceUnavailable) } }
    await #expect(throws: CacheError.self) { try await fixture.range("100-599") }
    #expect(try await fixture.range("500-599").status == 503)
    #expect(try await fixture.range(nil).status == 503)
    server.state.withLock { $0.change = { $1 } }
    server.reset()
    #expect(try await fixture.range("0-399").bytes == server.body[0..<400])
    #expect(server.ranges.isEmpty)
  }

  @Test("a purge ends the parts: a reader that began before gets its bytes, and a later request none of them")
  func purged() async throws {
    let (fixture, server) = try ManagerFixture.combining(2 << 20)
    let response = try await fixture.exchange([.range: "bytes=0-"])
    var iterator = response.body.makeAsyncIterator()
    let first = try #require(try await iterator.next())
    try await fixture.manager.remove(fixture.url)
    server.replace("\"2\"")
    #expect(try await fixture.range("10-19").bytes == server.body[10..<20])
    #expect(first == RangeServer.bytes(2 << 20).prefix(first.count))
  }

  @Test("requests with other credentials share no parts")
  func credentials() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399", [.authorization: "a"])
    _ = try await fixture.range("0-399", [.authorization: "b"])
    #expect(server.ranges == [0..<400, 0..<400])
    #expect(try await fixture.range("0-499", [.authorization: "a"]).bytes == server.body[0..<500])
    #expect(server.ranges.last == 400..<500)
  }
}

extension ScriptedResponse {
  fileprivate static func part(_ bytes: Range<Int>, of length: Int, tag: String = "\"1\"", _ body: Data) -> ScriptedResponse {
    .response(
      .partialContent,
      fields: [
        .eTag: tag, .contentRange: "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)", .cacheControl: "max-age=600",
      ], body: body[bytes])
  }
}
