#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// Hooks that record their calls and respond as a test specifies.
final class RecordingHooks: DownloaderHooks {
  typealias Chunk = @Sendable (Data, DownloadExchange) async throws(CacheError) -> Data

  let calls = Recorder<String>()
  let exchanges = Recorder<DownloadExchange>()
  private let start: @Sendable (DownloadExchange) -> Void
  private let valid: @Sendable (HTTPResponse.Status) -> Bool
  private let verdict: DownloadVerdict
  private let chunk: Chunk
  let decodedDataLimit: Int

  init(
    start: @escaping @Sendable (DownloadExchange) -> Void = { _ in },
    valid: @escaping @Sendable (HTTPResponse.Status) -> Bool = { _ in true }, verdict: DownloadVerdict = .proceed,
    chunk: @escaping Chunk = { (data, _) in data }, decodedDataLimit: Int = 0
  ) {
    (self.start, self.valid, self.verdict, self.chunk) = (start, valid, verdict, chunk)
    self.decodedDataLimit = decodedDataLimit
  }

  func willStart(_ exchange: DownloadExchange) {
    calls.record("will start")
    exchanges.record(exchange)
    start(exchange)
  }

  func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool {
    calls.record("status \(status.code)")
    return valid(status)
  }

  func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict {
    calls.record("response")
    return verdict
  }

  func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data {
    calls.record("data")
    return try await chunk(data, exchange)
  }

  func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>) {
    switch result {
    case .success(let head): calls.record("finished \(head.status.code)")
    case .failure(let error): calls.record("failed \(error.code.rawValue)")
    }
  }

  func decoded(_ body: Data?, count: Int64, of exchange: DownloadExchange) {
    calls.record("decoded \(count) \(body.map { "\($0.count)" } ?? "-")")
  }
}

