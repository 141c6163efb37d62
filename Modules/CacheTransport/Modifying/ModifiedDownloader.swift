public import CacheCore
internal import HTTPTypes

/// A downloader whose requests go through a ``DownloadModifier`` first.
///
/// It stands below the cache, which decides by the request as the caller made it, and stores the answer under that URL. So an
/// answer to a request that was given an `Authorization`, `Cookie` or `Proxy-Authorization` here, or another one than it had,
/// says `Cache-Control: no-store`: the cache has not seen whose answer it is. Credentials that answers may be cached for are set
/// in the request itself.
public struct ModifiedDownloader: Downloader {
  public let id: ComponentID
  private let base: any Downloader
  private let modifier: DownloadModifier

  /// A downloader whose requests are changed first.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - modifier: changes the requests.
  public init(_ base: any Downloader, by modifier: DownloadModifier) {
    id = ComponentID(
      Self.self, "\(modifier.id.type) \(modifier.id.parameters)", around: base.id)
    self.base = base
    self.modifier = modifier
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: what the modifier throws, else what the wrapped downloader does.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let changed = try await changed(request)
    var response = try await base.download(changed)
    if Self.adds(changed.head.headerFields, to: request.head.headerFields) {
      // The whole field: `must-understand` beside it would overrule `no-store` (RFC 9111 §5.2.2.3).
      response.head.headerFields[.cacheControl] = "no-store"
    }
    return response
  }

  private func changed(_ request: DownloadRequest) async throws(CacheError) -> DownloadRequest {
    var changed = request
    do {
      try await modifier.change(&changed)
    } catch {
      if Task.isCancelled || error is CancellationError { throw .cancelled }
      if let error = error as? CacheError { throw error }
      throw CacheError(.refused, reason: "a modifier refused the request: \(error)", underlying: error)
    }
    if Task.isCancelled { throw .cancelled }
    return changed
  }

  private static let credentials: [HTTPField.Name] = [.authorization, .cookie, .proxyAuthorization]

  private static func adds(_ fields: HTTPFields, to original: HTTPFields) -> Bool {
    credentials.contains { !fields[values: $0].isEmpty && fields[values: $0] != original[values: $0] }
  }
}

extension Downloader {
  /// This downloader, with requests that are changed first.
  ///
  /// - Parameters:
  ///   - name: says which modifiers do the same; nil: this one is like no other.
  ///   - change: changes a request, or throws to refuse it.
  public func modified(named name: String? = nil, _ change: @escaping DownloadModifier.Change) -> ModifiedDownloader {
    ModifiedDownloader(self, by: DownloadModifier(named: name, change))
  }

  /// This downloader, with requests that are changed first.
  ///
  /// - Parameter modifier: changes the requests.
  public func modified(by modifier: DownloadModifier) -> ModifiedDownloader { ModifiedDownloader(self, by: modifier) }
}
