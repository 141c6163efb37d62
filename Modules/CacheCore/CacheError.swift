#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Why a load, or a store's operation, did not succeed.
///
/// A struct with a code, so that new reasons can be told without breaking a `switch`. Its ``description`` is one line that names
/// the thing and the reason.
///
/// ```swift
/// do {
///   let resource = try await manager.load(url)
/// } catch where error.code == .unacceptableStatus {
///   print(error.status ?? 0, error.url ?? "")
/// }
/// ```
public struct CacheError: Error, Sendable {
  /// What kind of failure it is; compare with the constants.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The code's name, stable between versions.
    public let rawValue: String

    /// A code of one's own, for components outside this package.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// What kind of failure it is.
  public var code: Code {
    get { boxed.content.code }
    set { boxed.content.code = newValue }
  }
  /// What happened, in words.
  public var reason: String {
    get { boxed.content.reason }
    set { boxed.content.reason = newValue }
  }
  /// The URL that the caller asked for, also if a redirect led elsewhere; see ``failedURL``.
  public var url: String? {
    get { boxed.content.url }
    set { boxed.content.url = newValue }
  }
  /// The URLs that redirects led to, in order; empty if no redirect was followed. The URL that was asked for is not one of them.
  ///
  /// The URLs have no user information. Their queries may hold a signature, so ``description`` leaves the queries out.
  public var redirectTargets: [String] {
    get { boxed.content.redirectTargets }
    set { boxed.content.redirectTargets = newValue }
  }
  /// The URL of the request that failed: the last of ``redirectTargets``, or ``url`` if no redirect was followed.
  public var failedURL: String? { redirectTargets.last ?? url }
  /// The HTTP status that was answered.
  public var status: Int? {
    get { boxed.content.status }
    set { boxed.content.status = newValue }
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
  /// How many requests had been sent for the resource when it failed; nil: not known, or none.
  public var attempt: Int? {
    get { boxed.content.attempt }
    set { boxed.content.attempt = newValue }
  }
  /// The error behind it.
  public var underlying: (any Error)? {
    get { boxed.content.underlying }
    set { boxed.content.underlying = newValue }
  }

  /// An error of its parts.
  public init(
    _ code: Code, reason: String, url: String? = nil, redirectTargets: [String] = [], status: Int? = nil,
    path: String? = nil, errno: Int32? = nil, attempt: Int? = nil, underlying: (any Error)? = nil
  ) {
    boxed = Boxed(
      Content(
        code: code, reason: reason, url: url, redirectTargets: redirectTargets, status: status, path: path, errno: errno,
        attempt: attempt, underlying: underlying))
  }

  /// The caller, or the last of several, gave up.
  public static let cancelled = CacheError(.cancelled, reason: "cancelled")

  /// Whether nobody failed: the caller gave up.
  public var isCancellation: Bool { code == .cancelled }

  /// Whether no answer came at all, or none that is whole: the way to the origin failed and the origin has said nothing, so a
  /// stored answer may stand in (RFC 9111 §4.2.4).
  ///
  /// A body that was damaged on the way (`damagedContentCoding`) is as much a failed answer as one that was cut short: often it
  /// depends on the place of the damage alone which of them it is. Not among them is what somebody has decided (`tlsFailure`,
  /// `addressRefused`, `bodyTooLarge`, …).
  public var isUnreachable: Bool {
    [
      .hostNotFound, .connectionRefused, .connectionLost, .timedOut, .offline, .malformedResponse, .truncatedBody,
      .bodyInterrupted, .damagedContentCoding, .noDownloader, .networkRestricted, .proxyFailure,
    ].contains(code)
  }

  /// The same error, about `url` unless it names one already.
  package func about(_ url: String?) -> CacheError {
    guard self.url == nil, let url else { return self }
    var named = self
    named.url = url
    return named
  }

  /// Whether ``path`` is the file that ``url`` names: then the resource itself could not be read.
  package var isAboutSourceFile: Bool {
    guard let path, let url, url.hasPrefix("file:") else { return false }
    return URL(string: url)?.path(percentEncoded: false) == path
  }

  private struct Content: Sendable {
    var code: Code
    var reason: String
    var url: String?
    var redirectTargets: [String]
    var status: Int?
    var path: String?
    var errno: Int32?
    var attempt: Int?
    var underlying: (any Error)?
  }

  private var boxed: Boxed<Content>
}

extension CacheError.Code {
  /// The caller gave up.
  public static let cancelled = Self(rawValue: "cancelled")
  /// The text is no URL, or the URL can't be loaded.
  public static let invalidURL = Self(rawValue: "invalidURL")
  /// Nobody here loads URLs of this scheme.
  public static let unsupportedScheme = Self(rawValue: "unsupportedScheme")
  /// The host's name does not resolve.
  public static let hostNotFound = Self(rawValue: "hostNotFound")
  /// Nobody listens there.
  public static let connectionRefused = Self(rawValue: "connectionRefused")
  /// The connection broke before, or in the middle of, the answer.
  public static let connectionLost = Self(rawValue: "connectionLost")
  /// There is no network.
  public static let offline = Self(rawValue: "offline")
  /// There is a network, and the request may not use it: see ``NetworkAccess``.
  public static let networkRestricted = Self(rawValue: "networkRestricted")
  /// The host's address is one that loads may not go to: see ``AddressPolicy``.
  public static let addressRefused = Self(rawValue: "addressRefused")
  /// The proxy can't be reached, or refuses.
  public static let proxyFailure = Self(rawValue: "proxyFailure")
  /// Nothing came for too long, or the load's deadline passed.
  public static let timedOut = Self(rawValue: "timedOut")
  /// No trusted connection could be made.
  public static let tlsFailure = Self(rawValue: "tlsFailure")
  /// What came is not HTTP, or breaks its rules.
  public static let malformedResponse = Self(rawValue: "malformedResponse")
  /// The body ended before the length that was announced.
  public static let truncatedBody = Self(rawValue: "truncatedBody")
  /// The body broke off and what is missing can't be had: who has kept nothing of it, or can let go of it, may ask for the whole
  /// anew.
  public static let bodyInterrupted = Self(rawValue: "bodyInterrupted")
  /// The body's content coding is damaged.
  public static let damagedContentCoding = Self(rawValue: "damagedContentCoding")
  /// The body is larger than allowed.
  public static let bodyTooLarge = Self(rawValue: "bodyTooLarge")
  /// The body came faster than it was read, and more of it would have to be held than the engine is allowed to.
  public static let readerTooSlow = Self(rawValue: "readerTooSlow")
  /// What is stored must be confirmed before it is used (`must-revalidate`, `no-cache`), and nobody could be asked. In HTTP that
  /// is 504 (RFC 9111 §5.2.2.2). `respond(to:)` throws it, for servers that have to tell 504 from 502; a load, whose caller wants
  /// to know what is wrong with the network, throws what is `underlying` here.
  public static let revalidationFailed = Self(rawValue: "revalidationFailed")
  /// The status is none that was asked for; see ``CacheError/status``.
  public static let unacceptableStatus = Self(rawValue: "unacceptableStatus")
  /// Redirected more often than allowed, or in a circle.
  public static let tooManyRedirects = Self(rawValue: "tooManyRedirects")
  /// A redirect leads where loads may not go.
  public static let redirectRefused = Self(rawValue: "redirectRefused")
  /// A hook of the caller's refused the request or the response.
  public static let refused = Self(rawValue: "refused")
  /// Only the cache was asked and it holds nothing that may be used.
  public static let notCached = Self(rawValue: "notCached")
  /// No downloader is set, so there is nobody to ask.
  public static let noDownloader = Self(rawValue: "noDownloader")
  /// The bytes could not be made into a value.
  public static let decodingFailed = Self(rawValue: "decodingFailed")
  /// The value could not be made into bytes.
  public static let encodingFailed = Self(rawValue: "encodingFailed")
  /// A file operation failed; see ``CacheError/path`` and ``CacheError/errno``.
  public static let fileSystem = Self(rawValue: "fileSystem")
  /// The disk, or the quota, is full.
  public static let diskFull = Self(rawValue: "diskFull")
  /// A stored entry is damaged; it has been, or will be, removed.
  public static let damagedEntry = Self(rawValue: "damagedEntry")
  /// The entry is larger than the store takes.
  public static let entryTooLarge = Self(rawValue: "entryTooLarge")
  /// The store takes no entries.
  public static let readOnly = Self(rawValue: "readOnly")
  /// The store has more to store than it gets done, and takes nothing until there is room again. A load goes on without it.
  public static let overloaded = Self(rawValue: "overloaded")
  /// The component has no way to do what was asked of it.
  public static let unsupported = Self(rawValue: "unsupported")
  /// A setting makes no sense.
  public static let invalidConfiguration = Self(rawValue: "invalidConfiguration")
  /// The component has been closed.
  public static let closed = Self(rawValue: "closed")
  /// A body was read a second time, or a writer used after its end.
  public static let misuse = Self(rawValue: "misuse")
  /// A scripted test double was asked for what nobody scripted.
  public static let unscripted = Self(rawValue: "unscripted")
  /// Something that none of the other codes tells.
  public static let other = Self(rawValue: "other")
}

extension CacheError.Code: CustomStringConvertible {
  /// The code's name.
  public var description: String { rawValue }
}

extension CacheError: CustomStringConvertible {
  /// One line: the URL, the redirects, the path, and the reason. Redirect targets have no query, since a signature may be in it.
  public var description: String {
    var parts = [url ?? ""]
    parts += redirectTargets.map { "redirected to \(Self.withoutQuery($0))" }
    if let path, !isAboutSourceFile { parts.append(path) }
    parts.append(reason)
    let line = parts.filter { !$0.isEmpty }.joined(separator: ": ")
    return line.split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  private static func withoutQuery(_ url: String) -> String {
    guard let end = url.utf8.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else { return url }
    return url.utf8[end] == UInt8(ascii: "?") ? "\(url[..<end])?…" : String(url[..<end])
  }
}
