public import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The error of a load or of a store's operation.
///
/// The `code` is extensible: new codes do not break a `switch`. The ``description`` is one line that names the resource and the
/// reason.
///
/// ```swift
/// do throws(CacheError) {
///   show(try await manager.load(url).data)
/// } catch {
///   if error.code == .unacceptableStatus { print(error.status ?? 0, error.url ?? "") }
///   if let delay = error.retryAfter { print("try again after", delay) }
/// }
/// ```
public struct CacheError: Error, Sendable {
  /// The kind of a failure. Compare it with the constants.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The name of the code, which is stable between versions.
    public let rawValue: String

    /// Creates a code, for components outside this package.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// The kind of the failure.
  public var code: Code {
    get { boxed.content.code }
    set { boxed.content.code = newValue }
  }
  /// The cause of the failure, in words.
  public var reason: String {
    get { boxed.content.reason }
    set { boxed.content.reason = newValue }
  }
  /// The URL that the caller asked for, even if a redirect led elsewhere; see ``failedURL``.
  public var url: String? {
    get { boxed.content.url }
    set { boxed.content.url = newValue }
  }
  /// The URLs that redirects led to, in order. They do not include the URL that the caller asked for.
  ///
  /// The URLs have no user information. Their queries may contain a signature, so ``description`` omits the queries.
  public var redirectTargets: [String] {
    get { boxed.content.redirectTargets }
    set { boxed.content.redirectTargets = newValue }
  }
  /// The URL of the request that failed: the last of ``redirectTargets``, or ``url`` if no redirect was followed.
  public var failedURL: String? { redirectTargets.last ?? url }
  /// The head of the response that caused the failure, or `nil` if there was no response.
  ///
  /// It has no `Set-Cookie`, because an error reaches every waiter of a load, and errors are logged. ``description``
  /// contains none of its fields.
  public var response: HTTPResponse? {
    get { boxed.content.response }
    set { boxed.content.response = newValue?.withoutCookies }
  }
  /// The HTTP status of ``response``.
  public var status: Int? { response?.status.code }
  /// The delay that the server asked for before the next request, counted from the failure (`Retry-After`, RFC 9110 §10.2.3).
  /// `nil` if it asked for none.
  ///
  /// Servers send the field with 429 and 503, as seconds or as a date. A date is compared with the response's own `Date`, because
  /// the clock of this machine may be wrong. The value is never negative, and it has no upper limit.
  public var retryAfter: Duration? {
    get { boxed.content.retryAfter }
    set { boxed.content.retryAfter = newValue }
  }
  /// The file or folder that the failure is about.
  public var path: String? {
    get { boxed.content.path }
    set { boxed.content.path = newValue }
  }
  /// The system's error number.
  public var errno: Int32? {
    get { boxed.content.errno }
    set { boxed.content.errno = newValue }
  }
  /// The number of requests that had been sent for the resource when it failed. `nil` if it is unknown or zero.
  public var attempt: Int? {
    get { boxed.content.attempt }
    set { boxed.content.attempt = newValue }
  }
  /// The error that caused this one, such as an engine's own error or a ``FailureHistory``.
  public var underlying: (any Error)? {
    get { boxed.content.underlying }
    set { boxed.content.underlying = newValue }
  }

  /// Creates an error. Without `retryAfter`, the delay is that of a `response` which was received just now.
  public init(
    _ code: Code, reason: String, url: String? = nil, redirectTargets: [String] = [], response: HTTPResponse? = nil,
    retryAfter: Duration? = nil, path: String? = nil, errno: Int32? = nil, attempt: Int? = nil, underlying: (any Error)? = nil
  ) {
    boxed = Boxed(
      Content(
        code: code, reason: reason, url: url, redirectTargets: redirectTargets, response: response?.withoutCookies,
        retryAfter: retryAfter ?? response?.headerFields.retryAfter(receivedAt: SystemClock().now), path: path, errno: errno,
        attempt: attempt, underlying: underlying))
  }

