#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// Hooks that record their calls and respond as a test specifies. The hooks retain the recorder.
final class RecordingHooks: Sendable {
  typealias Chunk = @Sendable (Data, DownloadExchange) async throws(CacheError) -> Data

  let calls = Recorder<String>()
  let exchanges = Recorder<DownloadExchange>()
  private let start: @Sendable (DownloadExchange) -> Void
  private let valid: @Sendable (HTTPResponse.Status) -> Bool
  private let verdict: DownloadVerdict
  private let chunk: Chunk

  init(
    start: @escaping @Sendable (DownloadExchange) -> Void = { _ in },
    valid: @escaping @Sendable (HTTPResponse.Status) -> Bool = { _ in true }, verdict: DownloadVerdict = .proceed,
    chunk: @escaping Chunk = { (data, _) in data }
  ) {
    (self.start, self.valid, self.verdict, self.chunk) = (start, valid, verdict, chunk)
  }

  var hooks: DownloaderHooks {
    DownloaderHooks {
      $0.onRequestSent = Delegate { [self] exchange in
        calls.record("sent")
        exchanges.record(exchange)
        start(exchange)
      }
      $0.onValidStatusCode = Delegate { [self] exchange in
        calls.record("status \(exchange.response?.status.code ?? 0)")
        return exchange.response.map { valid($0.status) } ?? false
      }
      $0.onResponseReceived = AsyncDelegate { [self] _ in
        calls.record("response")
        return verdict
      }
      $0.onDataReceived = AsyncDelegate { [self] exchange in
        calls.record("data")
        return try await chunk(exchange.data, exchange)
      }
      $0.onDownloadingFinished = Delegate { [self] exchange in
        calls.record(
          exchange.error.map { "failed \($0.code.rawValue)" } ?? "finished \(exchange.response?.status.code ?? 0)")
      }
    }
  }
}

