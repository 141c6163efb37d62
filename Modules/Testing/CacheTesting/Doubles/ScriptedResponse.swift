public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One response of a ``ScriptedDownloader``: a head and a body, or an error, optionally delayed or held by a gate.
///
/// ```swift
/// let gate = Gate()
/// network.respond(to: url, with: .ok("hello", etag: "\"1\"").chunked(by: 2).held(by: gate), .notModified())
/// ```
///
/// The head states the length of the body in `Content-Length`, as that of an HTTP server does, unless the response has such a
/// field already. Responses with status 204 and 304 state none. The response to a HEAD request has no body, and states the length
/// that the body of a GET has.
public struct ScriptedResponse: Sendable {
  enum Outcome: Sendable {
    case response(HTTPResponse, body: Data)
    case failure(CacheError)
  }

  var outcome: Outcome
  var delay: Duration = .zero
  var gate: Gate?
  var bodyGate: Gate?
  var cutAfter: Int?
  var chunkSize = 64 << 10
  var statesLength = true
  var interim: [HTTPResponse] = []

  /// Returns a response with any status and fields.
  public static func response(_ status: HTTPResponse.Status, fields: HTTPFields = [:], body: Data = Data()) -> Self {
    Self(outcome: .response(HTTPResponse(status: status, headerFields: fields), body: body))
  }

  /// Returns a 200 response with a body.
  public static func ok(_ body: Data, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    var fields = fields
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.ok, fields: fields, body: body)
  }

  /// Returns a 200 response with a text body.
  public static func ok(_ text: String, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    ok(Data(text.utf8), etag: etag, cacheControl: cacheControl, fields: fields)
  }

  /// Returns a 304 response.
  public static func notModified(etag: String? = nil, cacheControl: String? = nil) -> Self {
    var fields = HTTPFields()
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.notModified, fields: fields)
  }

  /// Returns a redirect.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    response(status, fields: [.location: location])
  }

  /// Returns an error instead of a response.
  public static func failure(_ code: CacheError.Code, reason: String = "scripted") -> Self {
    Self(outcome: .failure(CacheError(code, reason: reason)))
  }

  /// Delays the response, measured by the downloader's clock.
  public func after(_ delay: Duration) -> Self { changed { $0.delay = delay } }

  /// Puts interim responses before the response, which are passed to `DownloadRequest.onInterimResponse`.
  ///
  /// ```swift
  /// let hint = HTTPResponse(status: .earlyHints, headerFields: [.contentLanguage: "en"])
  /// network.respond(to: url, with: .ok("hello").preceded(by: hint))
  /// ```
  public func preceded(by interim: HTTPResponse...) -> Self { changed { $0.interim += interim } }

  /// Holds the response until the gate opens.
  public func held(by gate: Gate) -> Self { changed { $0.gate = gate } }

  /// Holds the body until the gate opens. The head is delivered immediately.
  public func bodyHeld(by gate: Gate) -> Self { changed { $0.bodyGate = gate } }

  /// Ends the body with an error after the given number of bytes, although the head declares all of them.
  ///
  /// With an entity tag, `Downloader.resuming(_:clock:)` requests the rest, which ``part(from:)`` returns.
  public func cut(after bytes: Int) -> Self { changed { $0.cutAfter = bytes } }

  /// Delivers the body in chunks of the given size.
  public func chunked(by size: Int) -> Self { changed { $0.chunkSize = max(1, size) } }

  /// Omits the length of the body, like a server that sends chunks.
  public func withoutLength() -> Self { changed { $0.statesLength = false } }

  /// Returns the 206 response with the bytes from `offset` on (RFC 9110 §15.3.7), which a server sends to a request for the rest.
  ///
  /// ```swift
  /// let film = ScriptedResponse.ok(bytes, etag: "\"1\"")
  /// network.respond(to: url, with: film.cut(after: 60_000), film.part(from: 60_000))
  /// ```
  ///
  /// If the body has no byte at the offset, the response is a 416 (RFC 9110 §15.5.17). An error is returned unchanged.
  public func part(from offset: Int) -> Self {
    guard case .response(var head, let body) = outcome else { return self }
    let rest = offset >= 0 ? body.dropFirst(offset) : Data()
    head.status = rest.isEmpty ? .rangeNotSatisfiable : .partialContent
    head.headerFields[.contentRange] = rest.isEmpty ? "bytes */\(body.count)" : "bytes \(offset)-\(body.count - 1)/\(body.count)"
    head.headerFields[.contentLength] = nil
    return changed {
      $0.outcome = .response(head, body: rest)
      $0.cutAfter = nil
    }
  }

  /// Whether the script lets a body arrive with its head. It does not if the body is held, cut, chunked or of unknown length.
  func deliversAtOnce(_ body: Data) -> Bool {
    statesLength && bodyGate == nil && cutAfter == nil && body.count <= chunkSize
  }

  /// The head of the response to a request, with the length of the body if the head of a server states it.
  func head(_ head: HTTPResponse, of body: Data, to request: HTTPRequest) -> HTTPResponse {
    guard statesLength, head.headerFields[.contentLength] == nil, ![204, 304].contains(head.status.code),
      request.method != .head || !body.isEmpty
    else { return head }
    var head = head
    head.headerFields[.contentLength] = String(body.count)
    return head
  }

  private func changed(_ change: (inout Self) -> Void) -> Self {
    var copy = self
    change(&copy)
    return copy
  }
}