  /// Creates the error of a response whose status is not accepted. Its reason ends with the delay of `Retry-After`.
  ///
  /// - Parameters:
  ///   - received: The time at which the response was received. A stored response may be older than `now`.
  package init(unacceptable response: HTTPResponse, reason: String, received: Timestamp, now: Timestamp, attempt: Int? = nil) {
    let delay = response.headerFields.retryAfter(receivedAt: received).map { max($0 - max(now - received, .zero), .zero) }
    self.init(
      .unacceptableStatus, reason: reason + Self.retryHint(delay), response: response, retryAfter: delay, attempt: attempt)
  }

  /// The end of a reason that states a delay, such as `, retry after 120 seconds`. Empty without a delay.
  package static func retryHint(_ delay: Duration?) -> String {
    guard let delay, delay > .zero else { return "" }
    let seconds = delay.components.seconds + (delay.components.attoseconds > 0 ? 1 : 0)
    return ", retry after \(seconds) second\(seconds == 1 ? "" : "s")"
  }

  /// The error of a load that was cancelled.
  public static let cancelled = CacheError(.cancelled, reason: "cancelled")

  /// Whether the load was cancelled.
  public var isCancellation: Bool { code == .cancelled }

  /// Whether no complete response arrived from the origin, so that a stored response may be served instead (RFC 9111 §4.2.4).
  ///
  /// A damaged body (`damagedContentCoding`) counts like a truncated one, because the position of the damage decides which of the
  /// two is reported. Deliberate refusals, such as `tlsFailure`, `addressRefused` and `bodyTooLarge`, do not count.
  public var isUnreachable: Bool {
    [
      .hostNotFound, .connectionRefused, .connectionLost, .timedOut, .offline, .malformedResponse, .truncatedBody,
      .bodyInterrupted, .damagedContentCoding, .noDownloader, .networkRestricted, .proxyFailure, .retryLater,
    ].contains(code)
  }

  /// Returns the error with `url` as its URL, unless it has one already.
  package func about(_ url: String?) -> CacheError {
    guard self.url == nil, let url else { return self }
    var named = self
    named.url = url
    return named
  }

  /// Returns the error with `response` as its response, and with the delay that it asks for, unless the error has one already.
  ///
  /// - Parameter received: The time at which the response was received.
  package func caused(by response: HTTPResponse, receivedAt received: Timestamp) -> CacheError {
    guard self.response == nil, !isCancellation else { return self }
    var caused = self
    caused.response = response
    caused.retryAfter = retryAfter ?? response.headerFields.retryAfter(receivedAt: received)
    return caused
  }

  /// Returns the error with the delay that is left some time after the failure, also in the reason.
  package func reported(after elapsed: Duration) -> CacheError {
    guard let delay = retryAfter else { return self }
    var later = self
    let (rest, hint) = (max(delay - max(elapsed, .zero), .zero), Self.retryHint(delay))
    later.retryAfter = rest
    if reason.hasSuffix(hint) { later.reason = reason.dropLast(hint.count) + Self.retryHint(rest) }
    return later
  }

  /// Whether ``path`` is the file that ``url`` names. In that case the resource itself could not be read.
  package var isAboutSourceFile: Bool {
    guard let path, let url, url.hasPrefix("file:") else { return false }
    return URL(string: url)?.path(percentEncoded: false) == path
  }

  private struct Content: Sendable {
    var code: Code
    var reason: String
    var url: String?
    var redirectTargets: [String]
    var response: HTTPResponse?
    var retryAfter: Duration?
    var path: String?
    var errno: Int32?
    var attempt: Int?
    var underlying: (any Error)?
  }

  private var boxed: Boxed<Content>
}