@Suite("Download hooks", .timeLimit(.minutes(30))) struct HooksTests {
  private func fetch(_ fixture: Fixture, _ hooks: RecordingHooks, fields: HTTPFields = [:]) async throws -> Data {
    fixture.downloader.hooks = hooks.hooks
    return try await fixture.get("/a", fields: fields).body.collect()
  }

  @Test("hooks are called in order with their arguments")
  func order() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let hooks = RecordingHooks()

      #expect(try await fetch(fixture, hooks) == pattern(100))

      #expect(hooks.calls.values == ["sent", "status 200", "response", "data", "finished 200"])
    }
  }

  @Test("hooks that are not set change nothing")
  func defaults() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(70_000), status: .notFound))
      fixture.downloader.hooks.onDownloadingFinished = Delegate { _ in }

      let response = try await fixture.get("/a")

      #expect(response.head.status == .notFound)
      #expect(response.body.length == 70_000)
      #expect(try await response.body.collect() == pattern(70_000))
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
      fixture.downloader.hooks = byStatus.hooks
      let first = await fixture.failure(of: try fixture.request("/a"))
      #expect(first?.code == .unacceptableStatus)
      #expect(first?.status == 404)
      #expect(byStatus.calls.values == ["sent", "status 404", "failed unacceptableStatus"])

      let byHead = RecordingHooks(verdict: .refuse("not an image"))
      fixture.downloader.hooks = byHead.hooks
      let second = await fixture.failure(of: try fixture.request("/a"))
      #expect(second?.code == .refused)
      #expect(second?.reason == "not an image")
      #expect(second?.status == 404)
      #expect(byHead.calls.values == ["sent", "status 404", "response", "failed refused"])
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("hooks may replace bytes by as many others, or by any number after announcing it")
  func replaced() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let same = RecordingHooks(chunk: { (data, _) in Data(data.map { ~$0 }) })
      #expect(try await fetch(fixture, same) == Data(pattern(100).map { ~$0 }))

      let more = RecordingHooks(verdict: .proceedReplacingBody, chunk: { (data, _) in data + data })
      fixture.downloader.hooks = more.hooks
      let response = try await fixture.get("/a")
      #expect(response.head.headerFields[.contentLength] == nil)
      #expect(response.head.headerFields[.acceptRanges] == "none")
      #expect(response.body.length == nil)
      #expect(try await response.body.collect() == pattern(100) + pattern(100))
      #expect(more.calls.values.last == "finished 200")

      let unannounced = RecordingHooks(chunk: { (data, _) in data + data })
      fixture.downloader.hooks = unannounced.hooks
      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .invalidConfiguration)
    }
  }

  @Test("hooks may drop bytes, and the reader gets no empty chunk")
  func swallowed() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(70_000)))
      let hooks = RecordingHooks(verdict: .proceedReplacingBody, chunk: { (_, _) in Data() })

      #expect(try await fetch(fixture, hooks).isEmpty)

      #expect(hooks.calls.values.last == "finished 200")
    }
  }

  @Test("hooks learn of a failure in the body and of a released body, and a response without a body is complete when unread")
  func ends() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/cut", Route(pattern(1000), delivery: .fault(.cut(afterBodyBytes: 400))))
      fixture.origin.setRoute("/held", Route(pattern(1000), delivery: OriginDelivery(bodyGate: Gate())))
      fixture.origin.setRoute("/none", Route(Data(), status: .noContent))
      let hooks = RecordingHooks()
      fixture.downloader.hooks = hooks.hooks

      #expect(await fixture.failure(of: try fixture.request("/cut"))?.code == .truncatedBody)
      #expect(hooks.calls.values.last == "failed truncatedBody")
      // The thread that releases the body last reports it, possibly after this point.
      _ = try await fixture.get("/held").head
      try await Polling.until { hooks.calls.values.last == "failed cancelled" }
      _ = try await fixture.get("/none").head
      try await Polling.until { hooks.calls.values.last == "finished 204" }
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
      fixture.downloader.hooks = hooks.hooks
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

  @Test("a hook does not retain its target, and the next download has none")
  func weaklyHeld() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      weak var observed: Recorder<Int>?
      do {
        let screen = Recorder<Int>()
        observed = screen
        fixture.downloader.hooks.onValidStatusCode.delegate(on: screen) { (screen, exchange) in
          screen.record(exchange.response?.status.code ?? 0)
          return false
        }
        #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .unacceptableStatus)
        #expect(screen.values == [200])
      }

      #expect(observed == nil && !fixture.downloader.hooks.onValidStatusCode.isSet)
      #expect(try await fixture.get("/a").body.collect() == pattern(5))
    }
  }

  @Test("a hook gets the whole body, and a cancellation or the request's time limit ends it", arguments: [false, true])
  func wholeBody(isByTime: Bool) async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(70_000)))
      fixture.downloader.hooks.onBodyReceived = AsyncDelegate { Data($0.data.reversed()) }
      let response = try await fixture.get("/a")
      #expect(response.body.length == 70_000 && response.head.headerFields[.contentLength] == "70000")
      #expect(try await response.body.collect() == Data(pattern(70_000).reversed()))

      let gate = Gate()
      fixture.downloader.hooks.onBodyReceived = AsyncDelegate { exchange in
        await gate.pass()
        return exchange.data
      }
      let ends = Recorder<CacheError.Code?>()
      fixture.downloader.hooks.onDownloadingFinished = Delegate { ends.record($0.error?.code) }
      let handle = DownloadTask()
      let request = try fixture.request("/a", timeout: .seconds(1))
      let task = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(request, as: handle)
          return nil
        } catch { return error }
      }
      await gate.arrived()
      if isByTime {
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
      } else {
        handle.cancel()
      }
      #expect(await task.value?.code == (isByTime ? .timedOut : .cancelled))
      #expect(ends.values == [isByTime ? .timedOut : .cancelled])
    }
  }

  @Test("a download that is cancelled before it begins calls no hook")
  func cancelledBefore() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let (hooks, handle) = (RecordingHooks(), DownloadTask())
      fixture.downloader.hooks = hooks.hooks
      handle.cancel()
      let request = try fixture.request("/a")
      await #expect { try await fixture.downloader.download(request, as: handle) } throws: {
        ($0 as? CacheError)?.isCancellation == true
      }
      #expect(hooks.calls.values.isEmpty && fixture.origin.requests.isEmpty)
    }
  }

  @Test("a hook may refuse a chunk with any error, also with the one of a second reader")
  func misuse() async throws {
    let url = try #require(URL(string: "https://origin/a"))
    let network = ScriptedDownloader()
    network.respond(to: url, with: .ok("hello"))
    let hooks = RecordingHooks(chunk: { (_, _) throws(CacheError) in throw CacheError(.misuse, reason: "not for me") })
    let engine = network.hooked(by: hooks.hooks)
    let response = try await engine.download(DownloadRequest(head: try HTTPRequest(resource: url)))
    let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
    #expect(error?.reason == "not for me")
    #expect(hooks.calls.values == ["sent", "status 200", "response", "data", "failed misuse"])
    withExtendedLifetime(response) {}
  }

  @Test("hooks work with any engine")
  func anyEngine() async throws {
    let url = try #require(URL(string: "https://origin/a"))
    let network = ScriptedDownloader()
    network.respond(to: url, with: .ok("hello"), .failure(.connectionLost))
    let hooks = RecordingHooks()
    let engine = network.hooked(by: hooks.hooks)
    let request = DownloadRequest(head: try HTTPRequest(resource: url), attempt: 3)

    #expect(try await engine.download(request).body.collect() == Data("hello".utf8))
    await #expect(throws: CacheError.self) { try await engine.download(request) }

    #expect(hooks.calls.values.prefix(3) == ["sent", "status 200", "response"])
    #expect(hooks.calls.values.suffix(3) == ["finished 200", "sent", "failed connectionLost"])
    #expect(hooks.exchanges.values.map(\.attempt) == [3, 3])
  }
}

@Suite("Slow hooks", .timeLimit(.minutes(30))) struct SlowHooksTests {
  @Test("a hook that judges a response is cancelled by the handle and by the request's time limit", arguments: [false, true])
  func suspending(_ isByTime: Bool) async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let gate = Gate()
      fixture.downloader.hooks.onResponseReceived = AsyncDelegate { _ in
        await gate.pass()
        return .proceed
      }
      let ends = Recorder<CacheError.Code?>()
      fixture.downloader.hooks.onDownloadingFinished = Delegate { ends.record($0.error?.code) }
      let handle = DownloadTask()
      let request = try fixture.request("/a", timeout: .seconds(1))
      let task = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(request, as: handle).body.collect()
          return nil
        } catch { return error }
      }
      await gate.arrived()
      if isByTime {
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
      } else {
        handle.cancel()
      }
      #expect(await task.value?.code == (isByTime ? .timedOut : .cancelled))
      #expect(ends.values == [isByTime ? .timedOut : .cancelled])
    }
  }
}
#endif
