internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Makes one answer of what the platform says about a task: drops interim answers, holds back a 401 that may yet be superseded, counts, and judges
/// the end.
///
/// A value without a lock: ``SessionDataTask`` guards it.
struct Reception {
  /// A held 401's body beyond this many bytes is let through: whoever answers so is not asking for a password.
  static let heldLimit = 1 << 20

  private struct Held {
    var head: ReceivedHead
    var chunks: [Data] = []
    var bytes = 0
  }

  /// Whether a challenge was answered with a credential, which no cache above has seen: the answer must not be stored for others to see.
  var usesCredential = false

  private let method: HTTPRequest.Method
  private let startedAt: Duration
  private var head: ReceivedHead?
  private var held: Held?
  private var received: Int64 = 0
  private var timeToHead: Duration?
  private var isComplete = false

  init(method: HTTPRequest.Method, startedAt: Duration) {
    self.method = method
    self.startedAt = startedAt
  }

  /// Whether an answer is held back that a credential may supersede.
  var isHolding: Bool { held != nil }

  /// A response came.
  ///
  /// - Parameter holdsUnauthorized: a challenge may follow, and somebody is there to answer it.
  mutating func receive(
    _ platform: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [SessionDataTask.Event] {
    // 103 Early Hints comes as a response of its own (RFC 9110 §15.2); the final one follows.
    guard platform.statusCode >= 200 || platform.statusCode < 100, head == nil else { return [] }
    guard let new = ReceivedHead(platform, method: method) else {
      throw CacheError(.malformedResponse, reason: "the answer's status is \(platform.statusCode)")
    }
    received = 0
    timeToHead = uptime - startedAt
    if holdsUnauthorized, platform.statusCode == 401 {
      held = Held(head: new)
      return []
    }
    held = nil
    head = new
    return [tell(new)]
  }

  /// Bytes came.
  mutating func receive(_ data: Data) -> [SessionDataTask.Event] {
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

  /// The platform's task ended. What is still held must be released before.
  mutating func end(_ error: (any Error)?, response: URLResponse?) -> [SessionDataTask.Event] {
    if let error {
      let length = head?.bodyLength ?? head?.encodedLength
      return [.end(CacheError(completion: error, hasHead: head != nil, received: received, expected: length))]
    }
    if let head {
      if let length = head.bodyLength, received < length { return [.end(.truncated(received: received, expected: length))] }
      isComplete = true
      return [.end(nil)]
    }
    // On Linux a redirect without a `Location` ends without `didReceive response`, and its body is lost.
    if let platform = response as? HTTPURLResponse, platform.statusCode >= 200,
      let late = ReceivedHead(platform, method: method, lacksBody: true)
    {
      head = late
      return [tell(late), .end(nil)]
    }
    return [.end(CacheError(.malformedResponse, reason: "the answer had no head"))]
  }

  /// The head as an event. The whole field is replaced: `must-understand` beside it would overrule `no-store` (RFC 9111 §5.2.2.3).
  private func tell(_ head: ReceivedHead) -> SessionDataTask.Event {
    var response = head.response
    if usesCredential { response.headerFields[.cacheControl] = "no-store" }
    return .head(response)
  }

  /// Bytes of the body, as the head announces them and as they are delivered.
  var bodyLength: Int64? { head?.bodyLength }

  /// What was measured up to now. Of a body that the platform decodes, the bytes on the wire are known when all of them have come.
  var metrics: TransferMetrics {
    let encoded = isComplete ? head?.encodedLength : nil
    return TransferMetrics(timeToHead: timeToHead, bytesOnWire: encoded ?? received, bytesDecoded: received)
  }
}
