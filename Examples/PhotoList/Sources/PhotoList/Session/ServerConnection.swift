import CacheUI
import Foundation

/// The requests that control an image server: its counts, and a change of its images.
struct ServerConnection: Sendable {
  private let manager: ResourceManager

  init(downloader: any Downloader = SessionDownloader()) {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = downloader
    manager = ResourceManager(configuration)
  }

  /// Returns the counts of the server since its start.
  func counts(of server: URL) async throws(CacheError) -> ServerCounts {
    let url = server.appending(path: "counts")
    let body = try await manager.load(url).data
    do {
      return try JSONDecoder().decode(ServerCounts.self, from: body)
    } catch {
      throw CacheError(.decodingFailed, reason: "the counts of \(url) are not the JSON of an image server")
    }
  }

  /// Changes some of the images on the server.
  func change(_ server: URL) async throws(CacheError) {
    _ = try await manager.load(ResourceRequest(server.appending(path: "change"), method: .post))
  }
}
