#if Service
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader that loads from allowed origins only. Each redirect is a request of its own, so its target is checked too.
struct SourceDownloader: Downloader {
  let id = ComponentID.unique(SourceDownloader.self)
  private let engine: (any Downloader)?
  private let origins: [(pattern: OriginPattern, source: ImageSource)]

  init(_ engine: (any Downloader)?, _ sources: [ImageSource]) {
    self.engine = engine
    origins = sources.compactMap { source in
      if case .origin(let pattern) = source.place { (pattern, source) } else { nil }
    }
  }

  var preferredExecutor: (any TaskExecutor)? { engine?.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    guard let origin = origins.first(where: { $0.pattern.matches(url) }) else {
      throw CacheError(.refused, reason: "no source of the service contains this URL")
    }
    guard let engine else { throw CacheError(.noDownloader, reason: "the service has no downloader") }
    var request = request
    for field in origin.source.headerFields { request.head.headerFields.append(field) }
    return try await engine.download(request).adding(origin.source.cacheControl)
  }
}

/// A downloader for the files of all named folders. It is used for a source that names a folder, and never for the target of a
/// redirect: an origin must not choose files.
struct FolderSources: Downloader {
  let id = ComponentID.unique(FolderSources.self)
  private let folders: [String: (downloader: FolderDownloader, source: ImageSource)]

  init(_ sources: [ImageSource]) throws(CacheError) {
    var folders: [String: (FolderDownloader, ImageSource)] = [:]
    for source in sources {
      guard case .folder(let name, let path) = source.place else { continue }
      guard folders.updateValue((FolderDownloader(path), source), forKey: name.lowercased()) == nil else {
        throw CacheError(.invalidConfiguration, reason: "two folders have the name '\(name)'")
      }
    }
    self.folders = folders
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let name = request.head.absoluteURL.flatMap(SourceReference.folder), let folder = folders[name] else {
      throw CacheError(.refused, reason: "the service has no folder of this name")
    }
    return try await folder.downloader.download(request).adding(folder.source.cacheControl)
  }
}

extension DownloadResponse {
  /// Returns the response with this `Cache-Control`, if it states no lifetime of its own.
  fileprivate func adding(_ cacheControl: String?) -> DownloadResponse {
    guard let cacheControl, [200, 203, 206, 304].contains(head.status.code), head.headerFields[.cacheControl] == nil,
      head.headerFields[.expires] == nil
    else { return self }
    var response = self
    response.head.headerFields[.cacheControl] = cacheControl
    return response
  }
}
#endif
