import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Resumption of bodies")
struct ResumingTests {
  private let bytes = pattern(10_000)
  private let recorder = RetryRecorder()

  private func policy(_ maximumAttempts: Int = 4) -> RetryPolicy {
    var policy = RetryPolicy.eager(maximumAttempts)
    policy.onRetry = Delegate { [recorder] in recorder.record($0) }
    return policy
  }

  private static func part(
    _ bytes: Data, from position: Int, tag: String = #""v1""#, range: String? = nil, cut: Int? = nil
  ) -> DownloadResponse {
    let value = range ?? "bytes \(position)-\(bytes.count - 1)/\(bytes.count)"
    return .scripted(206, [.eTag: tag, .contentRange: value], bytes.dropFirst(position), cut: cut)
  }

  /// Returns a probe whose first response is cut at `first` bytes and whose later responses come from `rest`.
  private func probe(
    cut first: Int, tag: String = #""v1""#, error: CacheError = lost,
    rest: @escaping @Sendable (Int, DownloadRequest) async throws(CacheError) -> DownloadResponse
  ) -> RequestProbe {
    RequestProbe { [bytes] number, request throws(CacheError) in
      if number == 1 { return .scripted(200, [.eTag: tag], bytes, cut: first, error: error) }
      return try await rest(number, request)
    }
  }

  /// Reads to the end or to an error.
  private func read(_ response: DownloadResponse) async -> (Data, CacheError?) {
    var data = Data()
    do throws(CacheError) {
      var iterator = response.body.makeAsyncIterator()
      while let chunk = try await iterator.next() { data.append(chunk) }
      return (data, nil)
    } catch {
      return (data, error)
    }
  }

