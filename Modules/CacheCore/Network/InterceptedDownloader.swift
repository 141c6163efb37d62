internal import HTTPTypes

/// A downloader whose requests pass an interceptor first.
///
/// The interceptor stands below the cache, which stores the response under the request as the cache knows it. If the interceptor
/// adds credentials, the response gets `Cache-Control: no-store`: the cache cannot tell for whom it is.
package struct InterceptedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let interceptor: RequestInterceptor

  package init(_ base: any Downloader, by interceptor: RequestInterceptor) {
    id = ComponentID(
      Self.self, "\(interceptor.id.type) \(interceptor.id.parameters)", around: base.id)
    self.base = base
    self.interceptor = interceptor
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var changed = request
    try await interceptor.willSend(&changed)
    var response = try await base.download(changed)
    if Self.adds(changed.head.headerFields, to: request.head.headerFields) {
      // The whole field is replaced: `must-understand` beside `no-store` would overrule it (RFC 9111 §5.2.2.3).
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
  /// Returns this downloader with an interceptor in front of it. Only the stage `willSend` applies here.
  ///
  /// The cache does not see what the interceptor changes. A response to a request that got an `Authorization`, `Cookie` or
  /// `Proxy-Authorization` field here is marked `Cache-Control: no-store`. To cache responses to credentials, set them in the
  /// request itself or at the stage `willLookUp`.
  ///
  /// ```swift
  /// let downloader = engine.intercepted(by: signature).retrying(.standard)  // signs each attempt
  /// ```
  ///
  /// - Parameter interceptor: called for each request, also when it is a retry from outside.
  public func intercepted(by interceptor: RequestInterceptor) -> some Downloader {
    InterceptedDownloader(self, by: interceptor)
  }
}
