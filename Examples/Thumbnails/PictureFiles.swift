#if Thumbnails
import Dispatch
import Etagere
import Foundation
import HTTPTypes

/// Answers `file:` URLs as a server would that knows HTTP well: with an entity tag of size, time and number of the file, and with
/// 304 to who has it already.
struct PictureFiles: Downloader {
  let id = ComponentID(PictureFiles.self)
  /// File calls block: never on the threads that Swift's tasks share.
  private static let queue = DispatchQueue(label: "pictures", attributes: .concurrent)

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let path = request.head.absoluteURL?.path(percentEncoded: false), !path.utf8.contains(0) else {
      throw CacheError(.invalidURL, reason: "this names no file")
    }
    let known = request.head.headerFields[.ifNoneMatch]
    let outcome: Result<Answer, CacheError> = await withCheckedContinuation { continuation in
      Self.queue.async { continuation.resume(returning: Self.answer(path, known)) }
    }
    let answer = try outcome.get()
    // The tag tells all there is to know: ask each time, and guess nothing.
    var fields: HTTPFields = [.eTag: answer.tag, .cacheControl: "no-cache"]
    guard let bytes = answer.bytes else {
      return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
    }
    fields[.contentLength] = String(bytes.count)
    return DownloadResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(bytes))
  }

  private struct Answer: Sendable {
    var tag: String
    /// Nil: the asker has them.
    var bytes: Data?
  }

  /// A tag must never stand with the bytes of another version: looked at before and after, through one descriptor.
  private static func answer(_ path: String, _ known: String?) -> Result<Answer, CacheError> {
    // Without O_NONBLOCK a FIFO would hold the thread until somebody writes to it.
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
          CacheError(.imageLimitExceeded, reason: "the file has \(size) bytes, the limit is \(limit)", path: path))
      }
      do {
        try file.seek(toOffset: 0)
        let bytes = try file.readToEnd() ?? Data()
        if self.tag(descriptor)?.tag == tag { return .success(Answer(tag: tag, bytes: bytes)) }
      } catch {
        return .failure(CacheError(.fileSystem, reason: "can't be read", path: path, underlying: error))
      }
    }
    return .failure(CacheError(.fileSystem, reason: "it changes while it is read", path: path))
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
