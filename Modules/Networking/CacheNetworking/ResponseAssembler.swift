internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Builds one response from the events of a task. It drops interim responses, holds back a 401 that may be superseded, counts
/// bytes and judges the end.
///
/// A value without a lock: ``SessionDataTask`` guards it.
struct ResponseAssembler {
  /// The maximum body of a held 401, in bytes. A larger body is not a password prompt, so it is passed on.
  static let heldLimit = 1 << 20

  private struct Held {
    enum Reason {
      /// A credential may supersede the response.
      case unauthorized
      /// The head may be the proxy's response to CONNECT and not the server's.
      case tunnel
      /// The head depends on the start of the body.
      case start
    }

    var head: ReceivedHead
    var reason: Reason
    var chunks: [Data] = []
    var bytes = 0
  }

  /// Whether a credential was supplied that the caches above cannot see. The response must then not be stored, because other
  /// users could read it.
  var usesCredential = false

  /// The platform's measurements, or `nil` if there are none.
  var times: TaskTimes?

  private let method: HTTPRequest.Method
  private let startedAt: Duration
  private let proxy: ProxySettings.Proxy?
  private let tunnel: Bool
  private let decoding: PlatformDecoding
  private var head: ReceivedHead?
  private var held: Held?
  private var received: Int64 = 0
  private var timeToHead: Duration?
  private(set) var endedAt: Duration?
  private var isComplete = false

  /// - Parameters:
  ///   - method: The method of the request. A response to HEAD has no body.
  ///   - startedAt: The time of the start, by the clock.
  ///   - proxy: The proxy of the transfer. A failure to connect is reported as the proxy's.
  ///   - tunnel: Whether the platform also reports the proxy's response to CONNECT, as Foundation on Linux does. Every head is
  ///     then held back until a body byte, a second head or the end shows which one it is.
  ///   - decoding: The codings that the platform decodes.
  init(
    method: HTTPRequest.Method, startedAt: Duration, proxy: ProxySettings.Proxy? = nil, tunnel: Bool = false,
    decoding: PlatformDecoding = .current
  ) {
    self.method = method
    self.startedAt = startedAt
    self.proxy = proxy
    self.tunnel = tunnel
    self.decoding = decoding
  }

  /// Whether a response is held back that a credential may supersede.
  var isHolding: Bool { held?.reason == .unauthorized }

  /// Returns the head of an interim response to the request. A proxy's response to CONNECT precedes those of the server, and no
  /// request asks for another protocol (101).
  func interim(_ platform: HTTPURLResponse) -> HTTPResponse? {
    guard (100...199).contains(platform.statusCode), platform.statusCode != 101, head == nil, !tunnel || held != nil else {
      return nil
    }
    return ReceivedHead.interim(platform)
  }

