#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// An origin and a downloader with sockets. Both are closed in order, even if the test fails.
private struct SocketFixture {
  let origin: OriginServer
  let session: SessionDownloader
  let recorder = RetryRecorder()

  var policy: RetryPolicy {
    var policy = RetryPolicy.eager(5)
    policy.onRetry = Delegate { [recorder] in recorder.record($0) }
    return policy
  }

  var downloader: some Downloader { session.resuming(policy).retrying(policy) }

  static func run(_ body: (SocketFixture) async throws -> Void) async throws {
    let origin = try await OriginServer.start()
    let session = SessionDownloader.patient()
    let result: Result<Void, any Error>
    do { result = .success(try await body(SocketFixture(origin: origin, session: session))) } catch { result = .failure(error) }
    session.close()
    await origin.stop()
    try result.get()
  }

  func request(_ path: String = "/image") throws -> DownloadRequest {
    DownloadRequest(head: try HTTPRequest(resource: origin.url(path)))
  }

  /// Sets a closure that returns the n-th response of a path, from 1.
  func serve(_ path: String = "/image", _ handler: @escaping @Sendable (Int) -> OriginResponse) {
    let count = Lock(0)
    origin.setRoute(
      path,
      Route(handler: { _ in
        handler(
          count.withLock { count in
            count += 1
            return count
          })
      }))
  }

  func read(_ path: String = "/image") async -> (Data, CacheError?, TransferMetrics) {
    var data = Data()
    var metrics = TransferMetrics()
    do {
      let response = try await downloader.download(request(path))
      defer { metrics = response.metrics() }
      for try await chunk in response.body { data.append(chunk) }
      metrics = response.metrics()
      return (data, nil, metrics)
    } catch {
      return (data, error as? CacheError, metrics)
    }
  }
}

@Suite("Retries and resumption with sockets")
struct RetryOriginTests {
  private let bytes = pattern(300_000)

  private func originResponse(
    _ bytes: Data, tag: OriginETag? = "v1", cut: Int? = nil, ranges: Bool = true, fields: HTTPFields = [:], modified: Date? = nil
  ) -> OriginResponse {
    OriginResponse(
      bytes, contentType: "image/png", etag: tag, lastModified: modified, fields: fields, acceptsRanges: ranges,
      delivery: OriginDelivery(fault: cut.map { .cut(afterBodyBytes: $0) }))
  }

