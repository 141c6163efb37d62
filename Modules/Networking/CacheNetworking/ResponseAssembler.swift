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

/// The content codings that `URLSession` decodes. It leaves the `Content-Encoding` field of a body that it has decoded.
struct PlatformDecoding: Sendable {
  /// The codings that every supported version of the platform decodes. Otherwise the body would stay encoded without a
  /// `Content-Encoding` field.
  let codings: Set<String>
  /// Whether some versions of the platform also decode zstd. The start of a body then shows whether it was decoded.
  let mayDecodeZstandard: Bool
  /// Whether later versions of the platform may decode more. They then deliver more bytes than `Content-Length` announces.
  let mayDecodeOthers: Bool

  // Apple's systems decode zstd from version 26.0 on, and ask for it from 26.3 on (github.com/mdn/browser-compat-data/pull/28949
  // and github.com/Fyrd/caniuse/pull/7383, about Safari). No document says so for apps.
  static let apple = PlatformDecoding(
    codings: ["gzip", "x-gzip", "deflate", "br"], mayDecodeZstandard: true, mayDecodeOthers: true)
  static let linux = PlatformDecoding(
    codings: ["gzip", "x-gzip", "deflate", "br", "zstd"], mayDecodeZstandard: false, mayDecodeOthers: false)
  #if canImport(FoundationNetworking)
  static let current = linux
  #else
  static let current = apple
  #endif

  /// Returns whether the platform decodes a body with this `Content-Encoding`, or `nil` if the start of the body shows that.
  func decodes(_ contentEncoding: String?) -> Bool? {
    guard let contentEncoding else { return false }
    // These two names stand for no coding, and the platform skips them.
    let named = contentEncoding.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
      .filter { $0 != "identity" && $0 != "none" }
    guard !named.isEmpty else { return false }
    if named.allSatisfy(codings.contains) { return true }
    // The last coding was applied last, so the body starts with its bytes.
    let isKnown = mayDecodeZstandard && named.last == "zstd" && named.dropLast().allSatisfy(codings.contains)
    return isKnown ? nil : false
  }

  /// The number of bytes that ``isZstandard(_:)`` needs.
  static let startLength = 4

  /// Whether the first bytes of a body are those of a zstd frame or of a skippable frame (RFC 8878 §3.1).
  static func isZstandard(_ start: some Collection<UInt8>) -> Bool {
    let start = Array(start.prefix(startLength))
    return start == [0x28, 0xB5, 0x2F, 0xFD] || start.count == 4 && start[0] & 0xF0 == 0x50 && start[1...] == [0x2A, 0x4D, 0x18]
  }
}

/// A platform response converted to a head that describes the bytes to be delivered.
struct ReceivedHead {
  /// The status and the fields.
  private(set) var response: HTTPResponse
  /// The number of bytes to be delivered, or `nil` if it is unknown.
  let bodyLength: Int64?
  /// The encoded size of the body in bytes, or `nil` if it is unknown or equal to ``bodyLength``.
  private(set) var encodedLength: Int64?
  /// Whether the head is correct only after ``decide(by:)``.
  private(set) var needsStart = false

  /// - Parameters:
  ///   - method: The method of the request. A response to HEAD has no body.
  ///   - lacksBody: Whether the platform discarded the body.
  ///   - decoding: The codings that the platform decodes.
  init?(
    _ platform: HTTPURLResponse, method: HTTPRequest.Method, lacksBody: Bool = false, decoding: PlatformDecoding = .current
  ) {
    guard (100...999).contains(platform.statusCode) else { return nil }
    var fields = Self.fields(of: platform)
    let status = platform.statusCode
    let describesOtherBody = method == .head || status == 204 || status == 304
    // A transfer coding overrides the length (RFC 9112 §6.3).
    if !describesOtherBody, fields.contains(.transferEncoding) { fields[.contentLength] = nil }
    let length = fields.contentLength
    // With an invalid length, or two that differ, the end of the body is unknown (RFC 9112 §6.3).
    guard length != nil || fields[.contentLength] == nil else { return nil }
    if describesOtherBody {
      // These fields describe the response to GET (RFC 9110 §8.6), so they stay although there is no body.
      (bodyLength, encodedLength) = (0, nil)
    } else if lacksBody {
      fields[.contentLength] = nil
      (bodyLength, encodedLength) = (0, nil)
    } else {
      let isDecoded = decoding.decodes(fields[.contentEncoding])
      let mayBeDecoded = isDecoded != false || decoding.mayDecodeOthers && fields[.contentEncoding] != nil
      bodyLength = mayBeDecoded ? nil : length
      // A part of a body, or several parts, need not start with a frame.
      needsStart = isDecoded == nil && status != 206
      if isDecoded == true {
        fields[.contentEncoding] = nil
        fields[.contentLength] = nil
        encodedLength = length
      }
    }
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
  }

