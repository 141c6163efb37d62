public import HTTPTypes

/// Changes requests, or refuses them, at up to three stages of a load.
///
/// - `willLookUp` is called once for each load and for each alternative source, before the cache is looked at. A change takes
///   part in the resource's identity and in `Vary`, as if the caller had made it.
/// - `willRedirect` is called for each redirect, whether its response came from the network or from the cache. A change applies
///   to the request that follows the redirect.
/// - `willSend` is called for each request that goes to the downloader: redirects, conditional requests and alternatives
///   included. The cache does not see the change.
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
/// To refuse a request is to throw. The load ends with that error if it is a ``CacheError``, and with
/// ``CacheError/Code/refused`` otherwise. Nothing is sent.
///
/// A downloader that retries sends a request again without a further call. To change each attempt, put the interceptor below the
/// retries: `engine.intercepted(by: interceptor).retrying(.standard)`.
///
/// - Important: `willSend` is called for the target of a redirect as well. A credential that is set without a look at scheme and
///   host is sent to each host that a server redirects to.
public struct RequestInterceptor: Component {
  /// Equal for interceptors that do the same. Loads share work only if the stages after the look-up have equal identities.
  public let id: ComponentID

  private let lookUp: (@Sendable (inout HTTPRequest) throws -> Void)?
  private let redirect: (@Sendable (inout Redirection) async throws -> Void)?
  private let send: (@Sendable (inout DownloadRequest) async throws -> Void)?

  /// Creates an interceptor from closures, which are held strongly. Create it once and use it for many loads.
  ///
  /// - Parameters:
  ///   - id: equal for interceptors that do the same. The default is equal to no other.
  ///   - willLookUp: changes a load's request. Looking up and removing call it too, because they must find what a load would.
  ///     It runs on the caller's thread, so it must return quickly.
  ///   - willRedirect: changes the request that follows a redirect, or decides not to follow it. A refusal ends the load with
  ///     ``CacheError/Code/redirectRefused``. The rules of the load still apply: the redirect limit, only `http` and `https`, and
  ///     from `https` to `http` only if that is allowed.
  ///   - willSend: changes a request for `http` or `https` on its way to the downloader. It may wait, for a token for example.
  public init(
    id: ComponentID = .unique(RequestInterceptor.self),
    willLookUp: (@Sendable (inout HTTPRequest) throws -> Void)? = nil,
    willRedirect: (@Sendable (inout Redirection) async throws -> Void)? = nil,
    willSend: (@Sendable (inout DownloadRequest) async throws -> Void)? = nil
  ) {
    self.id = id
    (lookUp, redirect, send) = (willLookUp, willRedirect, willSend)
  }

  /// Whether the interceptor has a say before the cache is looked at.
  package var interceptsLookups: Bool { lookUp != nil }
  /// Whether the interceptor has a say about redirects.
  package var interceptsRedirects: Bool { redirect != nil }
  /// Whether the interceptor has a say about requests to the downloader.
  package var interceptsSending: Bool { send != nil }

  /// The interceptor with the stages after the look-up only.
  package var withoutLookups: RequestInterceptor { RequestInterceptor(id: id, willRedirect: redirect, willSend: send) }

  /// Changes a load's request before the cache is looked at.
  package func willLookUp(_ request: inout HTTPRequest) throws(CacheError) {
    do {
      try lookUp?(&request)
    } catch {
      throw CacheError.refusal(error)
    }
  }

  /// Changes the request that follows a redirect.
  package func willRedirect(_ redirection: inout Redirection) async throws(CacheError) {
    do {
      try await redirect?(&redirection)
    } catch {
      throw CacheError.refusal(error)
    }
    if Task.isCancelled { throw .cancelled }
  }

  /// Changes a request on its way to the downloader.
  package func willSend(_ request: inout DownloadRequest) async throws(CacheError) {
    do {
      try await send?(&request)
    } catch {
      if Task.isCancelled { throw .cancelled }
      throw CacheError.refusal(error)
    }
    if Task.isCancelled { throw .cancelled }
  }
}

extension CacheError {
  /// The error of a load whose interceptor threw `error`.
  fileprivate static func refusal(_ error: any Error) -> CacheError {
    if let error = error as? CacheError { return error }
    if error is CancellationError { return .cancelled }
    return CacheError(.refused, reason: "the interceptor refused the request: \(error)", underlying: error)
  }
}