  @Test("a body cut in the middle is resumed with the missing bytes")
  func cut() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { originResponse(bytes, cut: $0 == 1 ? 150_000 : nil) }
      let (data, error, metrics) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
      let requests = fixture.origin.requests(for: "/image")
      #expect(requests.map { $0.fields[.range] } == [nil, "bytes=150000-"])
      #expect(requests.last?.fields[.ifRange] == #""v1""#)
      #expect(metrics.attempts == 2)
      #expect(metrics.bytesOnWire == 300_000 && metrics.bytesDecoded == 300_000)
      #expect(fixture.recorder.delays == [.zero])
    }
  }

  @Test("three interruptions transfer no byte twice")
  func three() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { originResponse(bytes, cut: $0 < 4 ? 60_000 : nil) }
      let (data, error, metrics) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
      #expect(
        fixture.origin.requests(for: "/image").map { $0.fields[.range] }
          == [nil, "bytes=60000-", "bytes=120000-", "bytes=180000-"])
      #expect(metrics.attempts == 4)
      #expect(metrics.bytesOnWire == 300_000)
    }
  }

  @Test("a reset body is resumed like a cut one")
  func reset() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { [bytes] number in
        OriginResponse(
          bytes, etag: "v1", acceptsRanges: true,
          delivery: OriginDelivery(fault: number == 1 ? .reset(afterBodyBytes: 50_000) : nil))
      }
      let (data, error, _) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
    }
  }

  @Test("a body is resumed by a date that is old enough")
  func date() async throws {
    try await SocketFixture.run { fixture in
      let yesterday = Date(timeIntervalSinceNow: -86_400)
      fixture.serve { originResponse(bytes, tag: nil, cut: $0 == 1 ? 150_000 : nil, modified: yesterday) }
      let (data, error, _) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
      #expect(fixture.origin.requests(for: "/image").last?.fields[.ifRange]?.hasSuffix("GMT") == true)
    }
  }

  @Test("a resource that changes is not mixed, and the reader gets bodyInterrupted")
  func changed() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { $0 == 1 ? originResponse(bytes, cut: 150_000) : originResponse(Data(bytes.reversed()), tag: "v2") }
      let (data, error, _) = await fixture.read()
      #expect(error?.code == .bodyInterrupted)
      #expect(error?.attempt == 2)
      #expect(data == bytes.prefix(150_000))
    }
  }

  @Test("a weak tag does not identify bytes, so no range is requested", arguments: [true, false])
  func weak(_ isWeak: Bool) async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { originResponse(bytes, tag: isWeak ? .weak("v1") : nil, cut: $0 == 1 ? 150_000 : nil) }
      let (data, error, _) = await fixture.read()
      #expect(error?.code == .bodyInterrupted)
      #expect(data == bytes.prefix(150_000))
      #expect(fixture.origin.requests(for: "/image").map { $0.fields[.range] } == [nil])
    }
  }

  @Test("a server that ignores ranges sends the whole body, and the received bytes are skipped")
  func ignored() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { originResponse(bytes, cut: $0 == 1 ? 150_000 : nil, ranges: false) }
      let (data, error, metrics) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
      #expect(metrics.bytesOnWire == 450_000 && metrics.bytesDecoded == 300_000)
    }
  }

  @Test("a server without ranges gets no range request")
  func none() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { originResponse(bytes, cut: $0 == 1 ? 150_000 : nil, ranges: false, fields: [.acceptRanges: "none"]) }
      let (_, error, _) = await fixture.read()
      #expect(error?.code == .bodyInterrupted)
      #expect(fixture.origin.counters(for: "/image").requests == 1)
    }
  }

  @Test(
    "a part other than the requested one is not used",
    arguments: ["bytes 149999-299999/300000", "bytes 150000-299999/400000", "bytes */300000"])
  func wrongPart(_ range: String) async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { number in
        if number == 1 { return originResponse(bytes, cut: 150_000) }
        return OriginResponse(bytes.dropFirst(150_000), etag: "v1", fields: [.contentRange: range], status: .partialContent)
      }
      let (data, error, _) = await fixture.read()
      #expect(error?.code == .bodyInterrupted)
      #expect(data == bytes.prefix(150_000))
    }
  }

  @Test("the Retry-After of a 503 is respected, and the next response is returned")
  func busy() async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { number in
        number == 1
          ? OriginResponse(text: "busy", status: .serviceUnavailable, fields: [.retryAfter: "7"]) : originResponse(bytes)
      }
      let clock = ImmediateClock()
      let response = try await fixture.session.retrying(fixture.policy, clock: clock).download(fixture.request())
      #expect(response.head.status == .ok)
      #expect(try await response.body.collect() == bytes)
      #expect(clock.uptime == .seconds(7))
      #expect(fixture.origin.counters(for: "/image").requests == 2)
    }
  }

  @Test("a connection that fails before the head is retried", arguments: [OriginFault.closeBeforeHead, .resetBeforeHead])
  func beforeHead(_ fault: OriginFault) async throws {
    try await SocketFixture.run { fixture in
      fixture.serve { $0 < 3 ? OriginResponse(text: "", delivery: .fault(fault)) : originResponse(bytes) }
      let (data, error, _) = await fixture.read()
      #expect(error == nil)
      #expect(data == bytes)
    }
  }

  @Test("a port without a server fails after the last attempt with the last error")
  func refused() async throws {
    // Not the port of a stopped origin, because the system may assign it to the next one.
    let url = try #require(URL(string: "http://127.0.0.1:1/image"))
    let session = SessionDownloader.patient()
    let asked = DownloadRequest(head: try HTTPRequest(resource: url))
    let error = await failure { _ = try await session.resuming(.eager(3)).retrying(.eager(3)).download(asked) }
    #expect(error?.code == .connectionRefused)
    #expect(error?.attempt == 3)
    #expect((error?.underlying as? FailureHistory)?.failures.count == 3)
    session.close()
  }
}
#endif
