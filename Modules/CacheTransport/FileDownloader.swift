public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader for `file:` URLs. Local files then use the same path as the network: typed errors, decoding, cancellation.
///
/// Its responses have `no-store`, because a cache needs no copy of a local file. The entity tag of a file that has not changed
/// for two seconds consists of its length and its modification time.
public struct FileDownloader: Downloader {
  public var id: ComponentID { ComponentID(Self.self) }

  /// Creates a downloader for local files.
  public init() {}

  /// - Throws: `CacheError.Code.fileSystem` with the path and the reason if the file cannot be read. `errno` is `ENOENT` for a
  ///   missing file, `EACCES` for a file without permission, `EISDIR` for a folder, and `ENXIO` for a device, a FIFO or a socket,
  ///   which is never opened.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL, url.isFileURL else {
      throw CacheError(.unsupportedScheme, reason: "not a file: URL")
    }
    guard request.head.method == .get || request.head.method == .head else {
      return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
    }
    let path = url.path(percentEncoded: false)
    // System calls would end the path at the NUL and open another file.
    guard !path.utf8.contains(0) else { throw CacheError(.invalidURL, reason: "a file path cannot contain NUL") }
    let opened = await FileQueue.run { FileSource.open(path) }
    if Task.isCancelled { throw .cancelled }
    let source = try opened.get()
    var head = HTTPResponse(
      status: .ok,
      headerFields: [
        .cacheControl: "no-store", .contentLength: String(source.length), .lastModified: HTTPDate(source.changed).description,
      ])
    // A file that has just changed may change again within the resolution of its time.
    if SystemClock().now - source.changed > .seconds(2) {
      head.headerFields[.eTag] = "\"\(String(source.length, radix: 16))-\(String(source.changed.nanoseconds, radix: 16))\""
    }
    guard request.head.method == .get else { return DownloadResponse(head: head, body: ResourceBody(Data())) }
    return DownloadResponse(head: head, body: ResourceBody(length: source.length, source: source))
  }
}
