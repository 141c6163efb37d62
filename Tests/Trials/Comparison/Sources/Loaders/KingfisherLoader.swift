#if canImport(Kingfisher)
import Foundation
import Kingfisher

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Kingfisher with its default policy. The original bytes are stored, so that a scenario can compare them.
///
/// Not yet run: Kingfisher builds on Apple platforms only. On Linux this file is type-checked against `Stubs/Kingfisher.swift`.
final class KingfisherLoader: LoaderAdapter {
  private let manager: KingfisherManager
  private let serializer: DefaultCacheSerializer

  init(folder: URL) async throws {
    let cache = try ImageCache(name: "comparison", cacheDirectoryURL: folder)
    manager = KingfisherManager(downloader: ImageDownloader(name: "comparison"), cache: cache)
    var serializer = DefaultCacheSerializer()
    serializer.preferCacheOriginalData = true
    self.serializer = serializer
  }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    let modifier = AnyModifier { request in
      var request = request
      for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
      return request
    }
    let result = try await manager.retrieveImage(
      with: .network(url),
      options: [.cacheSerializer(serializer), .requestModifier(modifier), .waitForCache, .callbackQueue(.untouch)])
    switch result.cacheType {
    case .none: return LoadedResponse(body: result.data() ?? Data())
    case .memory, .disk:
      // `data()` encodes the image again. The stored file has the bytes.
      let file = manager.cache.cachePath(forKey: url.absoluteString)
      return LoadedResponse(body: try Data(contentsOf: URL(fileURLWithPath: file)))
    }
  }

  func close() async {}
}
#endif
