import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Scripted downloader", .timeLimit(.minutes(30)))
struct ScriptedDownloaderTests {
  private let clock = ManualClock()
  private let network: ScriptedDownloader
  private let url: URL
  private let other: URL

  init() throws {
    network = ScriptedDownloader(clock: clock)
    url = try #require(URL(string: "https://example.com/a"))
    other = try #require(URL(string: "https://example.com/b"))
  }

  @Test("responses follow the script's order, separately for each URL")
  func order() async throws {
    network.respond(to: url, with: .ok("one"), .ok("two"))
    network.respond(to: other, with: .ok("other"))
    network.respond(to: url, with: .ok("three"))
    #expect(try await network.text(url) == "one")
    #expect(try await network.text(other) == "other")
    #expect(try await network.text(url) == "two")
    #expect(try await network.text(url) == "three")
    try network.verify()
  }

  @Test("a response has the scripted head")
  func heads() async throws {
    network.respond(
      to: url, with: .ok("x", etag: "\"1\"", cacheControl: "max-age=1"), .notModified(etag: "\"1\""), .redirect(to: "/b"),
      .response(.notFound))
    let ok = try await network.get(url).head
    #expect(ok.headerFields == [.eTag: "\"1\"", .cacheControl: "max-age=1", .contentLength: "1"])
    #expect(try await network.get(url).head.status == .notModified)
    let redirect = try await network.get(url).head
    #expect(redirect.status == .found)
    #expect(redirect.headerFields[.location] == "/b")
    #expect(try await network.get(url).head.status == .notFound)
  }

  @Test(
    "a head states the length of its body, unless it has such a field or its status allows none",
    arguments: [
      (.ok("body"), "4"), (.ok("body").cut(after: 2), "4"), (.response(.notFound), "0"), (.redirect(to: "/b"), "0"),
      (.ok("body", fields: [.contentLength: "9"]), "9"), (.ok("body").withoutLength(), nil), (.response(.noContent), nil),
      (.notModified(), nil), (.ok("body").part(from: 1), "3"),
    ] as [(ScriptedResponse, String?)])
  func lengths(_ response: ScriptedResponse, _ length: String?) async throws {
    network.respond(to: url, with: response)
    #expect(try await network.get(url).head.headerFields[.contentLength] == length)
  }

  @Test("a response to HEAD has no body, and states the length of the scripted one")
  func head() async throws {
    network.respond(to: url, with: .ok("body"), .response(.ok))
    for length in ["4", nil] {
      let response = try await network.get(url, method: .head)
      #expect(response.head.headerFields[.contentLength] == length)
      #expect(try await response.body.collect().isEmpty)
    }
  }

  @Test(
    "the part of a response is its rest, with its position",
    arguments: [
      (0, 206, "bytes 0-3/4", "body"), (3, 206, "bytes 3-3/4", "y"), (4, 416, "bytes */4", ""), (-1, 416, "bytes */4", ""),
    ])
  func part(_ offset: Int, _ status: Int, _ range: String, _ rest: String) async throws {
    network.respond(to: url, with: .ok("body", etag: "\"1\"").cut(after: 2).part(from: offset))
    let response = try await network.get(url)
    #expect(response.head.status.code == status)
    #expect(response.head.headerFields[.contentRange] == range)
    #expect(response.head.headerFields[.eTag] == "\"1\"")
    #expect(try await response.body.collect() == Data(rest.utf8))
  }

  @Test("an unscripted request fails, and verify names it")
  func unscripted() async throws {
    network.respond(to: url, with: .ok("once"))
    _ = try await network.text(url)
    let error = await failure { _ = try await network.get(url) }
    #expect(error?.code == .unscripted)
    #expect(error?.reason.contains("GET https://example.com/a") == true)
    #expect(network.unscripted.count == 1)

    let verdict = #expect(throws: CacheError.self) { try network.verify() }
    #expect(verdict?.reason == "unscripted request: https://example.com/a")
  }