  @Test("a further request for a body reports no interim responses, which would follow the head", arguments: [false, true])
  func interim(resumes: Bool) async throws {
    let reports = Lock<[Bool]>([])
    let probe = RequestProbe { [bytes] number, request throws(CacheError) in
      reports.withLock { $0.append(request.onInterimResponse != nil) }
      if number > 1, resumes { return Self.part(bytes, from: 0) }
      return .scripted(200, [.eTag: #""v1""#], bytes, cut: number > 1 ? nil : 0)
    }
    var request = request()
    request.onInterimResponse = { _ in }
    let downloader: any Downloader = resumes ? probe.resuming(policy()) : probe.retrying(policy())
    let (data, error) = try await read(downloader.download(request))
    #expect(error == nil && data == bytes)
    #expect(reports.withLock { $0 } == [true, false])
  }

  @Test("a body is resumed at the position of its failure", arguments: [0, 1, 999, 1_000, 1_001, 5_000, 9_999])
  func resumes(_ cut: Int) async throws {
    let probe = probe(cut: cut) { [bytes] _, _ in Self.part(bytes, from: cut) }
    let response = try await probe.resuming(policy()).download(request())
    let (data, error) = await read(response)
    #expect(error == nil)
    #expect(data == bytes)
    #expect(probe.received.map { $0.head.headerFields[.range] } == [nil, "bytes=\(cut)-"])
    #expect(probe.received.map(\.attempt) == [1, 2])
    let metrics = response.metrics()
    #expect(metrics.attempts == 2)
    #expect(metrics.bytesOnWire == 10_000 && metrics.bytesDecoded == 10_000)
    #expect(metrics.timeToHead == .milliseconds(7))
    #expect(metrics.total != nil)
    #expect(response.body.length == 10_000)
    #expect(response.body.source.trailers?[.serverTiming] == "here")
  }

  @Test("a body that fails after its last byte is complete")
  func behindTheEnd() async throws {
    let probe = probe(cut: 10_000) { _, _ throws(CacheError) in throw CacheError(.other, reason: "unexpected request") }
    let (data, error) = await read(try await probe.resuming(policy()).download(request()))
    #expect(data == bytes && error == nil)
    #expect(probe.count == 1)
  }

  @Test("a body is resumed after several failures, at once the first time and then after the policy's delays")
  func several() async throws {
    let clock = ImmediateClock()
    var policy = RetryPolicy.exact(4)
    policy.onRetry = Delegate { [recorder] in recorder.record($0) }
    let probe = probe(cut: 2_000) { [bytes] number, _ in
      switch number {
      case 2: Self.part(bytes, from: 2_000, cut: 1_500)
      case 3: Self.part(bytes, from: 3_500, cut: 1)
      default: Self.part(bytes, from: 3_501)
      }
    }
    let (data, error) = await read(try await probe.resuming(policy, clock: clock).download(request()))
    #expect(data == bytes && error == nil)
    #expect(recorder.failures.map(\.receivedBytes) == [2_000, 3_500, 3_501])
    #expect(recorder.delays == [.zero, .seconds(2), .seconds(4)])
    #expect(clock.uptime == .seconds(6))
  }

  @Test("a body is resumed after a failed request for the rest")
  func failuresBetween() async throws {
    let probe = probe(cut: 2_000) { [bytes] number, _ throws(CacheError) in
      switch number {
      case 2: throw CacheError(.connectionRefused, reason: "no")
      case 3: return .scripted(503, [.retryAfter: "0"])
      default: return Self.part(bytes, from: 2_000)
      }
    }
    let (data, error) = await read(try await probe.resuming(policy()).download(request()))
    #expect(data == bytes && error == nil)
    #expect(recorder.failures.map(\.status) == [nil, nil, 503])
  }

  @Test("the last error is thrown with its history after the last attempt")
  func exhausted() async throws {
    let probe = probe(cut: 2_000) { _, _ throws(CacheError) in throw CacheError(.connectionRefused, reason: "no") }
    let response = try await probe.resuming(policy(3)).download(request())
    let (data, error) = await read(response)
    #expect(data == bytes.prefix(2_000))
    #expect(error?.code == .connectionRefused)
    #expect(error?.attempt == 3)
    #expect(
      (error?.underlying as? FailureHistory)?.failures.map(\.code) == [.connectionLost, .connectionRefused, .connectionRefused])
    // The error is final.
    let again = await failure { _ = try await response.body.source.next() }
    #expect(again?.code == .connectionRefused)
    #expect(probe.count == 3)
  }

  @Test("an unchanged complete response is skipped up to the reader's position")
  func skips() async throws {
    let probe = probe(cut: 4_321) { [bytes] number, _ in
      .scripted(200, [.eTag: #""v1""#], bytes, chunk: 700, cut: number == 2 ? 3_000 : number == 3 ? 4_400 : nil)
    }
    let response = try await probe.resuming(policy()).download(request())
    let (data, error) = await read(response)
    #expect(data == bytes && error == nil)
    #expect(recorder.failures.map(\.receivedBytes) == [4_321, 4_321, 4_400])
    #expect(response.metrics().bytesDecoded == 10_000)
    #expect(response.metrics().bytesOnWire == 4_321 + 3_000 + 4_400 + 10_000)
  }

  @Test("a response that does not match throws bodyInterrupted")
  func unfitting() async throws {
    let other = Data(bytes.reversed())
    let responses: [@Sendable () -> DownloadResponse] = [
      { Self.part(other, from: 2_000, tag: #""v2""#) },
      { Self.part(other, from: 2_000, tag: #"W/"v1""#) },
      { .scripted(200, [.eTag: #""v2""#], other) },
      { .scripted(200, [:], other) },
      { Self.part(other, from: 2_000, range: "bytes 1999-9999/10000") },
      { Self.part(other, from: 2_000, range: "bytes 2000-9999/20000") },
      { Self.part(other, from: 2_000, range: "bytes 2000-9999/*") },
      { .scripted(206, [.eTag: #""v1""#, .contentType: "multipart/byteranges; boundary=x"], other) },
      { .scripted(416, [.contentRange: "bytes */900"]) },
      { .scripted(304, [.eTag: #""v1""#]) },
      { .scripted(404) },
      { .scripted(302, [.location: "/elsewhere"]) },
    ]
    for (index, response) in responses.enumerated() {
      let probe = probe(cut: 2_000) { _, _ in response() }
      let (data, error) = await read(try await probe.resuming(policy()).download(request()))
      #expect(data == bytes.prefix(2_000), "response \(index)")
      #expect(error?.code == .bodyInterrupted, "response \(index)")
      #expect(error?.attempt == 2, "response \(index)")
      #expect(probe.count == 2)
    }
  }

  @Test("a body throws its own error if the policy has no attempt left")
  func nothingLeft() async throws {
    let probe = probe(cut: 2_000) { [bytes] _, _ in Self.part(bytes, from: 2_000, tag: #""v2""#) }
    let (_, error) = await read(try await probe.resuming(policy(2)).download(request()))
    #expect(error?.code == .connectionLost)
    #expect(error?.attempt == 2)
  }

  @Test("a body without a strong validator is passed on unchanged", arguments: [#"W/"v1""#, "v1", ""])
  func weak(_ tag: String) async throws {
    let source = BreakingBody(bytes, breaks: (2_000, lost))
    let probe = RequestProbe { _, _ in .scripted(200, tag.isEmpty ? [:] : [.eTag: tag], source, length: 10_000) }
    let response = try await probe.resuming(policy()).download(request())
    #expect(response.body.source === source)
    let (data, error) = await read(response)
    #expect(data.count == 2_000)
    #expect(error?.code == .connectionLost)
    #expect(probe.count == 1)
  }

  @Test("a body with an error that is not retried throws that error")
  func notWorthIt() async throws {
    let probe = probe(cut: 2_000, error: CacheError(.bodyTooLarge, reason: "too large")) { _, _ in .scripted() }
    let (_, error) = await read(try await probe.resuming(policy()).download(request()))
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.attempt == 1)
    #expect(probe.count == 1)
  }

  @Test("bytes are requested only when they are read")
  func pulls() async throws {
    let source = BreakingBody(bytes)
    let probe = RequestProbe { _, _ in .scripted(200, [.eTag: #""v1""#], source, length: 10_000) }
    let response = try await probe.resuming().retrying().download(request())
    #expect(source.pulls == 0)
    for pulls in 1...3 {
      _ = try await response.body.source.next()
      #expect(source.pulls == pulls)
    }
  }

  @Test("a body ends at once when it or its task is cancelled during a delay", arguments: [false, true])
  func cancelled(_ isByTask: Bool) async throws {
    let clock = ManualClock()
    let probe = probe(cut: 2_000) { _, _ throws(CacheError) in throw lost }
    let response = try await probe.resuming(.exact(9), clock: clock).download(request())
    let task = Task { await read(response) }
    await clock.sleepers(1)
    if isByTask { task.cancel() } else { response.body.source.cancel() }
    let (data, error) = await task.value
    #expect(data.count == 2_000)
    #expect(error?.isCancellation == true)
    #expect(clock.pendingSleeps == 0)
    #expect(probe.count == 2)
  }

  @Test("releasing a body stops its transfer, before and after a resumption", arguments: [false, true])
  func released(_ hasResumed: Bool) async throws {
    let (first, second) = (BreakingBody(bytes, breaks: (2_000, lost)), BreakingBody(bytes.dropFirst(2_000)))
    let probe = RequestProbe { number, _ in
      number == 1
        ? .scripted(200, [.eTag: #""v1""#], first, length: 10_000)
        : .scripted(206, [.eTag: #""v1""#, .contentRange: "bytes 2000-9999/10000"], second, length: 8_000)
    }
    var response: DownloadResponse? = try await probe.resuming(policy()).retrying(policy()).download(request())
    for _ in 0..<(hasResumed ? 3 : 1) { _ = try await response?.body.source.next() }
    response = nil
    #expect(hasResumed ? second.isCancelled : first.isCancelled)
  }
}
