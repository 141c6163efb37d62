import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// `URLSession` with a `URLCache` on disk and the protocol's cache policy, as `AsyncImage` and most apps use it.
final class URLCacheLoader: LoaderAdapter {
  private let session: URLSession

  init(folder: URL) async throws {
    let configuration = URLSessionConfiguration.default
    #if canImport(FoundationNetworking)
    configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 256 << 20, diskPath: folder.path)
    #else
    configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 256 << 20, directory: folder)
    #endif
    configuration.requestCachePolicy = .useProtocolCachePolicy
    session = URLSession(configuration: configuration)
  }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    var request = URLRequest(url: url)
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    let (body, response) = try await session.data(for: request)
    return LoadedResponse(status: (response as? HTTPURLResponse)?.statusCode, body: body)
  }

  /// Waits, because `URLCache` has no call that reports the end of its writes.
  func close() async { try? await Task.sleep(for: .milliseconds(300)) }
}