  @Test("verify names unused responses")
  func leftOver() async throws {
    network.respond(to: url, with: .ok("one"), .ok("two"))
    network.respond(to: other, with: .ok("other"))
    _ = try await network.text(url)
    let verdict = #expect(throws: CacheError.self) { try network.verify() }
    #expect(verdict?.code == .unscripted)
    #expect(
      verdict?.reason == "unused responses: 1 for https://example.com/a; unused responses: 1 for https://example.com/b")
  }

  @Test("a closure serves requests without a scripted response")
  func serves() async throws {
    network.serve(url) { request in .ok("served \(request.headerFields[.accept] ?? "anything")") }
    network.respond(to: url, with: .ok("scripted"))
    #expect(try await network.text(url) == "scripted")
    #expect(try await network.text(url) == "served anything")
    let response = try await network.get(url, [.accept: "image/png"])
    #expect(try await response.body.collect() == Data("served image/png".utf8))
    try network.verify()
  }

  @Test("a scripted error is thrown", arguments: [CacheError.Code.offline, .timedOut, .hostNotFound])
  func failures(_ code: CacheError.Code) async {
    network.respond(to: url, with: .failure(code))
    #expect(await failure { _ = try await network.get(url) }?.code == code)
  }

  @Test("a delay is measured by the clock and starts with the request")
  func delays() async throws {
    network.respond(to: url, with: .ok("late").after(.seconds(5)))
    let load = Task { [network, url] in try await network.text(url) }
    await clock.sleepers(1)
    #expect(network.requests.count == 1)
    clock.advance(by: .seconds(5))
    #expect(try await load.value == "late")
  }

  @Test("a cancelled delay ends")
  func cancelledDelay() async {
    network.respond(to: url, with: .ok("late").after(.seconds(5)))
    let load = Task { [network, url] in try await network.text(url) }
    await clock.sleepers(1)
    load.cancel()
    #expect(await failure { _ = try await load.value }?.isCancellation == true)
    #expect(clock.pendingSleeps == 0)
  }

  @Test("gates hold responses or only their bodies")
  func gates() async throws {
    let (head, body) = (Gate(), Gate())
    network.respond(to: url, with: .ok("held").held(by: head).bodyHeld(by: body))
    let load = Task { [network, url] in try await network.get(url) }
    await head.arrived()
    head.open()
    let response = try await load.value
    let reading = Task { try await response.body.collect() }
    await body.arrived()
    body.open()
    #expect(try await reading.value == Data("held".utf8))
  }

  @Test("a body is cut at the scripted position, although the head declares its full length", arguments: [0, 1, 5, 9])
  func cut(_ bytes: Int) async throws {
    network.respond(to: url, with: .ok("0123456789").cut(after: bytes).chunked(by: 2))
    let response = try await network.get(url)
    #expect(response.body.length == 10)
    let read = Lock(0)
    let error = await failure {
      for try await chunk in response.body { read.withLock { $0 += chunk.count } }
    }
    #expect(error?.code == .truncatedBody)
    #expect(read.withLock { $0 } == bytes)
  }

  @Test("a body has chunks of the scripted size, with or without a length")
  func chunks() async throws {
    network.respond(to: url, with: .ok("0123456789").chunked(by: 4).withoutLength())
    let response = try await network.get(url)
    #expect(response.body.length == nil)
    var chunks: [Int] = []
    for try await chunk in response.body { chunks.append(chunk.count) }
    #expect(chunks == [4, 4, 2])
    #expect(response.metrics().bytesOnWire == 10)
  }

  @Test("requests are recorded with their fields")
  func records() async throws {
    network.serve(url) { _ in .ok("x") }
    network.serve(other) { _ in .ok("y") }
    _ = try await network.get(url, [.ifNoneMatch: "\"1\""])
    _ = try await network.get(other, method: .head)
    _ = try await network.get(url)
    #expect(network.requests.map(\.path) == ["/a", "/b", "/a"])
    #expect(network.requests(for: url).map { $0.headerFields[.ifNoneMatch] } == ["\"1\"", nil])
    #expect(network.requests(for: other).map(\.method) == [.head])
  }

  @Test("only bodies that are released before their end are counted")
  func cancelledBodies() async throws {
    network.serve(url) { _ in .ok("0123456789").chunked(by: 5) }
    _ = try await network.text(url)
    #expect(network.cancelledBodies == 0)
    try await network.get(url).body.source.cancel()
    #expect(network.cancelledBodies == 1)
    var dropped: DownloadResponse? = try await network.get(url)
    #expect(dropped != nil)
    dropped = nil
    #expect(network.cancelledBodies == 2)
  }
}
