import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A downloader whose responses a closure creates. It records the requests with their attempts, time-outs and bodies.
final class RequestProbe: Downloader {
  let id = ComponentID.unique(RequestProbe.self)
  private let requests = Lock<[DownloadRequest]>([])
  private let handler: @Sendable (Int, DownloadRequest) async throws(CacheError) -> DownloadResponse

  /// - Parameter handler: A closure that gets the number of the request, from 1.
  init(_ handler: @escaping @Sendable (Int, DownloadRequest) async throws(CacheError) -> DownloadResponse) {
    self.handler = handler
  }

  var received: [DownloadRequest] { requests.withLock { $0 } }
  var count: Int { requests.withLock { $0.count } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let number = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    return try await handler(number, request)
  }
}

/// A body in chunks that can fail after a number of bytes, with any error.
final class BreakingBody: ResourceBody.Source {
  private struct State {
    var position = 0
    var isCancelled = false
    var pulls = 0
  }

  private let bytes: Data
  private let chunkSize: Int
  private let breaks: (after: Int, error: CacheError)?
  private let state = WatchedState(State())

  init(_ bytes: Data, chunk: Int = 1_000, breaks: (after: Int, error: CacheError)? = nil) {
    self.bytes = bytes
    chunkSize = chunk
    self.breaks = breaks
  }

  var isCancelled: Bool { state.read { $0.isCancelled } }
  var pulls: Int { state.read { $0.pulls } }
  var delivered: Int64 { state.read { Int64($0.position) } }

  /// Waits until the given number of bytes was read.
  func delivered(_ count: Int) async { await state.wait { $0.position >= count } }

  var trailers: HTTPFields? { [.serverTiming: "here"] }

  func cancel() { state.update { $0.isCancelled = true } }

  func next() async throws(CacheError) -> Data? {
    let end = min(breaks?.after ?? bytes.count, bytes.count)
    let (part, isCancelled) = state.update { state -> (Range<Int>, Bool) in
      state.pulls += 1
      let upper = state.isCancelled ? state.position : max(min(state.position + chunkSize, end), state.position)
      defer { state.position = upper }
      return (state.position..<upper, state.isCancelled)
    }
    if isCancelled { throw .cancelled }
    guard part.isEmpty else { return bytes.subdata(in: bytes.startIndex + part.lowerBound..<bytes.startIndex + part.upperBound) }
    if let breaks { throw breaks.error }
    return nil
  }
}

extension DownloadResponse {
  /// Returns a response as an engine does, with its length and a byte count.
  static func scripted(
    _ status: Int = 200, _ fields: HTTPFields = [:], _ bytes: Data = Data(), chunk: Int = 1_000, cut: Int? = nil,
    error: CacheError = CacheError(.connectionLost, reason: "connection lost")
  ) -> DownloadResponse {
    let source = BreakingBody(bytes, chunk: chunk, breaks: cut.map { ($0, error) })
    return scripted(status, fields, source, length: Int64(bytes.count))
  }

  static func scripted(_ status: Int = 200, _ fields: HTTPFields = [:], _ source: BreakingBody, length: Int64?)
    -> DownloadResponse
  {
    var fields = fields
    if let length, fields[.contentLength] == nil { fields[.contentLength] = String(length) }
    return DownloadResponse(
      head: HTTPResponse(status: .init(code: status), headerFields: fields), body: ResourceBody(length: length, source: source),
      metrics: { [weak source] in
        TransferMetrics(
          timeToHead: .milliseconds(7), bytesOnWire: source?.delivered ?? 0, bytesDecoded: source?.delivered ?? 0,
          protocolName: "http/1.1")
      })
  }
}

/// A clock that advances at once when a task sleeps, for tests of the length of delays.
final class ImmediateClock: CacheClock {
  private let elapsed = Lock(Duration.zero)

  var uptime: Duration { elapsed.withLock { $0 } }
  var now: Timestamp { Timestamp(seconds: 1_767_225_600) + uptime }

  func advance(by duration: Duration) { elapsed.withLock { $0 += duration } }

  func sleep(for duration: Duration) async throws(CancellationError) {
    if Task.isCancelled { throw CancellationError() }
    advance(by: duration)
  }
}

/// A network that a test switches on and off.
final class SwitchedNetwork: NetworkMonitor {
  private let gate = Gate()
  private let isUp = Lock(true)

  var isReachable: Bool { isUp.withLock { $0 } }

  /// A gate that tasks reach when they wait for the network.
  var waits: Gate { gate }

  func set(_ isUp: Bool) {
    self.isUp.withLock { $0 = isUp }
    if isUp { gate.open() } else { gate.close() }
  }

  func waitUntilReachable() async throws(CancellationError) {
    if isReachable { return }
    await gate.pass()
    if Task.isCancelled { throw CancellationError() }
  }
}

extension RetryPolicy {
  /// Maximum delays, so that the times in a test are exact: 1, 2, 4 seconds.
  static func exact(_ maximumAttempts: Int = 4) -> RetryPolicy {
    var policy = RetryPolicy(
      maximumAttempts: maximumAttempts, backoff: Backoff(base: .seconds(1), cap: .seconds(8), multiplier: 2))
    policy.random = { 1 }
    return policy
  }

  /// A policy without delays.
  static func eager(_ maximumAttempts: Int = 4) -> RetryPolicy {
    RetryPolicy(maximumAttempts: maximumAttempts, backoff: Backoff(base: .zero, cap: .zero))
  }
}

/// The calls of a policy's `onRetry`.
final class RetryRecorder: Sendable {
  private let list = Lock<[RetryFailure]>([])

  var failures: [RetryFailure] { list.withLock { $0 } }
  var delays: [Duration] { list.withLock { $0.map(\.delay) } }

  func record(_ failure: RetryFailure) { list.withLock { $0.append(failure) } }
}

func request(
  _ path: String = "/image", method: HTTPRequest.Method = .get, fields: HTTPFields = [:], body: ResourceBody? = nil,
  timeout: Duration? = nil, attempt: Int = 1
) -> DownloadRequest {
  DownloadRequest(
    head: HTTPRequest(method: method, scheme: "http", authority: "example.com", path: path, headerFields: fields), body: body,
    timeout: timeout, attempt: attempt)
}

let lost = CacheError(.connectionLost, reason: "connection lost")

extension HTTPField.Name {
  static let serverTiming = HTTPField.Name("Server-Timing") ?? .server
}
