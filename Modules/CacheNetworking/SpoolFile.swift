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

/// A file for a request body that is to be sent, readable only by its owner. It is removed with this object, except after a
/// crash.
///
/// Foundation opens the file by name, so it cannot be unlinked while the transfer runs.
final class SpoolFile: Sendable {
  /// The location of the file.
  let url: URL

  private let descriptor: Int32
  /// The queue for writes, which block and must not run on the cooperative pool.
  private let queue = DispatchQueue(label: "Etagere.SpoolFile")

  /// Creates an empty file.
  ///
  /// - Parameter folder: An existing folder.
  init(in folder: URL) throws(CacheError) {
    url = folder.appendingPathComponent("etagere-upload-\(UUID().uuidString)")
    descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.error("cannot create", errno, url) }
  }

  deinit {
    close(descriptor)
    unlink(url.path)
  }

  /// Appends bytes.
  func append(_ data: Data) async throws(CacheError) {
    let number = await withCheckedContinuation { (continuation: CheckedContinuation<Int32, Never>) in
      // Captures only the descriptor: otherwise this thread could release the file last, after the caller.
      queue.async { [descriptor] in continuation.resume(returning: Self.write(data, to: descriptor)) }
    }
    guard number == 0 else { throw Self.error("cannot write", number, url) }
  }

  /// Writes all bytes. Returns 0 or the error number.
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
      code, reason: "\(what) the file for a request body: \(text)", path: url.path, errno: number)
  }
}
