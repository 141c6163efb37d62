import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("The events of a load")
struct LoadEventTests {
  private let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  private var observer: RecordingObserver { fixture.observer }

  /// The events of all loads in order, as words.
  private var words: [String] {
    observer.events.compactMap { event in
      switch event {
      case .hit(_, let source, _): "hit: \(source.rawValue)"
      case .started: "started"
      case .joined: "joined"
      case .requestSent(_, _, let isConditional, _): isConditional ? "asked" : "requested"
      case .responseReceived(_, let status, _): "\(status)"
      case .transferEnded(_, let metrics, let error, _): error.map { "\($0.code.rawValue)" } ?? "\(metrics.bytesOnWire) bytes"
      case .stored(_, let layer, _, _): layer == .memory ? "in memory" : "on disk"
      case .transformed(_, let origin, _): "\(origin.rawValue) value"
      case .storeFailed, .readFailed: "store failed"
      case .revalidated: "confirmed"
      case .backgroundFailed: "background failed"
      case .workEnded: nil
      case .finished(_, let source, let fallbackReason, let error, _):
        "finished: \(source?.rawValue ?? error?.code.rawValue ?? "-")"
          + (fallbackReason.map { ", stale: \($0.code.rawValue)" } ?? "")
      }
    }
  }

  /// The number of requests that were sent, and of transfers that have ended.
  private var transfers: (sent: Int, ended: Int) {
    observer.events.reduce(into: (0, 0)) { counts, event in
      if case .requestSent = event { counts.0 += 1 }
      if case .transferEnded = event { counts.1 += 1 }
    }
  }

