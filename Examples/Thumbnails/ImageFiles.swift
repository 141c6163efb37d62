#if Thumbnails
import Dispatch
import Etagere
import Foundation
import HTTPTypes

/// A downloader for `file:` URLs with entity tags. A tag contains size, modification time and inode of the file. A request with a
/// matching `If-None-Match` gets a 304.
struct ImageFiles: Downloader {
  let id = ComponentID(ImageFiles.self)
  /// A separate queue, because file calls block and must not run on the cooperative thread pool.
  private static let queue = DispatchQueue(label: "images", attributes: .concurrent)

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let path = request.head.absoluteURL?.path(percentEncoded: false), !path.utf8.contains(0) else {
      throw CacheError(.invalidURL, reason: "not a file URL")
    }
    let known = request.head.headerFields[.ifNoneMatch]
    let outcome: Result<Answer, CacheError> = await withCheckedContinuation { continuation in
      Self.queue.async { continuation.resume(returning: Self.answer(path, known)) }
    }
    let answer = try outcome.get()
    // Each load revalidates the file by its tag.
    var fields: HTTPFields = [.eTag: answer.tag, .cacheControl: "no-cache"]
    guard let bytes = answer.bytes else {
      return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
    }
    fields[.contentLength] = String(bytes.count)
    return DownloadResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(bytes))
  }

  private struct Answer: Sendable {
    var tag: String
    /// The bytes of the file, or `nil` if the tag matches.
    var bytes: Data?
  }

  /// Reads the tag before and after the bytes, through one descriptor, so that a tag never describes another version's bytes.
  private static func answer(_ path: String, _ known: String?) -> Result<Answer, CacheError> {
    // Without O_NONBLOCK, opening a FIFO would block until another process opens it for writing.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return .failure(error(path)) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    for _ in 0..<3 {
      guard let (tag, size) = tag(descriptor) else {
        return .failure(CacheError(.fileSystem, reason: "not a regular file", path: path))
      }
      if known == tag { return .success(Answer(tag: tag)) }
      let limit = ImageLimits.standard.bytes
      guard size <= limit else {
        return .failure(
          CacheError(.imageLimitExceeded, reason: "the file has \(size) bytes, above the limit of \(limit)", path: path))
      }
      do {
        try file.seek(toOffset: 0)
        let bytes = try file.readToEnd() ?? Data()
        if self.tag(descriptor)?.tag == tag { return .success(Answer(tag: tag, bytes: bytes)) }
      } catch {
        return .failure(CacheError(.fileSystem, reason: "cannot read the file", path: path, underlying: error))
      }
    }
    return .failure(CacheError(.fileSystem, reason: "the file changes while it is read", path: path))
  }

  private static func tag(_ descriptor: Int32) -> (tag: String, size: Int)? {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    #if canImport(Darwin)
    let time = status.st_mtimespec
    #else
    let time = status.st_mtim
    #endif
    let parts = [Int(status.st_size), Int(time.tv_sec), Int(time.tv_nsec), Int(truncatingIfNeeded: status.st_ino)]
    return ("\"\(parts.map { String($0, radix: 16) }.joined(separator: "-"))\"", Int(status.st_size))
  }

  private static func error(_ path: String) -> CacheError {
    let number = errno
    return CacheError(.fileSystem, reason: String(cString: strerror(number)), path: path, errno: number)
  }
}
#endif
