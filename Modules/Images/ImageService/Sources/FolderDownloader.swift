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
  /// The machines of a fleet have copies of a file, whose results they share.
  private let files = FileDownloader(forCopies: true)

  /// - Parameter root: The path without links.
  init(_ root: String) { self.root = root }

  var id: ComponentID { ComponentID(Self.self, parameters: root) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    let path = url.path(percentEncoded: false)
    let folder = root.hasSuffix("/") ? root : "\(root)/"
    let resolved = try await BlockingThreadPool.files.run { [root] in Self.realPath(root + path) }
    // The path itself and the target of its links must be visible. Otherwise a link would publish a hidden file.
    guard !SourceReference.isHidden(path), let file = resolved, file.hasPrefix(folder),
      !SourceReference.isHidden(String(file.dropFirst(folder.count)))
    else { return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data())) }
    var opened = request
    opened.head = HTTPRequest(url: URL(filePath: file, directoryHint: .notDirectory))
    opened.head.method = request.head.method
    opened.head.headerFields[.ifNoneMatch] = request.head.headerFields[.ifNoneMatch]
    var response: DownloadResponse
    do throws(CacheError) {
      response = try await files.download(opened)
    } catch {
      guard let number = error.errno, [ENOENT, EISDIR, ENOTDIR, EACCES, ENXIO, ELOOP].contains(number) else { throw error }
      return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data()))
    }
    // The source states for how long its images are fresh.
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
