#if canImport(Nuke)
import Foundation
import Nuke

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Nuke with its default configuration: `URLCache` on disk, here in the scenario's folder.
///
/// Not yet run: Nuke builds on Apple platforms only. On Linux this file is type-checked against `Stubs/Nuke.swift`.
final class NukeLoader: LoaderAdapter {
  private let pipeline: ImagePipeline

  init(folder: URL) async throws {
    let session = URLSessionConfiguration.default
    #if canImport(FoundationNetworking)
    session.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 150 << 20, diskPath: folder.path)
    #else
    session.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 150 << 20, directory: folder)
    #endif
    pipeline = ImagePipeline(configuration: .init(dataLoader: DataLoader(configuration: session)))
  }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    try await pipeline.bytes(url, fields: fields)
  }

  /// Waits, because `URLCache` has no call that reports the end of its writes.
  func close() async { try? await Task.sleep(for: .milliseconds(300)) }
}

/// Nuke with its own disk cache, which its documentation calls aggressive, and without `URLCache`.
final class NukeDataCacheLoader: LoaderAdapter {
  private let pipeline: ImagePipeline
  private let cache: DataCache

  init(folder: URL) async throws {
    cache = try DataCache(path: folder)
    let session = URLSessionConfiguration.default
    session.urlCache = nil
    var configuration = ImagePipeline.Configuration(dataLoader: DataLoader(configuration: session))
    configuration.dataCache = cache
    pipeline = ImagePipeline(configuration: configuration)
  }

  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    try await pipeline.bytes(url, fields: fields)
  }

  /// Staged changes are written after an interval of one second.
  func close() async { try? await Task.sleep(for: .seconds(2)) }
}

extension ImagePipeline {
  /// The bytes of an image, without Nuke's memory cache, which has decoded images only.
  fileprivate func bytes(_ url: URL, fields: [String: String]) async throws -> LoadedResponse {
    var request = URLRequest(url: url)
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    let (body, response) = try await data(for: ImageRequest(urlRequest: request))
    return LoadedResponse(status: (response as? HTTPURLResponse)?.statusCode, body: body)
  }
}
#endif
