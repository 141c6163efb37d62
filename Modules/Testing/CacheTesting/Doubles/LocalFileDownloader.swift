public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A downloader that serves the files of a folder: `https://any.host/a/b.png` is the file `a/b.png`.
///
/// Responses contain an entity tag and `Last-Modified`, derived from the size and the modification time in nanoseconds.
/// A conditional request for an unchanged file returns 304, and a missing file returns 404. Files outside the folder
/// are never served.
///
/// ```swift
/// let network = LocalFileDownloader(folder: fixtures)
/// let manager = ResourceManager(try .standard(folder: nil, downloader: network))
/// let logo = try await manager.load(URL(string: "https://example.com/logo.png")!)
/// ```
public final class LocalFileDownloader: Downloader {
  private struct State {
    var requests: [HTTPRequest] = []
    var isOffline = false
  }

  public let id: ComponentID
  /// The served folder.
  public let folder: URL
  private let fields: HTTPFields
  private let state = Lock(State())

  /// Creates a downloader for a folder.
  ///
  /// - Parameters:
  ///   - folder: The folder, which is served with its subfolders.
  ///   - fields: Fields for every response with a file, such as `Cache-Control`. By default, responses have no explicit
  ///     lifetime and are revalidated.
  public init(folder: URL, fields: HTTPFields = [:]) {
    self.folder = folder.standardizedFileURL.resolvingSymlinksInPath()
    self.fields = fields
    id = .unique(LocalFileDownloader.self)
  }

  /// The requests so far, in order.
  public var requests: [HTTPRequest] { state.withLock { $0.requests } }

  /// Whether every request fails with `CacheError.Code.offline`.
  public var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set { state.withLock { $0.isOffline = newValue } }
  }

  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    let isOffline = state.withLock { state in
      state.requests.append(request.head)
      return state.isOffline
    }
    if isOffline { throw CacheError(.offline, reason: "the downloader is set offline") }
    guard request.head.method == .get || request.head.method == .head else { return Self.empty(.methodNotAllowed) }
    guard let file = file(request.head), let (size, changed) = Self.status(of: file) else { return Self.empty(.notFound) }
    var head = HTTPResponse(status: .ok, headerFields: fields)
    let modified = HTTPDate(changed)
    head.headerFields[.eTag] = "\"\(String(changed.nanoseconds, radix: 16))-\(String(size, radix: 16))\""
    head.headerFields[.lastModified] = modified.description
    if let type = Self.types[file.pathExtension.lowercased()] { head.headerFields[.contentType] = type }
    if Self.isUnchanged(request.head.headerFields, head.headerFields[.eTag] ?? "", modified) {
      head.status = .notModified
      return DownloadResponse(head: head, body: ResourceBody(Data()))
    }
    head.headerFields[.contentLength] = String(size)
    guard request.head.method == .get else { return DownloadResponse(head: head, body: ResourceBody(Data())) }
    guard let data = try? Data(contentsOf: file) else { return Self.empty(.notFound) }
    head.headerFields[.contentLength] = String(data.count)
    return DownloadResponse(
      head: head, body: ResourceBody(data),
      metrics: { TransferMetrics(bytesOnWire: Int64(data.count), bytesDecoded: Int64(data.count)) })
  }

  /// Returns the file that a request names, or `nil` if it is not inside the folder, after links are resolved.
  private func file(_ request: HTTPRequest) -> URL? {
    guard let path = request.absoluteURL?.path(percentEncoded: false), !path.contains("\0") else { return nil }
    let parts = path.split(separator: "/")
    guard !parts.isEmpty, !parts.contains(".."), !parts.contains(".") else { return nil }
    let file = parts.reduce(folder) { $0.appending(path: String($1), directoryHint: .notDirectory) }.resolvingSymlinksInPath()
    let root = folder.path(percentEncoded: false)
    return file.path(percentEncoded: false).hasPrefix(root.hasSuffix("/") ? root : root + "/") ? file : nil
  }

  private static func status(of file: URL) -> (size: Int64, changed: Timestamp)? {
    var status = stat()
    guard stat(file.path(percentEncoded: false), &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return (Int64(status.st_size), .modified(status))
  }

  /// Evaluates RFC 9110 §13.1.2 and §13.1.3: entity tags are compared weakly. Dates apply only without entity tags.
  private static func isUnchanged(_ fields: HTTPFields, _ etag: String, _ modified: HTTPDate) -> Bool {
    if fields.contains(.ifNoneMatch) { return fields.noneMatchLists(etag) }
    guard let since = fields[.ifModifiedSince].flatMap({ HTTPDate($0, receivedAt: modified.timestamp) }) else { return false }
    return modified <= since
  }

  private static func empty(_ status: HTTPResponse.Status) -> DownloadResponse {
    DownloadResponse(head: HTTPResponse(status: status, headerFields: [.contentLength: "0"]), body: ResourceBody(Data()))
  }

  private static let types = [
    "avif": "image/avif", "css": "text/css", "gif": "image/gif", "html": "text/html", "jpeg": "image/jpeg",
    "jpg": "image/jpeg", "json": "application/json", "png": "image/png", "svg": "image/svg+xml", "txt": "text/plain",
    "webp": "image/webp",
  ]
}