extension CacheError.Code {
  /// The caller cancelled the load.
  public static let cancelled = Self(rawValue: "cancelled")
  /// The text is not a URL, or the URL cannot be loaded.
  public static let invalidURL = Self(rawValue: "invalidURL")
  /// No downloader or scheme handler loads URLs of this scheme.
  public static let unsupportedScheme = Self(rawValue: "unsupportedScheme")
  /// The host's name does not resolve.
  public static let hostNotFound = Self(rawValue: "hostNotFound")
  /// No process accepts connections at the host's port.
  public static let connectionRefused = Self(rawValue: "connectionRefused")
  /// The connection was lost before or during the response.
  public static let connectionLost = Self(rawValue: "connectionLost")
  /// No network is available.
  public static let offline = Self(rawValue: "offline")
  /// A network is available, but the request may not use it; see ``NetworkAccess``.
  public static let networkRestricted = Self(rawValue: "networkRestricted")
  /// Loads may not connect to the host's address; see ``AddressPolicy``.
  public static let addressRefused = Self(rawValue: "addressRefused")
  /// The proxy cannot be reached, or it refused the connection.
  public static let proxyFailure = Self(rawValue: "proxyFailure")
  /// No data arrived within the idle timeout, or the load's deadline passed.
  public static let timedOut = Self(rawValue: "timedOut")
  /// No request was sent, because the server has asked for a pause (`Retry-After`); see ``CacheError/retryAfter``.
  ///
  /// The downloader that `respectingRetryAfter(upTo:clock:)` of CacheTransport returns throws it.
  public static let retryLater = Self(rawValue: "retryLater")
  /// No trusted TLS connection could be established.
  public static let tlsFailure = Self(rawValue: "tlsFailure")
  /// The response is not HTTP or violates the protocol.
  public static let malformedResponse = Self(rawValue: "malformedResponse")
  /// The body ended before its announced length.
  public static let truncatedBody = Self(rawValue: "truncatedBody")
  /// The body was interrupted and cannot be resumed. A caller that can discard the bytes received so far may load the whole
  /// resource again.
  public static let bodyInterrupted = Self(rawValue: "bodyInterrupted")
  /// The body's content coding is damaged.
  public static let damagedContentCoding = Self(rawValue: "damagedContentCoding")
  /// The body is larger than allowed.
  public static let bodyTooLarge = Self(rawValue: "bodyTooLarge")
  /// The body arrived faster than it was read, and the engine's buffer is full.
  public static let readerTooSlow = Self(rawValue: "readerTooSlow")
  /// The stored response must be revalidated (`must-revalidate`, `no-cache`), and the origin could not be reached.
  ///
  /// `respond(to:)` throws it so that a server can return 504 instead of 502 (RFC 9111 §5.2.2.2). Other loads throw the
  /// ``CacheError/underlying`` error, which tells the caller what is wrong with the network.
  public static let revalidationFailed = Self(rawValue: "revalidationFailed")
  /// The response has a status that the load does not accept; see ``CacheError/status``.
  public static let unacceptableStatus = Self(rawValue: "unacceptableStatus")
  /// The redirects exceed the limit, or they form a loop.
  public static let tooManyRedirects = Self(rawValue: "tooManyRedirects")
  /// A redirect leads to a URL that the load may not use.
  public static let redirectRefused = Self(rawValue: "redirectRefused")
  /// An interceptor or a hook refused the request or the response.
  public static let refused = Self(rawValue: "refused")
  /// The load may use only the cache, which has no usable response.
  public static let notCached = Self(rawValue: "notCached")
  /// No downloader is set.
  public static let noDownloader = Self(rawValue: "noDownloader")
  /// The bytes could not be decoded into a value.
  public static let decodingFailed = Self(rawValue: "decodingFailed")
  /// The value could not be encoded.
  public static let encodingFailed = Self(rawValue: "encodingFailed")
  /// A file operation failed; see ``CacheError/path`` and ``CacheError/errno``.
  public static let fileSystem = Self(rawValue: "fileSystem")
  /// The disk or the quota is full.
  public static let diskFull = Self(rawValue: "diskFull")
  /// A stored entry is damaged. It has been removed, or will be.
  public static let damagedEntry = Self(rawValue: "damagedEntry")
  /// The entry is larger than the store accepts.
  public static let entryTooLarge = Self(rawValue: "entryTooLarge")
  /// The store does not accept new entries.
  public static let readOnly = Self(rawValue: "readOnly")
  /// The store has too much pending work and rejects new entries until it catches up. A load continues without it.
  public static let overloaded = Self(rawValue: "overloaded")
  /// The server of the store cannot be reached, does not reply in time, or refuses the operation. A load continues without it.
  public static let storeUnavailable = Self(rawValue: "storeUnavailable")
  /// The entry was not stored, because another process may have stored a later response (``RequestLease``).
  public static let superseded = Self(rawValue: "superseded")
  /// The component does not support the operation.
  public static let unsupported = Self(rawValue: "unsupported")
  /// A setting is invalid.
  public static let invalidConfiguration = Self(rawValue: "invalidConfiguration")
  /// The component is closed.
  public static let closed = Self(rawValue: "closed")
  /// A body was read twice, or a writer was used after it had finished or was discarded.
  public static let misuse = Self(rawValue: "misuse")
  /// A test double received a request that it has no script for.
  public static let unscripted = Self(rawValue: "unscripted")
  /// A failure that no other code describes.
  public static let other = Self(rawValue: "other")
}

