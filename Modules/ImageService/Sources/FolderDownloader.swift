#if Service
internal import CacheCore
internal import CacheTransport
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A downloader for the files of a folder.
struct FolderDownloader: Downloader {
  private let root: String
  private let files = FileDownloader()

  /// - Parameter root: The path without links.
  init(_ root: String) { self.root = root }

  var id: ComponentID { ComponentID(Self.self, parameters: root) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    let path = url.path(percentEncoded: false)
    guard !SourceReference.isHidden(path) else {
      return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data()))
    }
    let resolved = await FileQueue.run { [root] in Self.realPath(root + path) }
    guard let file = resolved, file.hasPrefix(root.hasSuffix("/") ? root : "\(root)/") else {
      return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data()))
    }
    var opened = request
    opened.head = HTTPRequest(url: URL(filePath: file, directoryHint: .notDirectory))
    opened.head.method = request.head.method
    var response: DownloadResponse
    do throws(CacheError) {
      response = try await files.download(opened)
    } catch {
      guard error.errno == ENOENT || error.errno == EISDIR || error.errno == ENOTDIR || error.errno == EACCES else { throw error }
      return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data()))
    }
    // A cache need not copy a local file, but it may store the images made of it.
    response.head.headerFields[.cacheControl] = nil
    return response
  }

  /// Returns the path without links, or `nil` if there is no such file or folder.
  static func realPath(_ path: String) -> String? {
    guard !path.utf8.contains(0), let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
#endif
