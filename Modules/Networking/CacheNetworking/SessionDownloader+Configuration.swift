public import CacheCore
public import Foundation
public import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDownloader {
  /// The settings of a ``SessionDownloader``. With a number out of its range, every download fails with
  /// `CacheError.Code.invalidConfiguration`.
  public struct Configuration: Hashable, Sendable {
    /// The maximum number of connections to one host, at least 1.
    public var connectionsPerHost = 6
    /// The default maximum time between two bytes sent or received, greater than zero. It includes the wait for a connection. Of
    /// the time for which an app is suspended, at most a quarter of the limit and one second count. A transfer that exceeds it
    /// fails with `CacheError.Code.timedOut`.
    public var idleTimeout = Duration.seconds(60)
    /// The maximum number of received bytes that are buffered in memory for a slow reader, at least 1, or `nil` for no limit.
    /// Foundation has no back-pressure. A reader that exceeds the limit fails with `CacheError.Code.readerTooSlow`.
    public var bufferLimit: Int? = 512 << 20
    /// The maximum number of bytes of a request body that are collected in memory, at least zero. A longer body is written to
    /// ``uploadFolder`` before it is sent. A body that is already in memory stays there.
    public var uploadMemoryLimit = 1 << 20
    /// The folder for longer request bodies. Each body is stored in a file that only its owner can read, until it is sent or
    /// cancelled.
    public var uploadFolder = FileManager.default.temporaryDirectory
    /// The source of the proxy settings.
    public var proxy = ProxySource.platform
    /// Whether a request waits for a network instead of failing with `CacheError.Code.offline`. Apple platforms only.
    public var waitsForConnectivity = false
    /// The hosts whose TLS certificate is not verified, for tests and devices in a local network. Apple platforms only.
    ///
    /// Names and addresses, compared without regard to case, to a dot at the end and to the form of an international name. One
    /// with a port (`printer.local:8443`) is trusted at this port only. There are no wildcards, and subdomains are not included.
    public var trustedHosts: Set<String> = []
    /// The `User-Agent` of requests that have none, or `nil` for the platform's.
    ///
    /// The field is added below the cache, which does not see it. If a response varies by it and the store outlives the
    /// downloader, set the field in the request.
    public var userAgent: String?
    /// Fields that are added to requests without them. They are added below the cache, which does not see them.
    ///
    /// `Authorization`, `Cookie` and `Proxy-Authorization` are not allowed. A cache cannot see these fields, so it would serve
    /// one user's response to another. With one of them, every download fails with `CacheError.Code.invalidConfiguration`. Set
    /// them in the request.
    public var additionalHeaders: HTTPFields = [:]
    /// Whether the session stores and sends cookies. Off by default, so that a response does not depend on earlier requests.
    ///
    /// - Important: Such cookies are added below the cache, which does not see them. All requests of a downloader share them. If
    ///   they make responses private to a user, give each user a downloader and a `partition` in the request's options, or have
    ///   the origin send `no-store`.
    public var handlesCookies = false

    /// Creates the default settings.
    public init() {}

    /// Returns the session's configuration. It never contains the `URLCache`, stored credentials or cookies of `platform`.
    /// Foundation's cache would replace this package's, and on Linux it neither revalidates nor respects `Vary`.
    ///
    /// - Parameters:
    ///   - platform: The configuration to start from, or `nil` for the ephemeral one.
    ///   - proxies: The proxies, or `nil` for the platform's.
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
      // Only fields that `check()` has accepted are added.
      session.httpAdditionalHeaders = nil
      session.timeoutIntervalForRequest = TimeInterval(Self.wholeSeconds(idleTimeout) + Self.platformGrace)
      if let proxies { session.connectionProxyDictionary = Self.proxyDictionary(proxies) }
      #if !canImport(FoundationNetworking)
      session.waitsForConnectivity = waitsForConnectivity
      #endif
      return session
    }

    /// The limits for collecting request bodies.
    var spooling: BodySpooling { BodySpooling(memoryLimit: max(uploadMemoryLimit, 0), folder: uploadFolder) }

    /// - Throws: `CacheError.Code.invalidConfiguration` if a number is out of its range, or if one of the added fields is a
    ///   credential.
    func check() throws(CacheError) {
      try CacheError.require("connectionsPerHost", connectionsPerHost, in: 1...)
      try CacheError.require("idleTimeout", positive: idleTimeout)
      try CacheError.require("bufferLimit", bufferLimit, in: 1...)
      try CacheError.require("uploadMemoryLimit", uploadMemoryLimit, in: 0...)
      if case .settings(let proxies) = proxy {
        try CacheError.require("proxy.http.port", proxies.http?.port, in: 1...65_535)
        try CacheError.require("proxy.https.port", proxies.https?.port, in: 1...65_535)
      }
      guard !additionalHeaders.isEmpty else { return }
      let credentials: [HTTPField.Name] = [.authorization, .cookie, .proxyAuthorization]
      guard let field = credentials.first(where: { additionalHeaders.contains($0) }) else { return }
      throw CacheError(
        .invalidConfiguration,
        reason: "\(field) is not allowed in additionalHeaders, because a cache cannot see it there; set it in the request")
    }

    /// Returns the request with the added fields that it does not have itself.
    func complete(_ head: HTTPRequest) -> HTTPRequest {
      var head = head
      for name in Set(additionalHeaders.map(\.name)) where !head.headerFields.contains(name) {
        head.headerFields[fields: name] = additionalHeaders[fields: name]
      }
      if let userAgent, head.headerFields[.userAgent] == nil { head.headerFields[.userAgent] = userAgent }
      return head
    }

    /// The seconds that the platform's time-out exceeds ours. Ours is exact, so it must fire first.
    static let platformGrace: Int64 = 30

    /// Returns whole seconds, rounded up, from one second to a year. Linux drops the fraction and accepts a limit of 0.
    static func wholeSeconds(_ timeout: Duration) -> Int64 {
      let (seconds, fraction) = timeout.components
      guard seconds < 31_536_000 else { return 31_536_000 }
      return max(seconds + (fraction > 0 ? 1 : 0), 1)
    }
  }
}

