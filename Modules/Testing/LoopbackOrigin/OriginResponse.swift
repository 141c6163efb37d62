#if Origin
internal import CacheCore
public import HTTPTypes
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The content of a path and its delivery.
///
/// The origin creates the response that the request calls for: 304 if a condition holds, 206 for a range, the head alone for
/// HEAD, 401 without the credential. It adds `Date`, `Content-Length`, `ETag` and similar fields unless `fields` contains them.
public struct OriginResponse: Sendable {
  /// The status, 200 by default. Conditions and ranges are evaluated only for a 200.
  public var status: HTTPResponse.Status
  /// The value of `Content-Type`, or `nil` for none.
  public var contentType: String?
  /// The value of `ETag`, or `nil` for none.
  public var etag: OriginETag?
  /// The value of `Last-Modified`, sent in whole seconds, or `nil` for none.
  public var lastModified: Date?
  /// Additional header fields, in order, which may be repeated. They replace the origin's own fields of the same name.
  public var fields: HTTPFields
  /// Whether a single byte range is supported (RFC 9110 §14) and `Accept-Ranges: bytes` is sent.
  public var acceptsRanges: Bool
  /// Whether `If-None-Match` and `If-Modified-Since` are evaluated (RFC 9110 §13). If not, the origin always sends the body.
  public var honorsConditions: Bool
  /// The credential that a request must have. Otherwise the response is a 401.
  public var credential: OriginCredential?
  /// The timing, framing and faults of the response.
  public var delivery: OriginDelivery

  var content: ByteBuffer

  /// Creates a response with a body of bytes, which are copied once.
  public init(
    _ body: Data = Data(), contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil,
    fields: HTTPFields = [:], status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, honorsConditions: Bool = true,
    credential: OriginCredential? = nil, delivery: OriginDelivery = OriginDelivery()
  ) {
    content = ByteBuffer(bytes: body)
    (self.contentType, self.etag, self.lastModified, self.fields) = (contentType, etag, lastModified, fields)
    (self.status, self.acceptsRanges, self.honorsConditions) = (status, acceptsRanges, honorsConditions)
    (self.credential, self.delivery) = (credential, delivery)
  }

  /// Creates a response with a short text, such as an error message.
  public init(
    text: String, status: HTTPResponse.Status = .ok, etag: OriginETag? = nil, fields: HTTPFields = [:],
    delivery: OriginDelivery = OriginDelivery()
  ) {
    self.init(
      Data(text.utf8), contentType: "text/plain; charset=utf-8", etag: etag, fields: fields, status: status, delivery: delivery)
  }

  /// Creates a redirect to an absolute or relative reference, which is sent unchanged.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    Self(fields: [.location: location], status: status)
  }

  /// The bytes of the body. Reading and setting copy them: O(n).
  public var body: Data {
    get { Data(content.readableBytesView) }
    set { content = ByteBuffer(bytes: newValue) }
  }
}

extension OriginResponse {
  /// The response to a request: the status, the fields without framing, and the content.
  struct Response {
    var status: HTTPResponse.Status
    var fields: HTTPFields
    var content: ByteBuffer
  }

  /// Returns the response to a request. It checks the credential, the conditions and the range, in this order.
  func response(to request: ReceivedRequest, date: Date) -> Response {
    if let credential, !credential.accepts(request.fields[.authorization]) {
      return Self.refusal(of: credential, date: date)
    }
    var response = Response(status: status, fields: allFields(date: date), content: content)
    guard status == .ok, request.method == .get || request.method == .head else { return response }
    if honorsConditions, isUnchanged(for: request.fields) {
      response.status = .notModified
      response.content = ByteBuffer()
      response.fields = HTTPFields(response.fields.filter { !Self.describesContent($0.name) })
    } else if acceptsRanges, request.method == .get, let range = request.fields[.range], rangeApplies(to: request.fields) {
      select(range, in: &response)
    }
    return response
  }

  private static func refusal(of credential: OriginCredential, date: Date) -> Response {
    let text = OriginResponse(
      text: "credential required\n", status: .unauthorized, fields: [.wwwAuthenticate: credential.challenge])
    return Response(status: text.status, fields: text.allFields(date: date), content: text.content)
  }

  /// Returns the origin's fields that the test has not set, then the test's.
  private func allFields(date: Date) -> HTTPFields {
    let own: [(HTTPField.Name, String?)] = [
      (.date, HTTPDate(date).description), (.contentType, contentType), (.eTag, etag?.description),
      (.lastModified, modification), (.acceptRanges, acceptsRanges ? "bytes" : nil),
    ]
    var all = HTTPFields()
    for case (let name, let value?) in own where !fields.contains(name) { all[name] = value }
    all.append(contentsOf: fields)
    return all
  }

  /// Returns whether a field describes content. A 304 omits such fields and repeats all others of the 200 (RFC 9110 §15.4.5).
  private static func describesContent(_ name: HTTPField.Name) -> Bool {
    name.canonicalName.hasPrefix("content-") && name != .contentLocation || name == .transferEncoding
  }

  private var modification: String? { fields[.lastModified] ?? lastModified.map { HTTPDate($0).description } }

  // MARK: Conditions

