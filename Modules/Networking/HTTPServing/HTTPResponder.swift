#if Server
public import CacheCore
public import HTTPTypes
public import NIOCore

/// A handler of requests: see the example of ``HTTPListener``.
public protocol HTTPResponder: Sendable {
  /// Returns a response as soon as its head is known. The body streams.
  ///
  /// This function runs on the event loop of the connection, so it must not block.
  func respond(to request: ServerRequest) async -> ServerResponse

  /// Returns the response to a refused request. Its body is in memory. The connection is closed after it.
  ///
  /// - Parameters:
  ///   - refusal: The status, and the reason in one line.
  ///   - peer: The address of the client.
  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse
}

/// A request.
public struct ServerRequest: Sendable {
  /// The head, with all fields of the client. The scheme is `http`, and the authority is that of the target or of `Host`.
  public var head: HTTPRequest
  /// The body, which streams, or `nil` for none.
  ///
  /// If the client sends an invalid body, its reader gets `CacheError.Code.badRequest` with the status.
  public var body: ResourceBody?
  /// The address of the client.
  public var peer: SocketAddress?
  /// The target exactly as the client sent it, for a log.
  public var target: String
  /// Whether the version is HTTP/1.0.
  public var isHTTP10: Bool
  /// The sender of interim responses to the client, or `nil` in the test of a responder.
  var interim: InterimSender?

  /// Creates a request, for the test of a responder.
  public init(head: HTTPRequest, body: ResourceBody?, peer: SocketAddress?, target: String, isHTTP10: Bool) {
    (self.head, self.body, self.peer, self.target, self.isHTTP10) = (head, body, peer, target, isHTTP10)
  }

  /// Sends an interim response (1xx) to the client, such as a 103 with `Link` fields (RFC 9110 §15.2, RFC 8297). It can be called
  /// on any thread.
  ///
  /// Nothing is sent for statuses that are not interim, after the responder has responded, to a client of HTTP/1.0, and to a
  /// client that does not read what it was sent before. The server itself sends 100 (Continue), when the body is wanted, and
  /// never 101. The fields about the connection are left out.
  public func sendInterimResponse(_ response: HTTPResponse) {
    guard response.status.kind == .informational, response.status.code > 101, !isHTTP10 else { return }
    interim?.send(response)
  }
}

/// A response to a client.
public struct ServerResponse: Sendable {
  /// The part of a response that was sent.
  public struct Delivery: Sendable {
    /// The body bytes, without head and framing.
    public var bodyBytes: Int64 = 0
    /// Whether the response was sent completely. False if the client or the source of the body ended it early.
    public var isComplete = false
    /// The error of the body or of the connection, if the response is not complete.
    public var error: CacheError?
    /// Whether bytes of the response were written.
    var hasBegun = false

    /// Creates a record. Without arguments, it says that nothing was sent.
    public init(bodyBytes: Int64 = 0, isComplete: Bool = false, error: CacheError? = nil) {
      (self.bodyBytes, self.isComplete, self.error) = (bodyBytes, isComplete, error)
    }
  }

  /// The status, the reason phrase and the fields. The connection adds the fields about itself.
  public var head: HTTPResponse
  /// The body, which streams.
  public var body: ResourceBody
  /// Whether the connection is closed after the response.
  public var closes = false
  /// The error that caused this response, for a log.
  public var error: CacheError?
  /// Returns the response that is sent instead if the body fails before the first byte of this response was written. `onEnd` of
  /// this response is then not called. Without it, the connection is reset.
  public var onFailure: (@Sendable (CacheError) -> ServerResponse)?
  /// Called when the response was sent, or when its connection has ended before.
  public var onEnd: (@Sendable (Delivery) -> Void)?

  /// Creates a response.
  public init(head: HTTPResponse, body: ResourceBody) { (self.head, self.body) = (head, body) }
}

extension CacheError.Code {
  /// A request is refused. `CacheError.status` is the status of its response.
  public static let badRequest = Self(rawValue: "badRequest")

  /// The port cannot be opened.
  public static let cannotListen = Self(rawValue: "cannotListen")
}

extension CacheError {
  /// Creates the error of a refused request.
  public init(_ refusal: RequestRefusal) {
    self.init(.badRequest, reason: refusal.reason, response: HTTPResponse(status: refusal.status))
  }

  /// The status of the response of a gateway for this error (RFC 9110 §15.5, §15.6).
  public var responseStatus: HTTPResponse.Status {
    switch code {
    case .badRequest: HTTPResponse.Status(code: status ?? 400)
    case .timedOut, .notCached, .revalidationFailed: .gatewayTimeout
    case .closed, .retryLater: .serviceUnavailable
    case .refused: .forbidden
    case .invalidURL: .badRequest
    case .bodyTooLarge: .contentTooLarge
    default: .badGateway
    }
  }
}