  @Test("a load from the network starts, sends, receives, stores and ends, in this order")
  func network() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    #expect(
      words == ["started", "requested", "200", "5 bytes", "on disk", "in memory", "finished: network"])
  }

  @Test("a hit in memory has one event")
  func hits() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    let before = words.count
    _ = try await fixture.manager.load(fixture.url)
    _ = fixture.manager.cachedInMemory(fixture.url)
    #expect(Array(words.dropFirst(before)) == ["hit: memory", "hit: memory"])
  }

  @Test("a memory lookup that finds nothing, or only a stale response, has no event")
  func looks() async throws {
    let options = RequestOptions.policy(.staleWhileRevalidate)
    _ = fixture.manager.cachedInMemory(fixture.url, options: options)
    #expect(observer.events.isEmpty)

    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
    let before = words.count
    #expect(fixture.manager.cachedInMemory(fixture.url, options: options)?.isStale == true)
    #expect(words.count == before)
  }

  @Test("a revalidation that is confirmed has a transfer without bytes")
  func confirmed() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified())
    _ = try await fixture.manager.load(fixture.url)
    let before = words.count
    _ = try await fixture.manager.load(fixture.url)
    #expect(
      Array(words.dropFirst(before)) == ["started", "asked", "304", "0 bytes", "confirmed", "finished: revalidated"])
  }

  @Test("an unreachable origin, a cut body and a refused status each end their transfer once")
  func failures() async throws {
    fixture.network.respond(
      to: fixture.url, with: .failure(.connectionRefused), .ok("bytes").cut(after: 2),
      .response(.notFound, body: Data("gone".utf8)))
    for _ in 1...3 { _ = try await fixture.failure(fixture.url, .policy(.reload)) }
    #expect(transfers.sent == 3)
    // A short unwanted body is read after the load has ended.
    try await Polling.until { transfers.ended == 3 }
    #expect(words.contains("connectionRefused"))
    #expect(words.contains("truncatedBody"))
  }

  @Test("a cancelled load ends its transfer once, with a cancellation")
  func cancelled() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").bodyHeld(by: gate))
    let load = Task { try await fixture.manager.load(fixture.url) }
    await gate.arrived()
    load.cancel()
    _ = await load.result
    gate.open()
    await observer.first { if case .transferEnded = $0 { true } else { false } }
    #expect(transfers.ended == 1)
    #expect(words.contains("cancelled"))
    #expect(words.contains("finished: cancelled"))
  }

  @Test("each redirect of a chain has its own transfer, with its own metrics")
  func redirects() async throws {
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    fixture.network.respond(to: try fixture.url("/second"), with: .ok("bytes"))
    _ = try await fixture.manager.load(fixture.url)
    try await Polling.until { transfers.ended == 2 }
    let ended = observer.events.compactMap { event in
      if case .transferEnded(let url, let metrics, nil, _) = event { "\(url) \(metrics.bytesOnWire)" } else { nil }
    }
    #expect(Set(ended) == ["https://example.com/image.png 0", "https://example.com/second 5"])
  }

  @Test("the transfer of a body that has already arrived ends after its head")
  func wholeBody() async throws {
    let network = ClosureDownloader { _ throws(CacheError) in
      DownloadResponse(
        head: HTTPResponse(status: .ok), body: ResourceBody(Data("bytes".utf8)), metrics: { TransferMetrics(bytesOnWire: 5) })
    }
    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.downloader = .use(network) })
    #expect(words.prefix(4) == ["started", "requested", "200", "5 bytes"])
    #expect(transfers.ended == 1)
  }

  @Test("the events of a value and of an entry state their durations")
  func durations() async throws {
    let store = HeldStore(clock: fixture.clock)
    let commit = store.hold(.commit)
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    let (clock, url) = (fixture.clock, fixture.url)
    let slow = ResourceTransform<String>(id: "slow", cost: { _ in 1 }) { _, _ throws(CacheError) in
      clock.advance(by: .seconds(3))
      return "value"
    }
    let options = RequestOptions { $0.store = .use(store) }
    async let load = fixture.manager.load(url, as: slow, options: options)
    await commit.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    commit.open()
    _ = try await load
    let durations: [String: Duration] = observer.events.reduce(into: [:]) { durations, event in
      switch event {
      case .stored(_, .disk, _, let duration): durations["disk"] = duration
      case .transformed(_, .transformed, let duration): durations["value"] = duration
      default: break
      }
    }
    #expect(durations == ["disk": .milliseconds(10), "value": .seconds(3)])
  }

  // MARK: HTTP requests

  @Test("an HTTP request ends with its body, after the transfer")
  func response() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"), .notModified())
    let response = try await fixture.exchange()
    #expect(words == ["started", "requested", "200"])
    fixture.clock.advance(by: .seconds(9))
    _ = try await response.body.collect()
    #expect(
      words == ["started", "requested", "200", "5 bytes", "on disk", "in memory", "finished: network"])
    // The time in which the caller reads the body is not a part of the duration.
    #expect(observer.events.contains { if case .finished(_, _, _, _, .zero) = $0 { true } else { false } })

    let before = words.count
    _ = try await fixture.send()
    #expect(Array(words.dropFirst(before)) == ["hit: memory"])

    fixture.clock.advance(by: .seconds(61))
    _ = try await fixture.send()
    #expect(words.last == "finished: revalidated")
  }

  @Test("an HTTP request whose body is abandoned ends its transfer with a cancellation")
  func abandoned() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes").chunked(by: 1))
    var response: CachedResponse? = try await fixture.exchange()
    _ = try await response?.body.source.next()
    response?.body.source.cancel()
    response = nil
    #expect(words.contains("cancelled"))
    #expect(transfers.ended == 1)
    #expect(words.filter { $0.hasPrefix("finished") } == ["finished: cancelled"])
  }

  @Test("an HTTP request whose body is released without being read ends with a cancellation")
  func released() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes").chunked(by: 1))
    _ = try await fixture.exchange()
    try await Polling.until { words.contains("finished: cancelled") }
    #expect(words.count { $0.hasPrefix("finished") } == 1)
  }

  @Test("an HTTP request whose body breaks off ends with the error", arguments: [true, false])
  func broken(_ statesLength: Bool) async throws {
    let response = ScriptedResponse.ok("bytes", cacheControl: "max-age=60").cut(after: 2)
    fixture.network.respond(to: fixture.url, with: statesLength ? response : response.withoutLength())
    let cut = try await fixture.exchange()
    await #expect(throws: CacheError.self) { try await cut.body.collect() }
    #expect(words == ["started", "requested", "200", "truncatedBody", "finished: truncatedBody"])
  }

  @Test("a stored body that breaks off ends its HTTP request with the error")
  func brokenOnDisk() async throws {
    // A smaller body is read before the response, and a damaged one is a miss.
    let fixture = try ManagerFixture { $0.maximumBodyInMemory = 2 }
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    let store = HeldStore(clock: fixture.clock, bodyError: CacheError(.damagedEntry, reason: "a checksum is wrong"))
    let options = RequestOptions {
      $0.memory = .disabled
      $0.store = .use(store)
    }
    _ = try await fixture.send(options: options)
    let response = try await fixture.exchange(options: options)
    #expect(response.source == .disk)
    await #expect(throws: CacheError.self) { try await response.body.collect() }
    let ends = fixture.observer.events.compactMap { event in
      if case .finished(_, let source, _, let error, _) = event {
        "\(source?.rawValue ?? "-") \(error?.code.rawValue ?? "-")"
      } else {
        nil
      }
    }
    #expect(ends == ["network -", "- damagedEntry"])
  }

  @Test(
    "an HTTP request without content ends with its head",
    arguments: [HTTPRequest.Method.head, .get])
  func withoutContent(_ method: HTTPRequest.Method) async throws {
    let status: HTTPResponse.Status = method == .head ? .ok : .noContent
    let network = ClosureDownloader { _ throws(CacheError) in
      DownloadResponse(head: HTTPResponse(status: status), body: ResourceBody(length: nil, source: ChunkedBody([])))
    }
    _ = try await fixture.exchange([:], method, options: RequestOptions { $0.downloader = .use(network) })
    #expect(words.contains("finished: network") && !words.contains("finished: cancelled"))
  }

  @Test("a stale response ends its load with the reason", arguments: [true, false])
  func stale(_ isLoad: Bool) async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-if-error=600"),
      .failure(.connectionRefused), .response(.serviceUnavailable, fields: [.retryAfter: "120"]))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
    for _ in 1...2 {
      if isLoad { _ = try await fixture.manager.load(fixture.url) } else { _ = try await fixture.send() }
    }
    #expect(
      words.filter { $0.hasPrefix("finished") } == [
        "finished: network", "finished: memory, stale: connectionRefused", "finished: memory, stale: unacceptableStatus",
      ])
    let reasons = observer.events.compactMap { event in
      if case .finished(_, _, let reason?, _, _) = event {
        "\(reason.url ?? "") \(reason.status ?? 0) \(reason.attempt ?? 0)"
      } else {
        nil
      }
    }
    #expect(reasons == ["\(fixture.url) 0 1", "\(fixture.url) 503 1"])
  }

  @Test("a generated 504 and a failed origin end an HTTP request with an error")
  func withoutResponse() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.connectionRefused))
    _ = try await fixture.send([.cacheControl: "only-if-cached"])
    #expect(words == ["started", "finished: notCached"])
    await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(words.last == "finished: connectionRefused")
  }

  // MARK: The last event

  /// Waits for the last event of the first load, and returns its index among the load's events.
  private func lastEvent() async throws -> Int {
    let load = try #require(observer.loads.first)
    func index() -> Int? { observer.events(of: load).firstIndex { if case .workEnded = $0 { true } else { false } } }
    try await Polling.until { index() != nil }
    return try #require(index())
  }

  @Test("the work of a load ends once, as its last event, after a background revalidation")
  func background() async throws {
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("new", cacheControl: "max-age=60").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    #expect(try await lastEvent() == 7)
    fixture.clock.advance(by: .seconds(61))

    let stale = try await fixture.manager.load(fixture.url, options: .policy(.staleWhileRevalidate))
    await gate.arrived()
    let load = try #require(observer.loads.last)
    #expect(stale.isStale && !observer.events(of: load).contains { if case .workEnded = $0 { true } else { false } })
    gate.open()
    try await Polling.until { if case .workEnded? = observer.events(of: load).last { true } else { false } }
    #expect(words.suffix(3) == ["3 bytes", "on disk", "in memory"])
  }

  @Test("the work of a load ends after a commit for which the load did not wait")
  func slowCommit() async throws {
    let store = HeldStore(clock: fixture.clock)
    let commit = store.hold(.commit)
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    async let load = fixture.manager.load(fixture.url, options: RequestOptions { $0.store = .use(store) })
    await commit.arrived()
    await fixture.clock.sleepers(1)
    try await Polling.until {
      fixture.clock.advance(by: .milliseconds(50))
      return words.contains("finished: network")
    }
    _ = try await load
    #expect(!observer.events.contains { if case .workEnded = $0 { true } else { false } })
    commit.open()
    #expect(try await lastEvent() == observer.events.count - 1)
    #expect(words.contains("on disk"))
  }

  @Test("the work of an HTTP request ends when its body is released")
  func responseEnd() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes").withoutLength())
    var response: CachedResponse? = try await fixture.exchange()
    while try await response?.body.source.next() != nil {}
    response = nil
    #expect(try await lastEvent() == observer.events.count - 1)
    #expect(words.contains("on disk"))
  }

  @Test("a load that is cancelled before it starts has no last event without a first one")
  func balance() async throws {
    fixture.network.serve(fixture.url) { _ in .ok("bytes") }
    for _ in 0..<20 {
      let load = Task { try? await fixture.manager.load(fixture.url) }
      load.cancel()
      _ = await load.value
    }
    await fixture.manager.close()
    _ = try? await fixture.manager.load(fixture.url)
    try await Polling.until {
      observer.loads.allSatisfy { load in
        let events = observer.events(of: load)
        func count(_ matches: (CacheEvent) -> Bool) -> Int { events.count(where: matches) }
        let starts = count { if case .started = $0 { true } else { false } }
        let results = count { if case .finished = $0 { true } else { false } }
        let ends = count { if case .workEnded = $0 { true } else { false } }
        return starts == 1 && results == 1 && ends == 1
      }
    }
  }

  // MARK: URLs

  @Test(
    "the URL of an event has no password, and without its query no token",
    arguments: [
      ("https://user:hunter2@a.example/x?token=1#part", "https://a.example/x?token=1#part", "https://a.example/x"),
      ("https://a.example/x", "https://a.example/x", "https://a.example/x"),
      ("https://a.example/x#?", "https://a.example/x#?", "https://a.example/x"),
      ("data:text/plain,secret", "data:text/plain,secret", "data:text/plain"),
      ("file:///a/b?c", "file:///a/b?c", "file:///a/b"),
    ])
  func urls(_ text: String, _ description: String, _ withoutQuery: String) throws {
    let url = LoadURL(try #require(URL(string: text)))
    #expect(url.description == description)
    #expect(url.withoutQuery == withoutQuery)
  }
}