  /// Evaluates the conditions. `If-Modified-Since` is used only without `If-None-Match` (RFC 9110 §13.2.2).
  private func isUnchanged(for request: HTTPFields) -> Bool {
    if let condition = request[.ifNoneMatch] {
      if condition.trimmed == "*" { return true }
      guard let current = currentETag else { return false }
      return OriginETag.list(condition).contains { $0.weaklyMatches(current) }
    }
    guard let condition = request[.ifModifiedSince], let current = modification
    else { return false }
    let now = SystemClock().now
    guard let since = HTTPDate(condition, receivedAt: now), let changed = HTTPDate(current, receivedAt: now) else {
      return condition == current
    }
    return changed <= since
  }

  /// The current tag. A tag in the test's fields replaces `etag`, as in the response.
  private var currentETag: OriginETag? { fields[.eTag].map { OriginETag.list($0).first } ?? etag }

  // MARK: Ranges

  /// Returns whether `If-Range` matches, by strong comparison or by the exact date (RFC 9110 §13.1.5).
  private func rangeApplies(to request: HTTPFields) -> Bool {
    guard let condition = request[.ifRange] else { return true }
    if let tag = OriginETag.list(condition).first { return currentETag.map(tag.stronglyMatches) ?? false }
    return condition == modification
  }

  private func select(_ range: String, in response: inout Response) {
    let length = response.content.readableBytes
    switch ByteRange.parse(range, length: length) {
    case .ignored: return
    case .unsatisfiable:
      response.status = .rangeNotSatisfiable
      response.content = ByteBuffer()
      response.fields[.contentRange] = "bytes */\(length)"
    case .bytes(let bytes):
      response.status = .partialContent
      let start = response.content.readerIndex + bytes.lowerBound
      response.content = response.content.getSlice(at: start, length: bytes.count) ?? ByteBuffer()
      response.fields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)"
    }
  }
}

extension String {
  /// The string without leading and trailing spaces and tabs.
  var trimmed: Substring {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var rest = drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }
}

/// An entity tag (RFC 9110 §8.8.3). A string literal creates a strong tag: `etag: "v1"` sends `ETag: "v1"`, including the quotes.
public struct OriginETag: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The text between the quotes.
  public var opaque: String
  /// Whether the tag is sent with `W/` before it.
  public var isWeak: Bool

  /// Creates a strong tag, which identifies the exact bytes.
  public static func strong(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: false) }

  /// Creates a weak tag, which identifies equivalent content. Ranges cannot be combined by it.
  public static func weak(_ opaque: String) -> Self { Self(opaque: opaque, isWeak: true) }

  /// Creates a strong tag.
  public init(stringLiteral value: String) { self = .strong(value) }

  init(opaque: String, isWeak: Bool) {
    (self.opaque, self.isWeak) = (opaque, isWeak)
  }

  /// The field value, including the quotes.
  public var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

  /// Compares the tags as `If-None-Match` does (RFC 9110 §8.8.3.2).
  func weaklyMatches(_ other: Self) -> Bool { opaque == other.opaque }

  /// Compares the tags as `If-Range` does (RFC 9110 §8.8.3.2).
  func stronglyMatches(_ other: Self) -> Bool { !isWeak && self == other }

  /// Parses the tags of an `If-None-Match` or `If-Range` value. The value is not split at commas, because a tag may contain one.
  /// Parsing stops at the first invalid tag.
  static func list(_ value: String) -> [Self] {
    var tags: [Self] = []
    var rest = Substring(value)
    while true {
      rest = rest.drop { $0 == " " || $0 == "\t" || $0 == "," }
      let isWeak = rest.hasPrefix("W/")
      if isWeak { rest = rest.dropFirst(2) }
      guard rest.first == "\"" else { return tags }
      rest = rest.dropFirst()
      guard let end = rest.firstIndex(of: "\"") else { return tags }
      tags.append(Self(opaque: String(rest[..<end]), isWeak: isWeak))
      rest = rest[rest.index(after: end)...]
    }
  }
}

extension HTTPDate {
  /// Creates an HTTP date from a Foundation date, rounded down to whole seconds.
  init(_ date: Date) {
    let seconds = date.timeIntervalSince1970.rounded(.down)
    self.init(Timestamp(seconds: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max)))
  }
}

/// The credential of a protected path: HTTP Basic (RFC 7617).
public struct OriginCredential: Sendable, Hashable {
  /// The user name, without a colon.
  public var user: String
  /// The password.
  public var password: String
  /// The realm in the challenge.
  public var realm: String

  /// Creates a credential. Without it, the response is a 401 with `WWW-Authenticate: Basic`.
  public init(user: String, password: String, realm: String = "origin") {
    (self.user, self.password, self.realm) = (user, password, realm)
  }

  /// The value of `WWW-Authenticate` or `Proxy-Authenticate`.
  var challenge: String { "Basic realm=\"\(realm)\", charset=\"UTF-8\"" }

  /// Returns whether the value of an `Authorization` or `Proxy-Authorization` field is this credential.
  func accepts(_ authorization: String?) -> Bool {
    guard let authorization else { return false }
    let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    return parts.count == 2 && parts[0].lowercased() == "basic"
      && parts[1] == Data("\(user):\(password)".utf8).base64EncodedString()
  }
}
#endif