/// The proxy for each request, and whether the platform can use it. The decision needs no I/O.
///
/// Linux ignores `URLSessionConfiguration.connectionProxyDictionary`, and libcurl reads the environment. A request is refused if
/// the caller's settings differ from the environment, because it would be sent another way.
struct ProxyRouting: Sendable {
  /// The settings that the caller wants, or `nil` for the platform's default.
  private let wanted: Result<ProxySettings, CacheError>?
  /// The platform's own settings, or `nil` if they are unknown.
  private let platform: ProxySettings?
  private let hasOnlyEnvironment: Bool

  /// - Parameters:
  ///   - source: The source that the caller chose.
  ///   - environment: The names and values of the environment.
  ///   - hasOnlyEnvironment: Whether the platform reads its proxies only from the environment.
  init(_ source: SessionDownloader.Configuration.ProxySource, environment: [String: String], hasOnlyEnvironment: Bool) {
    self.hasOnlyEnvironment = hasOnlyEnvironment
    // An invalid value is ignored, because libcurl reports it.
    var platform = hasOnlyEnvironment ? try? ProxySettings(environment: environment, readsCapitalHTTP: false) : nil
    // libcurl compares the patterns of `no_proxy` with a host's ASCII form and does not convert them.
    platform?.exceptions.removeAll { !$0.utf8.allSatisfy { $0 < 0x80 } }
    self.platform = platform
    switch source {
    case .platform: wanted = nil
    case .none: wanted = .success(ProxySettings())
    case .settings(let settings): wanted = .success(settings)
    case .environment:
      do throws(CacheError) {
        wanted = .success(try ProxySettings(environment: environment))
      } catch {
        wanted = .failure(error)
      }
    }
  }

  /// Creates the routing for this platform and the environment of the process.
  init(_ source: SessionDownloader.Configuration.ProxySource) {
    #if canImport(FoundationNetworking)
    self.init(source, environment: ProcessInfo.processInfo.environment, hasOnlyEnvironment: true)
    #else
    self.init(source, environment: ProcessInfo.processInfo.environment, hasOnlyEnvironment: false)
    #endif
  }

  /// The settings for a platform that accepts them, or `nil` for none.
  var settings: ProxySettings? { try? wanted?.get() }

  /// Returns the proxy for a URL, or `nil` if there is none or the platform does not reveal it.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if the platform would use another route than the caller wants.
  func proxy(for url: URL) throws(CacheError) -> ProxySettings.Proxy? {
    guard let wanted else { return platform?.proxy(for: url) }
    let proxy = try wanted.get().proxy(for: url)
    guard hasOnlyEnvironment, proxy != platform?.proxy(for: url) else { return proxy }
    let wish = proxy.map { "through the proxy \($0)" } ?? "without a proxy"
    throw CacheError(
      .invalidConfiguration,
      reason:
        "cannot send \(wish): Foundation on Linux reads proxies only from http_proxy, https_proxy, all_proxy and no_proxy"
    )
  }
}

extension SessionDownloader.Configuration {
  /// The source of the proxies for requests.
  public enum ProxySource: Hashable, Sendable {
    /// The platform's proxies: the system settings on Apple platforms, libcurl's environment variables on Linux.
    case platform
    /// No proxy, regardless of the system settings and the environment.
    case none
    /// The proxies in the process environment, which `ProxySettings` reads when the session is created.
    case environment
    /// The given proxies.
    ///
    /// On Linux only the environment can set a proxy. With ``settings(_:)``, ``none`` or ``environment``, a request that libcurl
    /// would send by another route fails with `CacheError.Code.invalidConfiguration`.
    case settings(ProxySettings)
  }

  /// Converts the settings to a `connectionProxyDictionary`. The keys are the values of CFNetwork's constants, some of which are
  /// missing on some platforms. The password is not included: it is supplied when the proxy requests it.
  static func proxyDictionary(_ settings: ProxySettings) -> [AnyHashable: Any] {
    var dictionary: [AnyHashable: Any] = [:]
    for (prefix, proxy) in [("HTTP", settings.http), ("HTTPS", settings.https)] {
      guard let proxy else { continue }
      // One SOCKS proxy serves all schemes.
      let prefix = proxy.kind == .socks5 ? "SOCKS" : prefix
      dictionary["\(prefix)Enable"] = 1
      dictionary["\(prefix)Proxy"] = (try? HostName.ascii(proxy.host)) ?? proxy.host
      dictionary["\(prefix)Port"] = proxy.port
    }
    guard !dictionary.isEmpty, !settings.exceptions.isEmpty else { return dictionary }
    dictionary["ExceptionsList"] = settings.exceptions.flatMap(exceptionPatterns)
    return dictionary
  }

  /// Returns the patterns of one exception. A name in `no_proxy` also covers its subdomains, which need a second pattern.
  private static func exceptionPatterns(_ exception: String) -> [String] {
    let written =
      exception.hasPrefix("*.")
      ? String(exception.dropFirst(2)) : exception.hasPrefix(".") ? String(exception.dropFirst()) : exception
    let name = (try? HostName.ascii(written)) ?? written
    let isName = IPAddress(name) == nil && !name.contains("/") && !name.contains(":") && name != "*"
    return isName ? [name, "*.\(name)"] : [name]
  }
}
