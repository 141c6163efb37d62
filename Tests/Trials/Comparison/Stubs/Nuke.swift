// The declarations of Nuke 13 that its adapters use, for the type check on Linux. They have no implementation.
public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

public protocol DataLoading: Sendable {}

public final class DataLoader: DataLoading {
  public init(configuration: URLSessionConfiguration) {}
}

public protocol DataCaching: Sendable {}

public final class DataCache: DataCaching {
  public init(path: URL) throws {}
}

public struct ImageRequest: Sendable {
  public init(urlRequest: URLRequest) {}
}

public final class ImagePipeline: Sendable {
  public struct Configuration: Sendable {
    public var dataCache: (any DataCaching)?
    public init(dataLoader: any DataLoading) {}
  }

  public enum Error: Swift.Error { case cancelled }

  public init(configuration: Configuration) {}

  public func data(for request: ImageRequest) async throws(ImagePipeline.Error) -> (Data, URLResponse?) { throw .cancelled }
}
