public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Changes or refuses requests at up to three stages of a load.
///
/// - `willLookUp` is called once for each load and for each alternative source, before the cache lookup. A change affects the
///   resource's identity and `Vary`, as if the caller had made it.
/// - `willRedirect` is called for each redirect, whether its response came from the network or from the cache. A change applies
///   to the request that follows the redirect.
/// - `willSend` is called for each request that goes to the downloader, including redirects, conditional requests and
///   alternatives. The cache does not see the change.
///
/// ```swift
/// configuration.interceptor = RequestInterceptor(
///   willLookUp: { $0.headerFields[.acceptLanguage] = "de" },
///   willSend: { request in
///     guard request.head.scheme == "https", request.head.authority == "api.example.com" else { return }
///     request.head.headerFields[.authorization] = try await tokens.current()
///   })
/// ```
///
/// To refuse a request, throw an error. The load ends with that error if it is a ``CacheError``, and with
/// ``CacheError/Code/refused`` otherwise. No request is sent.
///
/// A downloader that retries sends a request again without a further call. To change each attempt, put the interceptor below the
/// retries: `engine.intercepted(by: interceptor).retrying(.standard)`.
///
/// - Important: `willSend` is also called for the target of a redirect. Check the scheme and the host before you set a
///   credential. Otherwise it is sent to each host that a server redirects to.
public struct RequestInterceptor: Component {
  /// The identity, which is equal for interceptors that do the same. Loads share work only if the stages after the lookup have
  /// equal identities.
  public let id: ComponentID
  /// Whether the credentials that `willSend` sets belong to the program itself and not to a user.
  package let sendsServiceCredentials: Bool

  private let lookUp: (@Sendable (inout HTTPRequest) throws -> Void)?
  private let redirect: (@Sendable (inout Redirection) async throws -> Void)?
  private let send: (@Sendable (inout DownloadRequest) async throws -> Void)?

  /// Creates an interceptor from closures, which it retains with everything that they capture. Create it once and use it for many
  /// loads.
  ///
  /// - Parameters:
  ///   - id: The identity, which is equal for interceptors that do the same. The default is unique.
  ///   - sendsServiceCredentials: Whether the credentials that `willSend` sets belong to the program itself, as a signature with
  ///     its own key does, so that the origin sends every user the same response. The response is then stored by the rules for a
  ///     request without these credentials. The default is `false`: a response to a request with credentials that the cache does
  ///     not see is not stored, because it may belong to one user.
  ///   - willLookUp: Changes a load's request. Lookups and removals also call it, so that they find the same entry as a load. It
  ///     runs on the caller's thread, so it must return quickly.
  ///   - willRedirect: Changes the request that follows a redirect, or decides not to follow it. A refusal ends the load with
  ///     ``CacheError/Code/redirectRefused``. The load's own rules still apply: the redirect limit, only `http` and `https`, and
  ///     `https` to `http` only if that is allowed.
  ///   - willSend: Changes an `http` or `https` request on its way to the downloader. It may suspend, for example to wait for a
  ///     token.
  public init(
    id: ComponentID = .unique(RequestInterceptor.self), sendsServiceCredentials: Bool = false,
    willLookUp: (@Sendable (inout HTTPRequest) throws -> Void)? = nil,
    willRedirect: (@Sendable (inout Redirection) async throws -> Void)? = nil,
    willSend: (@Sendable (inout DownloadRequest) async throws -> Void)? = nil
  ) {
    self.id = id
    self.sendsServiceCredentials = sendsServiceCredentials
    (lookUp, redirect, send) = (willLookUp, willRedirect, willSend)
  }

  /// Whether the interceptor is called before the cache lookup.
  package var interceptsLookups: Bool { lookUp != nil }
  /// Whether the interceptor is called for redirects.
  package var interceptsRedirects: Bool { redirect != nil }
  /// Whether the interceptor is called for requests to the downloader.
  package var interceptsSending: Bool { send != nil }

  /// The interceptor without the lookup stage.
  package var withoutLookups: RequestInterceptor {
    RequestInterceptor(id: id, sendsServiceCredentials: sendsServiceCredentials, willRedirect: redirect, willSend: send)
  }

  /// Changes a load's request before the cache lookup.
  package func willLookUp(_ request: inout HTTPRequest) throws(CacheError) {
    do {
      try lookUp?(&request)
    } catch {
      throw CacheError.refusal(error, reason: "the interceptor refused the request")
    }
  }