/// A body in chunks that can be held by a gate and can end with an error.
final class ScriptedBody: ResourceBody.Source {
  private struct State {
    var position = 0
    var isCancelled = false
    var isFinished = false
    var total: Duration?
    /// A closure that resumes a read that waits at the gate.
    var wake: (@Sendable () -> Void)?
  }

  private let bytes: Data
  private let response: ScriptedResponse
  private let onEnd: @Sendable () -> Duration
  private let onCancel: @Sendable () -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - bytes: The bytes of the body.
  ///   - response: The scripted response, which controls the delivery.
  ///   - onEnd: A closure that returns the total duration. It is called once, after the last byte.
  ///   - onCancel: A closure that is called once if the body is released before its end.
  init(
    _ bytes: Data, _ response: ScriptedResponse, onEnd: @escaping @Sendable () -> Duration,
    onCancel: @escaping @Sendable () -> Void
  ) {
    self.bytes = bytes
    self.response = response
    self.onEnd = onEnd
    self.onCancel = onCancel
  }

  deinit { cancel() }

  var delivered: Int64 { state.withLock { Int64($0.position) } }

  /// The time from the request to the last byte, or `nil` before that byte.
  var total: Duration? { state.withLock { $0.total } }

  var trailers: HTTPFields? { nil }

  func next() async throws(CacheError) -> Data? {
    if let gate = response.bodyGate { await pass(gate) }
    if Task.isCancelled { cancel() }
    let end = min(response.cutAfter ?? bytes.count, bytes.count)
    if let chunk = try chunk(upTo: end) { return chunk }
    let total = onEnd()
    state.withLock { $0.total = $0.total ?? total }
    return nil
  }

  /// Waits until the gate opens, the reader's task is cancelled, or `cancel()` is called.
  private func pass(_ gate: Gate) async {
    let passage = WatchedState(false)
    let wake: @Sendable () -> Void = { passage.update { $0 = true } }
    let isCancelled = state.withLock { state in
      state.wake = wake
      return state.isCancelled
    }
    guard !isCancelled else { return }
    let ticket = gate.arrive(wake)
    await passage.wait { $0 }
    gate.withdraw(ticket)
    state.withLock { $0.wake = nil }
  }

  private func chunk(upTo end: Int) throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      guard state.position < end else {
        state.isFinished = true
        guard end == bytes.count else {
          throw CacheError(.truncatedBody, reason: "the body ended after \(end) of \(bytes.count) bytes")
        }
        return nil
      }
      let upper = min(state.position + response.chunkSize, end)
      defer { state.position = upper }
      return bytes.subdata(in: bytes.startIndex + state.position..<bytes.startIndex + upper)
    }
  }

  func cancel() {
    let (isFirst, wake): (Bool, (@Sendable () -> Void)?) = state.withLock { state in
      // An empty body has ended before the first read.
      guard !state.isCancelled, !state.isFinished, state.position < bytes.count else { return (false, nil) }
      state.isCancelled = true
      return (true, state.wake)
    }
    wake?()
    if isFirst { onCancel() }
  }
}