  /// Receives a response.
  ///
  /// - Parameter holdsUnauthorized: Whether a 401 is held back, because a challenge with a handler may follow.
  mutating func receive(
    _ platform: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [SessionDataTask.Event] {
    // A 103 Early Hints is reported as a separate response (RFC 9110 §15.2). The final response follows.
    guard platform.statusCode >= 200 || platform.statusCode < 100, head == nil else { return [] }
    guard let new = ReceivedHead(platform, method: method, decoding: decoding) else {
      throw CacheError(
        .malformedResponse, reason: "the response has an invalid status (\(platform.statusCode)) or length")
    }
    if let proxy, platform.statusCode == 407 {
      throw CacheError(.proxyFailure, reason: "the proxy \(proxy) requires a credential", response: new.response)
    }
    received = 0
    timeToHead = uptime - startedAt
    if holdsUnauthorized, platform.statusCode == 401 {
      held = Held(head: new, reason: .unauthorized)
      return []
    }
    if tunnel {
      held = Held(head: new, reason: .tunnel)
      return []
    }
    if new.needsStart {
      held = Held(head: new, reason: .start)
      return []
    }
    held = nil
    head = new
    return [tell(new)]
  }

  /// Counts the next bytes of a body. Returns `false` if they need ``receive(_:)``.
  mutating func count(_ data: Data) -> Bool {
    guard held == nil, let head else { return false }
    let received = received + Int64(data.count)
    if let length = head.bodyLength, received > length { return false }
    self.received = received
    return true
  }

  /// Receives bytes.
  ///
  /// - Throws: `CacheError.Code.malformedResponse` if the body is longer than announced.
  mutating func receive(_ data: Data) throws(CacheError) -> [SessionDataTask.Event] {
    guard let announced = held?.head ?? head else { return [] }
    received += Int64(data.count)
    if let length = announced.bodyLength, received > length { throw .overlong(expected: length) }
    // A successful response to CONNECT has no body, so these bytes are the server's.
    if held?.reason == .tunnel, held?.head.needsStart == true { held?.reason = .start }
    guard var kept = held, kept.reason != .tunnel else { return release() + [.data(data)] }
    kept.chunks.append(data)
    kept.bytes += data.count
    held = kept
    return kept.bytes >= (kept.reason == .start ? PlatformDecoding.startLength : Self.heldLimit + 1) ? release() : []
  }

  /// Releases the held response, which no credential supersedes.
  ///
  /// - Parameter isCut: Whether the body ended with an error.
  mutating func release(isCut: Bool = false) -> [SessionDataTask.Event] {
    guard var kept = held else { return [] }
    held = nil
    kept.head.decide(by: kept.chunks.joined().prefix(PlatformDecoding.startLength).map { $0 }, isCut: isCut)
    head = kept.head
    return [tell(kept.head)] + kept.chunks.map { .data($0) }
  }

  /// Releases the held response when the platform's task ends. A proxy's response is dropped if its tunnel failed.
  mutating func releaseAtEnd(_ error: (any Error)?) -> [SessionDataTask.Event] {
    guard held?.reason == .tunnel, error != nil else { return release(isCut: error != nil) }
    held = nil
    timeToHead = nil
    return []
  }

  /// Receives the end of the platform's task. The caller releases a held response first.
  mutating func end(_ error: (any Error)?, response: URLResponse?, at uptime: Duration) -> [SessionDataTask.Event] {
    if let error {
      let length = head?.bodyLength ?? head?.encodedLength
      let meaning = CacheError(completion: error, hasHead: head != nil, received: received, expected: length)
      return [.end(meaning.through(proxy))]
    }
    if let head {
      if let length = head.bodyLength, received < length { return [.end(.truncated(received: received, expected: length))] }
      isComplete = true
      endedAt = uptime
      return [.end(nil)]
    }
    // On Linux a redirect without a `Location` ends without `didReceive response`, and its body is lost.
    if let platform = response as? HTTPURLResponse, platform.statusCode >= 200,
      let late = ReceivedHead(platform, method: method, lacksBody: true)
    {
      head = late
      timeToHead = uptime - startedAt
      endedAt = uptime
      return [tell(late), .end(nil)]
    }
    return [.end(CacheError(.malformedResponse, reason: "the response has no head"))]
  }

  /// Returns the head as an event. The whole `Cache-Control` field is replaced, because `must-understand` would overrule
  /// `no-store` (RFC 9111 §5.2.2.3).
  private func tell(_ head: ReceivedHead) -> SessionDataTask.Event {
    var response = head.response
    if usesCredential { response.headerFields[.cacheControl] = "no-store" }
    return .head(response)
  }

  /// The number of body bytes that the head announces, as delivered.
  var bodyLength: Int64? { head?.bodyLength }

  /// The measurements so far. The encoded size of a body that the platform decodes is known only at its end.
  var metrics: TransferMetrics {
    let encoded = isComplete ? head?.encodedLength : nil
    var metrics = TransferMetrics(
      timeToHead: timeToHead, total: endedAt.map { $0 - startedAt }, bytesOnWire: encoded ?? received, bytesDecoded: received)
    times?.complete(&metrics)
    return metrics
  }
}
