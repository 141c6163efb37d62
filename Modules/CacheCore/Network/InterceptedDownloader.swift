internal import HTTPTypes

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