extension HTTPResponse {
  fileprivate var withoutCookies: HTTPResponse {
    guard headerFields.contains(.setCookie) else { return self }
    var response = self
    response.headerFields[fields: .setCookie] = []
    return response
  }
}

extension CacheError.Code: CustomStringConvertible {
  /// The name of the code.
  public var description: String { rawValue }
}

extension CacheError: CustomStringConvertible {
  /// One line with the URL, the redirects, the path and the reason. The redirect targets have no query, because it may contain a
  /// signature.
  public var description: String {
    var parts = [url ?? ""]
    parts += redirectTargets.map { "redirected to \(Self.withoutQuery($0))" }
    if let path, !isAboutSourceFile { parts.append(path) }
    parts.append(reason)
    let line = parts.filter { !$0.isEmpty }.joined(separator: ": ")
    // A host from a redirect may contain control characters, which a terminal would obey.
    let text = line.split(whereSeparator: \.isNewline).joined(separator: " ").unicodeScalars
    return String(String.UnicodeScalarView(text.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
  }

  private static func withoutQuery(_ url: String) -> String {
    guard let end = url.utf8.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else { return url }
    return url.utf8[end] == UInt8(ascii: "?") ? "\(url[..<end])?…" : String(url[..<end])
  }
}

extension CacheError {
  /// Throws ``Code/invalidConfiguration`` if the number of a setting is below a minimum. NaN is below every minimum.
  package static func require<Number: Comparable>(
    _ setting: String, _ value: Number?, in range: PartialRangeFrom<Number>
  ) throws(CacheError) {
    guard let value, !range.contains(value) else { return }
    throw invalid(setting, value, "at least \(range.lowerBound)")
  }

  /// Throws ``Code/invalidConfiguration`` if the number of a setting is outside a range. NaN is outside every range.
  package static func require<Number: Comparable>(
    _ setting: String, _ value: Number?, in range: ClosedRange<Number>
  ) throws(CacheError) {
    guard let value, !range.contains(value) else { return }
    throw invalid(setting, value, "from \(range.lowerBound) to \(range.upperBound)")
  }

  /// Throws ``Code/invalidConfiguration`` if the duration of a setting is zero or less.
  package static func require(_ setting: String, positive value: Duration?) throws(CacheError) {
    guard let value, value <= .zero else { return }
    throw invalid(setting, value, "greater than zero")
  }

  private static func invalid(_ setting: String, _ value: some Any, _ range: String) -> CacheError {
    CacheError(.invalidConfiguration, reason: "the setting '\(setting)' must be \(range), not \(value)")
  }
}

/// A component with settings whose own functions cannot throw. A manager with such a component throws the error of its settings.
package protocol CheckedComponent {
  /// The result of checking the settings, which is made once.
  var validity: Result<Void, CacheError> { get }
}

/// The errors of all requests for a resource. It is the `underlying` error of the error that a load throws.
///
/// After retries, the load throws the last error. With alternative sources, it throws the error of the primary source. A response
/// with a retryable status is listed as `CacheError.Code.unacceptableStatus`.
///
/// ```swift
/// for failure in (error.underlying as? FailureHistory)?.failures ?? [] { print(failure.url ?? "", failure.reason) }
/// ```
public struct FailureHistory: Error, Sendable {
  /// The errors in the order of the requests. The thrown error is listed without this history.
  public let failures: [CacheError]

  /// Creates a history from its errors.
  public init(_ failures: [CacheError]) { self.failures = failures }
}

extension FailureHistory: CustomStringConvertible {
  /// All errors in one line.
  public var description: String { failures.map(\.description).joined(separator: "; then ") }
}
