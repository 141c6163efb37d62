public import CacheCore
internal import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader for `file:` URLs. Local files then use the same path as the network: typed errors, validation, decoding,
/// cancellation.
///
/// ```swift
/// configuration.schemeHandlers["file"] = FileDownloader()
/// ```
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
    let file = try await openUnchanging(path)
    var fields: HTTPFields = [.cacheControl: "no-cache", .lastModified: HTTPDate(file.state.modified).description]
    // A file that may change again without another time has no tag, so the next request gets it whole.
    if file.state.hasSettled(at: clock.now) {
      let tag = file.state.entityTag(forCopies: isForCopies)
      fields[.eTag] = tag
      if request.head.headerFields.noneMatchLists(tag) {
        return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
      }
    }
    fields[.contentLength] = String(file.length)
    let head = HTTPResponse(status: .ok, headerFields: fields)
    guard request.head.method == .get else { return DownloadResponse(head: head, body: ResourceBody(Data())) }
    let source = ChunkedBody(0..<file.length, trailers: nil) { offset throws(CacheError) in
      [try await BlockingThreadPool.files.run { file.read(at: offset) }.get()]
    }
    return DownloadResponse(head: head, body: ResourceBody(length: file.length, source: source))
  }

  /// Opens a file. If the file changed a moment ago, opens it when a further change would have another time. Otherwise the tag
  /// could also describe bytes that are written after the read.
  private func openUnchanging(_ path: String) async throws(CacheError) -> OpenFile {
    let file = try await open(path)
    let wait = file.state.timeStep - (clock.now - file.state.changed)
    guard wait > .zero, wait <= FileState.shortStep else { return file }
    try? await clock.sleep(for: wait)
    return try await open(path)
  }

  private func open(_ path: String) async throws(CacheError) -> OpenFile {
    try await BlockingThreadPool.files.run { OpenFile.open(path) }.get()
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

/// The state of an open file, which changes with every change of its bytes.
struct FileState: Sendable {
  /// The longest time for which a file system with times below a second gives two changes the same time. Kernels count these
  /// times in ticks of up to 10 milliseconds.
  static let shortStep = Duration.milliseconds(20)

  let length: Int64
  /// The time of the last change of the content, which programs can set.
  let modified: Timestamp
  /// The time of the last change of the content, the name or the permissions, which only the system sets.
  let changed: Timestamp
  let inode: UInt64

  init(_ status: stat) {
    length = Int64(status.st_size)
    modified = .modified(status)
    changed = .changed(status)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
  }

  /// The longest time for which two changes get the same time. Some file systems count whole seconds, or every other second.
  var timeStep: Duration { changed.nanoseconds % 1_000_000_000 == 0 ? .seconds(2) : Self.shortStep }

  /// Whether a later change gets another time. A time in the future was set by another clock, and says nothing.
  func hasSettled(at now: Timestamp) -> Bool { now - changed >= timeStep }
}

/// An open file, closed with its last reference.
private final class OpenFile: Sendable {
  let state: FileState
  var length: Int64 { state.length }
  private let path: String
  private let descriptor: Int32

  static func open(_ path: String) -> Result<OpenFile, CacheError> {
    var status = stat()
    // Opening a device can have effects: a tape is rewound, a watchdog starts.
    guard stat(path, &status) == 0 else { return .failure(error(path)) }
    if let refusal = refusal(status, path) { return .failure(refusal) }
    // Another file can have taken the name. Without `O_NONBLOCK`, opening a FIFO would block its queue until a writer appears.
    // The flag has no effect on regular files.
    let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    #if canImport(Darwin)
    let descriptor = Darwin.open(path, flags)
    #elseif canImport(Musl)
    let descriptor = Musl.open(path, flags)
    #else
    let descriptor = Glibc.open(path, flags)
    #endif
    guard descriptor >= 0 else { return .failure(error(path)) }
    guard fstat(descriptor, &status) == 0 else {
      defer { close(descriptor) }
      return .failure(error(path))
    }
    if let refusal = refusal(status, path) {
      close(descriptor)
      return .failure(refusal)
    }
    return .success(OpenFile(path, descriptor, status))
  }

  /// Returns the error of anything that is not a regular file. Linux and Darwin return different numbers for a socket, so this
  /// type has one number for all special files.
  private static func refusal(_ status: stat, _ path: String) -> CacheError? {
    let type = status.st_mode & S_IFMT
    if type == S_IFREG { return nil }
    return CacheError(.fileSystem, reason: "not a regular file", path: path, errno: type == S_IFDIR ? EISDIR : ENXIO)
  }

  private init(_ path: String, _ descriptor: Int32, _ status: stat) {
    self.path = path
    self.descriptor = descriptor
    state = FileState(status)
  }

  deinit { close(descriptor) }

  /// The maximum number of bytes that one read returns.
  private static let chunkSize: Int64 = 256 << 10

  /// Reads the bytes from `offset` on, up to the announced length even if the file has grown since.
  ///
  /// - Returns: At least one byte.
  func read(at offset: Int64) -> Result<Data, CacheError> {
    let count = Int(min(Self.chunkSize, length - offset))
    var chunk = Data(count: count)
    while true {
      let read = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { return .failure(Self.error(path)) }
      guard read > 0 else {
        let reason = "the file shrank to \(offset) of \(length) bytes during the read"
        return .failure(CacheError(.truncatedBody, reason: reason, path: path))
      }
      return .success(read == count ? chunk : chunk.prefix(read))
    }
  }

  private static func error(_ path: String) -> CacheError {
    let number = errno
    return CacheError(.fileSystem, reason: String(cString: strerror(number)), path: path, errno: number)
  }
}
