public import HTTPTypes

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