  /// Changes the request that follows a redirect.
  package func willRedirect(_ redirection: inout Redirection) async throws(CacheError) {
    do {
      try await redirect?(&redirection)
    } catch {
      throw CacheError.refusal(error, reason: "the interceptor refused the request")
    }
    if Task.isCancelled { throw .cancelled }
  }

  /// Changes a request on its way to the downloader.
  package func willSend(_ request: inout DownloadRequest) async throws(CacheError) {
    do {
      try await send?(&request)
    } catch {
      if Task.isCancelled { throw .cancelled }
      throw CacheError.refusal(error, reason: "the interceptor refused the request")
    }
    if Task.isCancelled { throw .cancelled }
  }
}

extension CacheError {
  /// Returns the error of a load that a caller's code has refused with `error`.
  package static func refusal(_ error: any Error, reason: String) -> CacheError {
    if let error = error as? CacheError { return error }
    if error is CancellationError { return .cancelled }
    return CacheError(.refused, reason: "\(reason): \(error)", underlying: error)
  }
}

/// A redirect of a load (RFC 9110 §15.4), and the request that follows it.
public struct Redirection: Sendable {
  /// The URL that redirects.
  public let from: URL
  /// The URL that the response leads to.
  public let to: URL
  /// The header of the response that redirects.
  public let response: HTTPResponse
  /// The number of the redirect in its load, counted from 1.
  public let number: Int
  /// The next request. Set it to change what is sent.
  ///
  /// The proposed request has no credentials, cookies or conditions if it goes to another origin. After a 303, and after a POST
  /// with a 301 or 302 response, it is a GET without content. A changed request is sent unmodified, including its credentials.
  public var request: HTTPRequest
  /// Whether the redirect is followed. If not, the load checks the redirect's status against the statuses that it accepts.
  public var isFollowed = true

  /// Creates a redirect, for tests of interceptors.
  public init(from: URL, to: URL, response: HTTPResponse, number: Int, request: HTTPRequest) {
    self.from = from
    self.to = to
    self.response = response
    self.number = number
    self.request = request
  }
}

/// A downloader that passes its requests through an interceptor.
///
/// The interceptor runs below the cache, which stores the response under the original request. If the interceptor adds
/// credentials, the response gets `Cache-Control: no-store`, because the cache does not know which user it belongs to.
/// Credentials of the service belong to no user.
package struct InterceptedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let interceptor: RequestInterceptor

  package init(_ base: any Downloader, by interceptor: RequestInterceptor) {
    id = ComponentID(
      Self.self, "\(interceptor.sendsServiceCredentials) \(interceptor.id.type) \(interceptor.id.parameters)", around: base.id)
    self.base = base
    self.interceptor = interceptor
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var changed = request
    try await interceptor.willSend(&changed)
    var response = try await base.download(changed)
    if !interceptor.sendsServiceCredentials, Self.adds(changed.head.headerFields, to: request.head.headerFields) {
      // Replace the whole field: a `must-understand` directive would override `no-store` (RFC 9111 §5.2.2.3).
      response.head.headerFields[.cacheControl] = "no-store"
    }
    return response
  }

  private static let credentials: [HTTPField.Name] = [.authorization, .cookie, .proxyAuthorization]

  private static func adds(_ fields: HTTPFields, to original: HTTPFields) -> Bool {
    credentials.contains { !fields[values: $0].isEmpty && fields[values: $0] != original[values: $0] }
  }
}

extension Downloader {
  /// Returns this downloader with an interceptor in front of it. Only the `willSend` stage applies.
  ///
  /// The cache does not see the interceptor's changes. If the interceptor adds an `Authorization`, `Cookie` or
  /// `Proxy-Authorization` field, the response is marked `Cache-Control: no-store`. To cache such responses, set the credentials
  /// of a user in the request itself or in the `willLookUp` stage. Declare credentials of the service, which are the same for all
  /// users, with `sendsServiceCredentials`.
  ///
  /// ```swift
  /// let downloader = engine.intercepted(by: signature).retrying(.standard)  // signs each attempt
  /// ```
  ///
  /// - Parameter interceptor: The interceptor. It is called for each request, including retries from outside.
  public func intercepted(by interceptor: RequestInterceptor) -> some Downloader {
    InterceptedDownloader(self, by: interceptor)
  }
}