@Suite("Download hooks", .timeLimit(.minutes(30))) struct HooksTests {
  private final class Silent: DownloaderHooks {}

  private func fetch(_ fixture: Fixture, _ hooks: RecordingHooks, fields: HTTPFields = [:]) async throws -> Data {
    fixture.downloader.hooks = hooks
    return try await fixture.get("/a", fields: fields).body.collect()
  }

  @Test("hooks are called in order with their arguments")
  func order() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let hooks = RecordingHooks()

      #expect(try await fetch(fixture, hooks) == pattern(100))

      #expect(hooks.calls.values == ["will start", "status 200", "response", "data", "finished 200", "decoded 100 -"])
    }
  }

  @Test("hooks with default implementations change nothing")
  func defaults() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(70_000), status: .notFound))
      let hooks = Silent()
      fixture.downloader.hooks = hooks

      let response = try await fixture.get("/a")

      #expect(response.head.status == .notFound)
      #expect(response.body.length == 70_000)
      #expect(try await response.body.collect() == pattern(70_000))
      #expect(fixture.downloader.hooks != nil)
    }
  }

  @Test("hooks are retained weakly")
  func weaklyHeld() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      var hooks: RecordingHooks? = RecordingHooks(valid: { _ in false })
      fixture.downloader.hooks = hooks
      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .unacceptableStatus)
      hooks = nil

      #expect(fixture.downloader.hooks == nil)
      #expect(try await fixture.get("/a").body.collect() == pattern(5))
    }
  }

  @Test("hooks see the request as it is sent, with the fields that the configuration adds")
  func request() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.additionalHeaders = [.accept: "image/*"]
    configuration.userAgent = "Test/1"
    try await Fixture.run(configuration) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let hooks = RecordingHooks()

      #expect(try await fetch(fixture, hooks) == pattern(5))

      let seen = try #require(hooks.exchanges.values.first?.request)
      #expect(seen.path == "/a")
      #expect(seen.headerFields[.accept] == "image/*")
      #expect(seen.headerFields[.userAgent] == "Test/1")
    }
  }

  @Test("hooks may refuse a response by its status or its head, and the body is not read")
  func refusedResponse() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5000), status: .notFound, delivery: OriginDelivery(bodyGate: Gate())))
      let byStatus = RecordingHooks(valid: { $0.kind == .successful })
      fixture.downloader.hooks = byStatus
      let first = await fixture.failure(of: try fixture.request("/a"))
      #expect(first?.code == .unacceptableStatus)
      #expect(first?.status == 404)
      #expect(byStatus.calls.values == ["will start", "status 404", "failed unacceptableStatus"])

      let byHead = RecordingHooks(verdict: .refuse("not an image"))
      fixture.downloader.hooks = byHead
      let second = await fixture.failure(of: try fixture.request("/a"))
      #expect(second?.code == .refused)
      #expect(second?.reason == "not an image")
      #expect(second?.status == 404)
      #expect(byHead.calls.values == ["will start", "status 404", "response", "failed refused"])
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("hooks may replace bytes by as many others, or by any number after announcing it")
  func replaced() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let same = RecordingHooks(chunk: { (data, _) in Data(data.map { ~$0 }) })
      #expect(try await fetch(fixture, same) == Data(pattern(100).map { ~$0 }))

      let more = RecordingHooks(verdict: .proceedReplacingBody, chunk: { (data, _) in data + data }, decodedDataLimit: 200)
      fixture.downloader.hooks = more
      let response = try await fixture.get("/a")
      #expect(response.head.headerFields[.contentLength] == nil)
      #expect(response.head.headerFields[.acceptRanges] == "none")
      #expect(response.body.length == nil)
      #expect(try await response.body.collect() == pattern(100) + pattern(100))
      #expect(more.calls.values.suffix(2) == ["finished 200", "decoded 200 200"])

      let unannounced = RecordingHooks(chunk: { (data, _) in data + data })
      fixture.downloader.hooks = unannounced
      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .invalidConfiguration)
    }
  }

  @Test("hooks may drop bytes, and the reader gets no empty chunk")
  func swallowed() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(70_000)))
      let hooks = RecordingHooks(verdict: .proceedReplacingBody, chunk: { (_, _) in Data() })

      #expect(try await fetch(fixture, hooks).isEmpty)

      #expect(hooks.calls.values.suffix(2) == ["finished 200", "decoded 0 -"])
    }
  }

  @Test("hooks get the decoded bytes up to their limit, and only the number beyond it", arguments: [(100, true), (99, false)])
  func decodedLimit(limit: Int, isKept: Bool) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let hooks = RecordingHooks(decodedDataLimit: limit)
      _ = try await fetch(fixture, hooks)
      #expect(hooks.calls.values.last == (isKept ? "decoded 100 100" : "decoded 100 -"))
    }
  }

  @Test("hooks learn of a failure in the body and of a released body, and a response without a body is complete when unread")
  func ends() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/cut", Route(pattern(1000), delivery: .fault(.cut(afterBodyBytes: 400))))
      fixture.origin.setRoute("/held", Route(pattern(1000), delivery: OriginDelivery(bodyGate: Gate())))
      fixture.origin.setRoute("/none", Route(Data(), status: .noContent))
      let hooks = RecordingHooks()
      fixture.downloader.hooks = hooks

      #expect(await fixture.failure(of: try fixture.request("/cut"))?.code == .truncatedBody)
      #expect(hooks.calls.values.last == "failed truncatedBody")
      // The thread that releases the body last reports it, possibly after this point.
      _ = try await fixture.get("/held").head
      try await Turns.until { hooks.calls.values.last == "failed cancelled" }
      _ = try await fixture.get("/none").head
      try await Turns.until { hooks.calls.values.last == "finished 204" }
    }
  }

  @Test("a slow hook and a refusing hook do not affect other downloads")
  func apart() async throws {
    try await Fixture.run { fixture async throws in
      let (bodyGate, slowGate) = (Gate(), Gate())
      fixture.origin.setRoute("/a", Route(pattern(300_000), delivery: OriginDelivery(bodyGate: bodyGate)))
      let order = Recorder<UInt64>()
      let hooks = RecordingHooks(
        start: { order.record($0.id) },
        chunk: { (data, exchange) throws(CacheError) in
          switch order.values.firstIndex(of: exchange.id) {
          case 0: await slowGate.pass()
          case 1: throw CacheError(.refused, reason: "not for me")
          default: break
          }
          return data
        })
      fixture.downloader.hooks = hooks
      let slow = try await fixture.get("/a")
      let refusing = try await fixture.get("/a")
      let third = try await fixture.get("/a")
      let slowBytes = Task { try await slow.body.collect() }
      bodyGate.open()

      #expect(try await third.body.collect() == pattern(300_000), "while the first is waiting")
      let error = await #expect(throws: CacheError.self) { try await refusing.body.collect() }
      #expect(error?.reason == "not for me")
      await slowGate.arrived()
      slowGate.open()
      #expect(try await slowBytes.value == pattern(300_000))
    }
  }

  @Test("hooks work with any engine")
  func anyEngine() async throws {
    let url = try #require(URL(string: "https://origin/a"))
    let network = ScriptedDownloader()
    network.respond(to: url, with: .ok("hello"), .failure(.connectionLost))
    let hooks = RecordingHooks(decodedDataLimit: 100)
    let engine = network.hooked(by: hooks)
    let request = DownloadRequest(head: try HTTPRequest(resource: url), attempt: 3)

    #expect(try await engine.download(request).body.collect() == Data("hello".utf8))
    await #expect(throws: CacheError.self) { try await engine.download(request) }

    #expect(hooks.calls.values.prefix(3) == ["will start", "status 200", "response"])
    #expect(hooks.calls.values.suffix(4) == ["finished 200", "decoded 5 5", "will start", "failed connectionLost"])
    #expect(hooks.exchanges.values.map(\.attempt) == [3, 3])
  }
}

private final class SuspendingHooks: DownloaderHooks {
  let gate = Gate()

  func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict {
    await gate.pass()
    return .proceed
  }
}

@Suite("Slow hooks", .timeLimit(.minutes(30))) struct SlowHooksTests {
  @Test("a hook that judges a response is cancelled by the handle and by the request's time limit", arguments: [false, true])
  func suspending(_ isByTime: Bool) async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let hooks = SuspendingHooks()
      fixture.downloader.hooks = hooks
      let handle = DownloadTask()
      let request = try fixture.request("/a", timeout: .seconds(1))
      let task = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(request, as: handle).body.collect()
          return nil
        } catch { return error }
      }
      await hooks.gate.arrived()
      if isByTime {
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
      } else {
        handle.cancel()
      }
      #expect(await task.value?.code == (isByTime ? .timedOut : .cancelled))
    }
  }
}
#endif
