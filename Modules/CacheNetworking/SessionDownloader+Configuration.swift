internal import CacheCore
internal import Foundation
public import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDownloader {
  /// How a ``SessionDownloader`` asks.
  public struct Configuration: Hashable, Sendable {
    /// Connections that are open to one host at once.
    public var connectionsPerHost = 6
    /// How long nothing may come before a transfer fails with `CacheError.Code.timedOut`, for requests that set none of their own. Used in whole
    /// seconds, rounded up, at least one: Linux knows no finer.
    public var idleTimeout = Duration.seconds(60)
    /// Whether a request waits for a network instead of failing with `CacheError.Code.offline`. Apple platforms only.
    public var waitsForConnectivity = false
    /// Whether equal requests that run at the same time share one transfer: GET and HEAD without a body, with equal URL and equal fields.
    public var sharesTransfers = true
    /// Bytes of a body that are kept for requests that come while it is under way. A longer body is shared by those who came in time.
    public var joinLimit = 1 << 20
    /// `User-Agent` of requests that have none; nil: the platform's.
    ///
    /// One for all requests of a downloader, whose ``SessionDownloader/id`` no other has; it is added below the cache, which does not see it. Where an
    /// answer varies by it and the store outlives it, set the field in the request.
    public var userAgent: String?
    /// Fields that are added to requests which don't have them, below the cache, which does not see them.
    ///
    /// Not for `Authorization`, `Cookie` and `Proxy-Authorization`: a cache that does not see whose answer it stores shows it to the next user. With one of
    /// them here every download fails with `CacheError.Code.invalidConfiguration`, without a request; they belong into the request.
    public var additionalHeaders: HTTPFields = [:]
    /// Whether the session keeps cookies and sends them. Off: an answer must not depend on what other requests left behind.
    ///
    /// - Important: Such cookies are added below the cache, which does not see them, and all requests of a downloader share them. Where they make answers
    ///   one user's, give each user a downloader, and a `partition` in the request's options, or have the origin send `no-store`.
    public var handlesCookies = false

    /// The defaults.
    public init() {}

    /// Always ephemeral and without a `URLCache`: Foundation's cache would answer in the server's place, and on Linux it neither revalidates nor
    /// heeds `Vary`. Pipelining stays off, as it is by default.
    var session: URLSessionConfiguration {
      let session = URLSessionConfiguration.ephemeral
      session.urlCache = nil
      session.requestCachePolicy = .reloadIgnoringLocalCacheData
      session.urlCredentialStorage = nil
      session.httpMaximumConnectionsPerHost = max(connectionsPerHost, 1)
      session.httpShouldSetCookies = handlesCookies
      session.httpCookieAcceptPolicy = handlesCookies ? .onlyFromMainDocumentDomain : .never
      if !handlesCookies { session.httpCookieStorage = nil }
      session.timeoutIntervalForRequest = TimeInterval(Self.wholeSeconds(idleTimeout))
      #if !canImport(FoundationNetworking)
      session.waitsForConnectivity = waitsForConnectivity
      #endif
      return session
    }

    /// A credential among the added fields.
    var misplacedCredential: HTTPField.Name? {
      let credentials: [HTTPField.Name] = [.authorization, .cookie, .proxyAuthorization]
      return credentials.first { additionalHeaders.contains($0) }
    }

    /// Rounded up, since Linux cuts the fraction off and takes what is left, 0 as well, at its word; a year is as good as never.
    static func wholeSeconds(_ timeout: Duration) -> Int64 {
      let (seconds, fraction) = timeout.components
      guard seconds < 31_536_000 else { return 31_536_000 }
      return max(seconds + (fraction > 0 ? 1 : 0), 1)
    }
  }
}
