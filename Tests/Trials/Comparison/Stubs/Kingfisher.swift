// The declarations of Kingfisher 8 that its adapter uses, for the type check on Linux. They have no implementation.
public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

public typealias KingfisherOptionsInfo = [KingfisherOptionsInfoItem]

public enum KingfisherOptionsInfoItem: Sendable {
  case cacheSerializer(any CacheSerializer)
  case requestModifier(any AsyncImageDownloadRequestModifier)
  case waitForCache
  case callbackQueue(CallbackQueue)
}

public enum CallbackQueue: Sendable { case mainAsync, mainCurrentOrAsync, untouch }

public protocol CacheSerializer: Sendable {}

public struct DefaultCacheSerializer: CacheSerializer {
  public var preferCacheOriginalData = false
  public init() {}
}

public protocol AsyncImageDownloadRequestModifier: Sendable {}
public protocol ImageDownloadRequestModifier: AsyncImageDownloadRequestModifier {}

public struct AnyModifier: ImageDownloadRequestModifier {
  public init(modify: @escaping @Sendable (URLRequest) -> URLRequest?) {}
}

public enum Source: Sendable { case network(any Resource) }
public protocol Resource: Sendable {}
extension URL: Resource {}

public enum CacheType: Sendable { case none, memory, disk }

public struct RetrieveImageResult: Sendable {
  public let cacheType: CacheType
  public let data: @Sendable () -> Data?
}

// Proof for the three classes: they have no state that changes after the initializer.
open class ImageCache: @unchecked Sendable {
  public convenience init(
    name: String, cacheDirectoryURL: URL?, diskCachePathClosure: (@Sendable (URL, String) -> URL)? = nil
  ) throws {
    self.init()
  }
  init() {}
  open func cachePath(forKey key: String, processorIdentifier identifier: String = "", forcedExtension: String? = nil) -> String {
    ""
  }
}

// Proof: see ImageCache.
open class ImageDownloader: @unchecked Sendable {
  public init(name: String) {}
}

// Proof: see ImageCache. The property can be set in Kingfisher; here nothing sets it.
public class KingfisherManager: @unchecked Sendable {
  public var cache: ImageCache
  public init(downloader: ImageDownloader, cache: ImageCache) { self.cache = cache }
  public func retrieveImage(
    with source: Source, options: KingfisherOptionsInfo? = nil, progressBlock: ((Int64, Int64) -> Void)? = nil
  ) async throws -> RetrieveImageResult {
    throw CancellationError()
  }
}
