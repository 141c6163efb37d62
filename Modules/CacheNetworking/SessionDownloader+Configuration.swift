internal import CacheCore
public import Foundation
public import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDownloader {
  /// How a ``SessionDownloader`` asks.
  public struct Configuration: Hashable, Sendable {
    /// Connections that are open to one host at once.
    public var connectionsPerHost = 6
    /// How long nothing may come or go before a transfer fails with `CacheError.Code.timedOut`, for requests that set none of
    /// their own. Counted from the start, the wait for a connection included, by the downloader's own clock.
    public var idleTimeout = Duration.seconds(60)
    /// Bytes of a body that may have come without being read; nil: any number. Foundation can't make a server wait, so what is
    /// not read is held in memory. A reader that is further behind ends with `CacheError.Code.readerTooSlow`.
    public var bufferLimit: Int? = 512 << 20
    /// Bytes of a request's body that are kept in memory; a longer one is written to ``uploadFolder`` before it is sent. A body
    /// whose bytes are at hand stays where it is.
    public var uploadMemoryLimit = 1 << 20
    /// Where longer bodies of requests wait, each in a file that its owner alone may read, until they are sent or given up.
    public var uploadFolder = FileManager.default.temporaryDirectory
    /// Whose proxies are used.
    public var proxy = ProxySource.platform
    /// Whether a request waits for a network instead of failing with `CacheError.Code.offline`. Apple platforms only.
    public var waitsForConnectivity = false
    /// `User-Agent` of requests that have none; nil: the platform's.
    ///
    /// One for all requests of a downloader, whose ``SessionDownloader/id`` no other has; it is added below the cache, which does
    /// not see it. Where an answer varies by it and the store outlives it, set the field in the request.
    public var userAgent: String?
    /// Fields that are added to requests which don't have them, below the cache, which does not see them.
    ///
    /// Not for `Authorization`, `Cookie` and `Proxy-Authorization`: a cache that does not see whose answer it stores shows it to
    /// the next user. With one of them here every download fails with `CacheError.Code.invalidConfiguration`, without a request;
    /// they belong into the request.
    public var additionalHeaders: HTTPFields = [:]
    /// Whether the session keeps cookies and sends them. Off: an answer must not depend on what other requests left behind.
    ///
    /// - Important: Such cookies are added below the cache, which does not see them, and all requests of a downloader share them.
    ///   Where they make answers one user's, give each user a downloader, and a `partition` in the request's options, or have the
    ///   origin send `no-store`.
    public var handlesCookies = false

    /// The defaults.
    public init() {}

    /// Always without a `URLCache`, stored credentials and kept cookies, whatever it is based on: Foundation's cache would answer
    /// in the server's place, and on Linux it neither revalidates nor heeds `Vary`.
    ///
    /// - Parameters:
    ///   - platform: what it is based on; nil: the ephemeral one.
    ///   - proxies: nil: the platform's own.
    func session(basedOn platform: URLSessionConfiguration?, proxies: ProxySettings?) -> URLSessionConfiguration {
      let ephemeral = URLSessionConfiguration.ephemeral
      let session = platform.flatMap { $0.copy() as? URLSessionConfiguration } ?? ephemeral
      session.urlCache = nil
      session.requestCachePolicy = .reloadIgnoringLocalCacheData
      session.urlCredentialStorage = nil
      session.httpMaximumConnectionsPerHost = max(connectionsPerHost, 1)
      session.httpShouldSetCookies = handlesCookies
      session.httpCookieAcceptPolicy = handlesCookies ? .onlyFromMainDocumentDomain : .never
      session.httpCookieStorage = handlesCookies ? ephemeral.httpCookieStorage : nil
      // Fields that a cache above does not see are this type's alone, which checks them.
      session.httpAdditionalHeaders = nil
      session.timeoutIntervalForRequest = TimeInterval(Self.wholeSeconds(idleTimeout) + Self.platformGrace)
      if let proxies { session.connectionProxyDictionary = Self.proxyDictionary(proxies) }
      #if !canImport(FoundationNetworking)
      session.waitsForConnectivity = waitsForConnectivity
      #endif
      return session
    }

    /// How bodies of requests are collected.
    var spooling: BodySpooling { BodySpooling(memoryLimit: max(uploadMemoryLimit, 0), folder: uploadFolder) }

    /// - Throws: `CacheError.Code.invalidConfiguration` when there is a credential among the added fields.
    func check() throws(CacheError) {
      guard !additionalHeaders.isEmpty else { return }
      let credentials: [HTTPField.Name] = [.authorization, .cookie, .proxyAuthorization]
      guard let field = credentials.first(where: { additionalHeaders.contains($0) }) else { return }
      throw CacheError(
        .invalidConfiguration,
        reason: "\(field) must not stand in additionalHeaders, where a cache does not see it: set it in the request")
    }

    /// The request with the fields that are added to it: those that it has not itself.
    func complete(_ head: HTTPRequest) -> HTTPRequest {
      var head = head
      for name in Set(additionalHeaders.map(\.name)) where !head.headerFields.contains(name) {
        head.headerFields[fields: name] = additionalHeaders[fields: name]
      }
      if let userAgent, head.headerFields[.userAgent] == nil { head.headerFields[.userAgent] = userAgent }
      return head
    }

    /// Seconds by which the platform's time-out comes after ours, so that ours, which is exact, is the one that is told.
    static let platformGrace: Int64 = 30

    /// Rounded up, since Linux cuts the fraction off and takes what is left, 0 as well, at its word; a year is as good as never.
    static func wholeSeconds(_ timeout: Duration) -> Int64 {
      let (seconds, fraction) = timeout.components
      guard seconds < 31_536_000 else { return 31_536_000 }
      return max(seconds + (fraction > 0 ? 1 : 0), 1)
    }
  }
}
