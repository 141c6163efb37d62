internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Makes one answer of what the platform says about a task: drops interim answers, holds back a 401 that may yet be superseded,
/// counts, and judges the end.
///
/// A value without a lock: ``SessionDataTask`` guards it.
struct ResponseAssembler {
  /// A held 401's body beyond this many bytes is let through: whoever answers so is not asking for a password.
  static let heldLimit = 1 << 20

  private struct Held {
    var head: ReceivedHead
    /// It may be the proxy's word on the tunnel, and not the server's.
    var isFromTunnel = false
    var chunks: [Data] = []
    var bytes = 0
  }

  /// Whether a challenge was answered with a credential, which no cache above has seen: the answer must not be stored for others
  /// to see.
  var usesCredential = false

  /// What the platform measured, where it does.
  var times: TaskTimes?

  private let method: HTTPRequest.Method
  private let startedAt: Duration
  private let proxy: ProxySettings.Proxy?
  private let tunnel: Bool
  private var head: ReceivedHead?
  private var held: Held?
  private var received: Int64 = 0
  private var timeToHead: Duration?
  private(set) var endedAt: Duration?
  private var isComplete = false

  /// - Parameters:
  ///   - method: what was asked: an answer to HEAD has no body.
  ///   - startedAt: when, by the clock.
  ///   - proxy: the one that it goes through: what looks like the server's failure to be there is the proxy's.
  ///   - tunnel: whether the proxy is asked for a tunnel first, and its answer to that told as if it were the server's. So it is
  ///     on Linux: every head is held back until a byte of its body, a second head or the end shows whose it is.
  init(method: HTTPRequest.Method, startedAt: Duration, proxy: ProxySettings.Proxy? = nil, tunnel: Bool = false) {
    self.method = method
    self.startedAt = startedAt
    self.proxy = proxy
    self.tunnel = tunnel
  }

  /// Whether an answer is held back that a credential may supersede.
  var isHolding: Bool { held?.isFromTunnel == false }

  /// A response came.
  ///
  /// - Parameter holdsUnauthorized: a challenge may follow, and somebody is there to answer it.
  mutating func receive(
    _ platform: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [SessionDataTask.Event] {
    // 103 Early Hints comes as a response of its own (RFC 9110 §15.2); the final one follows.
    guard platform.statusCode >= 200 || platform.statusCode < 100, head == nil else { return [] }
    guard let new = ReceivedHead(platform, method: method) else {
      throw CacheError(
        .malformedResponse, reason: "the answer's status (\(platform.statusCode)) or its length breaks the rules of HTTP")
    }
    if let proxy, platform.statusCode == 407 {
      throw CacheError(.proxyFailure, reason: "the proxy \(proxy) wants a credential", status: 407)
    }
    received = 0
    timeToHead = uptime - startedAt
    if holdsUnauthorized, platform.statusCode == 401 {
      held = Held(head: new)
      return []
    }
    if tunnel {
      held = Held(head: new, isFromTunnel: true)
      return []
    }
    held = nil
    head = new
    return [tell(new)]
  }

  /// Counts bytes that are a body's next ones, and nothing but that; false when they need a closer look.
  mutating func count(_ data: Data) -> Bool {
    guard held == nil, head != nil else { return false }
    received += Int64(data.count)
    return true
  }

  /// Bytes came.
  mutating func receive(_ data: Data) -> [SessionDataTask.Event] {
    if held?.isFromTunnel == true {
      // A proxy's "established" has no body, so this is the server's.
      received += Int64(data.count)
      return release() + [.data(data)]
    }
    if held != nil {
      received += Int64(data.count)
      held?.chunks.append(data)
      held?.bytes += data.count
      return (held?.bytes ?? 0) > Self.heldLimit ? release() : []
    }
    guard head != nil else { return [] }
    received += Int64(data.count)
    return [.data(data)]
  }

  /// The held answer is the answer after all.
  mutating func release() -> [SessionDataTask.Event] {
    guard let kept = held else { return [] }
    held = nil
    head = kept.head
    return [tell(kept.head)] + kept.chunks.map { .data($0) }
  }

  /// What is held when the platform's task ends: a proxy's word on a tunnel that failed, or broke right behind it, is nobody's
  /// answer.
  mutating func releaseAtEnd(_ error: (any Error)?) -> [SessionDataTask.Event] {
    guard held?.isFromTunnel == true, error != nil else { return release() }
    held = nil
    timeToHead = nil
    return []
  }

  /// The platform's task ended. What is still held must be released before.
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
      endedAt = uptime
      return [tell(late), .end(nil)]
    }
    return [.end(CacheError(.malformedResponse, reason: "the answer had no head"))]
  }

  /// The head as an event. The whole field is replaced: `must-understand` beside it would overrule `no-store` (RFC 9111
  /// §5.2.2.3).
  private func tell(_ head: ReceivedHead) -> SessionDataTask.Event {
    var response = head.response
    if usesCredential { response.headerFields[.cacheControl] = "no-store" }
    return .head(response)
  }

  /// Bytes of the body, as the head announces them and as they are delivered.
  var bodyLength: Int64? { head?.bodyLength }

  /// What was measured up to now. Of a body that the platform decodes, the bytes on the wire are known when all of them have
  /// come.
  var metrics: TransferMetrics {
    let encoded = isComplete ? head?.encodedLength : nil
    var metrics = TransferMetrics(
      timeToHead: timeToHead, total: endedAt.map { $0 - startedAt }, bytesOnWire: encoded ?? received, bytesDecoded: received)
    times?.complete(&metrics)
    return metrics
  }
}
