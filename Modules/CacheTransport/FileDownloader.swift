public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader for `file:` URLs. Local files then use the same path as the network: typed errors, validation, decoding,
/// cancellation.
///
/// Its responses have `no-cache` and a strong entity tag (RFC 9110 §8.8.3). `If-None-Match` with that tag gets a 304. A value
/// that a manager has made of a file is therefore used again until the file changes. The manager does not store the bytes of the
/// file a second time: see `StoragePolicy`.
///
/// The tag consists of the length, the times of the last change of the content and of the file's status, and the inode number. So
/// a file that was replaced, or whose modification time was set back, has another tag. A change of permissions, or a new hard
/// link, also gives it another tag.
public struct FileDownloader: Downloader {
  public var id: ComponentID { ComponentID(Self.self) }
  private let clock = SystemClock()
  private let isForCopies: Bool

  /// Creates a downloader for local files.
  public init() { self.init(forCopies: false) }

  /// - Parameter isForCopies: Whether copies of a file on other machines, with equal length and modification time, have an equal
  ///   entity tag.
  package init(forCopies isForCopies: Bool) { self.isForCopies = isForCopies }

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
    let source = try await openUnchanging(path)
    var fields: HTTPFields = [.cacheControl: "no-cache", .lastModified: HTTPDate(source.state.modified).description]
    // A file that may change again without another time has no tag, so the next request gets it whole.
    if source.state.hasSettled(at: clock.now) {
      let tag = source.state.entityTag(forCopies: isForCopies)
      fields[.eTag] = tag
      if request.head.headerFields.lists(tag) {
        return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
      }
    }
    fields[.contentLength] = String(source.length)
    let head = HTTPResponse(status: .ok, headerFields: fields)
    guard request.head.method == .get else { return DownloadResponse(head: head, body: ResourceBody(Data())) }
    return DownloadResponse(head: head, body: ResourceBody(length: source.length, source: source))
  }

  /// Opens a file. If the file changed a moment ago, opens it when a further change would have another time. Otherwise the tag
  /// could also describe bytes that are written after the read.
  private func openUnchanging(_ path: String) async throws(CacheError) -> FileSource {
    let source = try await open(path)
    let wait = source.state.timeStep - (clock.now - source.state.changed)
    guard wait > .zero, wait <= FileState.shortStep else { return source }
    try? await clock.sleep(for: wait)
    return try await open(path)
  }

  private func open(_ path: String) async throws(CacheError) -> FileSource {
    let opened = await FileQueue.run { FileSource.open(path) }
    if Task.isCancelled { throw .cancelled }
    return try opened.get()
  }
}

extension FileState {
  /// The entity tag of the file. It is strong, because the bytes of a settled file cannot change without it.
  fileprivate func entityTag(forCopies: Bool) -> String {
    var parts = [String(length, radix: 16), String(modified.nanoseconds, radix: 16)]
    if !forCopies { parts += [String(changed.nanoseconds, radix: 16), String(inode, radix: 16)] }
    return "\"\(parts.joined(separator: "-"))\""
  }
}

extension HTTPFields {
  /// Whether `If-None-Match` lists the tag, by weak comparison (RFC 9110 §13.1.2). `*` lists every tag.
  fileprivate func lists(_ tag: String) -> Bool {
    // The tags of this downloader contain no comma.
    (self[.ifNoneMatch] ?? "").split(separator: ",").contains { member in
      let trimmed = Substring(Substring(member).utf8.trimmingBlanks())
      return trimmed == "*" || trimmed == tag || trimmed == "W/\(tag)"
    }
  }
}