  /// Returns the head of an interim response, which has no body.
  static func interim(_ platform: HTTPURLResponse) -> HTTPResponse {
    HTTPResponse(status: HTTPResponse.Status(code: platform.statusCode), headerFields: fields(of: platform))
  }

  /// Decides by the first bytes of the body, or by all of a shorter one, whether the platform has decoded it.
  ///
  /// - Parameter isCut: Whether the body ended with an error. A body that is too short for a decision then keeps its field.
  mutating func decide(by start: some Collection<UInt8>, isCut: Bool = false) {
    guard needsStart else { return }
    needsStart = false
    let isTooShort = isCut && start.count < PlatformDecoding.startLength
    guard !isTooShort, !PlatformDecoding.isZstandard(start) else { return }
    encodedLength = response.headerFields.contentLength
    response.headerFields[.contentEncoding] = nil
    response.headerFields[.contentLength] = nil
  }

  /// Returns the fields sorted by name, because a dictionary has no order. A name that is not a token is not valid in HTTP and is
  /// dropped.
  private static func fields(of platform: HTTPURLResponse) -> HTTPFields {
    var fields = HTTPFields()
    let pairs = platform.allHeaderFields.compactMap { key, value in
      (key.base as? String).map { ($0, value as? String ?? "\(value)") }
    }
    for (rawName, value) in pairs.sorted(by: { $0.0 < $1.0 }) {
      guard let name = HTTPField.Name(rawName) else { continue }
      // A field in two spellings has two keys.
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
    return fields
  }
}

#if !canImport(FoundationNetworking)
extension TaskTimes {
  /// Creates the times of a task's last transaction, which received the response.
  init?(_ metrics: URLSessionTaskMetrics) {
    guard let last = metrics.transactionMetrics.last else { return nil }
    fetchStart = last.fetchStartDate
    nameLookupStart = last.domainLookupStartDate
    nameLookupEnd = last.domainLookupEndDate
    connectStart = last.connectStartDate
    connectEnd = last.connectEndDate
    tlsStart = last.secureConnectionStartDate
    tlsEnd = last.secureConnectionEndDate
    requestStart = last.requestStartDate
    responseStart = last.responseStartDate
    bodyBytesOnWire = last.countOfResponseBodyBytesReceived
    protocolName = last.networkProtocolName
    isReusedConnection = last.isReusedConnection
  }
}
#endif

/// The platform's measurements of one transaction, as times. Each may be missing.
struct TaskTimes: Hashable, Sendable {
  var fetchStart: Date?
  var nameLookupStart: Date?
  var nameLookupEnd: Date?
  var connectStart: Date?
  var connectEnd: Date?
  var tlsStart: Date?
  var tlsEnd: Date?
  var requestStart: Date?
  var responseStart: Date?
  var bodyBytesOnWire: Int64 = 0
  var protocolName: String?
  var isReusedConnection = false

  /// Adds the values that only the platform knows. Values of our own clock are not replaced.
  func complete(_ metrics: inout TransferMetrics) {
    if !isReusedConnection {
      metrics.nameLookup = Self.duration(nameLookupStart, nameLookupEnd)
      metrics.connect = Self.duration(connectStart, connectEnd)
      metrics.tls = Self.duration(tlsStart, tlsEnd)
    }
    // The time before the first step of the transaction is the wait for a pooled connection.
    let firstStep = isReusedConnection ? requestStart : [nameLookupStart, connectStart, requestStart].compactMap { $0 }.min()
    metrics.queued = Self.duration(fetchStart, firstStep)
    metrics.protocolName = protocolName
    metrics.isReusedConnection = isReusedConnection
    if bodyBytesOnWire > 0 { metrics.bytesOnWire = bodyBytesOnWire }
  }

  /// Returns a duration, or `nil` if a time is missing or the clock was set back in between.
  private static func duration(_ start: Date?, _ end: Date?) -> Duration? {
    guard let start, let end, end >= start else { return nil }
    return .seconds(end.timeIntervalSince(start))
  }
}
