public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Answers `file:` URLs, so that local files travel the same path as the network: typed errors, decoding, cancellation.
///
/// The answers say `no-store`: what is a file already needs no copy in a cache.
public struct FileDownloader: Downloader {
  public var id: ComponentID { ComponentID(Self.self) }

  /// A provider of local files.
  public init() {}

  /// - Throws: `CacheError.Code.fileSystem` with path and reason when the file can't be read. `errno` is `ENOENT` for a
  ///   missing file, `EACCES` for a file without permission, `EISDIR` for a folder.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL, url.isFileURL else {
      throw CacheError(.unsupportedScheme, reason: "not a file: URL")
    }
    guard request.head.method == .get || request.head.method == .head else {
      return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
    }
    let path = url.path(percentEncoded: false)
    // The system's calls would stop reading at the NUL and open another file.
    guard !path.utf8.contains(0) else { throw CacheError(.invalidURL, reason: "a file's path has no NUL") }
    let opened = await FileQueue.run { FileSource.open(path) }
    if Task.isCancelled { throw .cancelled }
    let source = try opened.get()
    let head = HTTPResponse(
      status: .ok,
      headerFields: [
        .cacheControl: "no-store", .contentLength: String(source.length), .lastModified: HTTPDate(source.changed).description,
      ])
    guard request.head.method == .get else { return DownloadResponse(head: head, body: ResourceBody(Data())) }
    return DownloadResponse(head: head, body: ResourceBody(length: source.length, source: source))
  }
}
