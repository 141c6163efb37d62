internal import CacheCore
internal import Dispatch
internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A file that a request's body is written to before it is sent, for its owner alone to read. It goes when this object does, in
/// every case but a crash.
///
/// Foundation opens it by its name, so it can't be unlinked while the transfer runs.
final class SpoolFile: Sendable {
  /// Where it is.
  let url: URL

  private let descriptor: Int32
  /// Writing blocks, so it happens here and not where tasks run.
  private let queue = DispatchQueue(label: "Etagere.SpoolFile")

  /// A new, empty file.
  ///
  /// - Parameter folder: an existing folder.
  init(in folder: URL) throws(CacheError) {
    url = folder.appendingPathComponent("etagere-upload-\(UUID().uuidString)")
    descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.error("could not be made", errno, url) }
  }

  deinit {
    close(descriptor)
    unlink(url.path)
  }

  /// Adds bytes at the end.
  func append(_ data: Data) async throws(CacheError) {
    let number = await withCheckedContinuation { (continuation: CheckedContinuation<Int32, Never>) in
      // Without the file itself, whose last holder would else be this thread: it is gone as soon as who waits here lets go of it.
      queue.async { [descriptor] in continuation.resume(returning: Self.write(data, to: descriptor)) }
    }
    guard number == 0 else { throw Self.error("could not be written", number, url) }
  }

  /// 0, or the error's number.
  private static func write(_ data: Data, to descriptor: Int32) -> Int32 {
    data.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        #if canImport(Darwin)
        let count = Darwin.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #elseif canImport(Glibc)
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #elseif canImport(Musl)
        let count = Musl.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        #endif
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? errno : EIO }
        rest = rest.dropFirst(count)
      }
      return 0
    }
  }

  private static func error(_ what: String, _ number: Int32, _ url: URL) -> CacheError {
    let code: CacheError.Code = number == ENOSPC || number == EDQUOT ? .diskFull : .fileSystem
    let text = String(cString: strerror(number))
    return CacheError(
      code, reason: "the file for a request's body \(what): \(text)", path: url.path, errno: number)
  }
}