extension ServerRequest {
  /// Whether a web page of another site, or of another port, sent the request. Its browser states that in `Sec-Fetch-Site` (W3C
  /// Fetch Metadata) or `Origin` (RFC 6454 §7). Programs such as curl send neither field.
  ///
  /// An address without access control is reachable for the pages in the browsers of its operators. So requests that change
  /// something are refused if this is `true`.
  public var isCrossSite: Bool {
    let fields = head.headerFields
    let sites = Self.fetchSite.map { fields[values: $0] } ?? []
    return !sites.allSatisfy { $0 == "same-origin" || $0 == "none" } || !fields[values: .origin].allSatisfy(isOwn)
  }

  private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")

  /// Returns whether an origin has the host and port of this request. The scheme may differ, because a proxy in front may use
  /// TLS.
  private func isOwn(_ origin: String) -> Bool {
    guard let separator = origin.firstRange(of: "://") else { return false }
    let scheme = String(origin[..<separator.lowerBound])
    func normal(_ authority: String?) -> String? {
      ResourceID.authority(of: HTTPRequest(method: .get, scheme: scheme, authority: authority, path: nil))
    }
    let own = normal(head.authority)
    return own != nil && normal(String(origin[separator.upperBound...])) == own
  }
}

extension ServerRequest {
  /// The target as it may be in a log: see ``logged(_:hidesQueries:)``.
  public var loggedTarget: String { Self.logged(target) }

  /// Returns a target without the secrets of the URLs in it, for a log. A URL that is encoded in the path or in a parameter has
  /// the same secrets.
  ///
  /// The user information of a URL is left out. So are the values of query parameters that grant access: signatures, tokens and
  /// keys of presigned URLs.
  ///
  /// - Parameters:
  ///   - target: The target, of which each byte is read once.
  ///   - hidesQueries: Whether everything after the first question mark is left out, for URLs with parameters of any name.
  public static func logged(_ target: String, hidesQueries: Bool = false) -> String {
    let bytes = Array(target.utf8)
    guard bytes.contains(where: { "?%@;".utf8.contains($0) }) else { return target }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count)
    // The name of the parameter at this place, until its "=".
    var nameStart: Int?
    var isHidden = false
    // The number of characters of "://" at this place, and the start of the authority after them in the text.
    var marks = 0
    var authority: Int?
    var place = 0
    while place < bytes.count {
      let (character, end) = decoded(bytes[place...])
      let isSlash = character == UInt8(ascii: "/")
      switch character {
      case UInt8(ascii: "?"), UInt8(ascii: "&"), UInt8(ascii: ";"): (nameStart, isHidden) = (end, false)
      case UInt8(ascii: "@"):
        guard let start = authority, !isHidden else { break }
        text.replaceSubrange(start..., with: "…".utf8)
      default: break
      }
      if !isHidden { text += bytes[place..<end] }
      if character == UInt8(ascii: "?"), hidesQueries { return String(decoding: text, as: UTF8.self) + "…" }
      if character == UInt8(ascii: "="), let start = nameStart {
        nameStart = nil
        isHidden = isSecret(bytes[start..<place])
        if isHidden { text += "…".utf8 }
      }
      if isSlash || character == UInt8(ascii: "?") || character == UInt8(ascii: "#") { authority = nil }
      marks = character == UInt8(ascii: ":") ? 1 : isSlash && marks > 0 ? marks + 1 : 0
      if marks == 3 { (marks, authority) = (0, text.count) }
      place = end
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the first character and its end. It can be percent-encoded, also several times (`%253F`).
  private static func decoded(_ bytes: ArraySlice<UInt8>) -> (character: UInt8, end: Int) {
    var (character, end) = (bytes[bytes.startIndex], bytes.startIndex + 1)
    while character == UInt8(ascii: "%"), bytes.endIndex - end > 1, let high = bytes[end].hexValue,
      let low = bytes[end + 1].hexValue
    {
      (character, end) = (high << 4 | low, end + 2)
    }
    return (character, end)
  }

  private static let secretNames = [
    "sig", "key", "auth", "authorization", "bearer", "jwt", "code", "otp", "nonce", "ticket", "assertion", "samlresponse",
    "policy", "session", "sessionid", "jsessionid", "sid", "hmac", "pwd",
  ].map { Array($0.utf8) }
  private static let secretParts = ["signature", "token", "secret", "passw", "credential", "apikey", "accesskey"]
    .map { Array($0.utf8) }

  /// Returns whether a name is that of a secret, in URLs of AWS, Google, Azure, CloudFront and others.
  private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
    guard name.count > 2 else { return false }
    var letters: [UInt8] = []
    var rest = name
    while !rest.isEmpty {
      let (character, end) = decoded(rest)
      rest = rest[end...]
      let letter = character | 0x20
      if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) { letters.append(letter) }
    }
    if secretNames.contains(letters) { return true }
    return letters.indices.contains { place in secretParts.contains { letters[place...].starts(with: $0) } }
  }
}
#endif
