internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The error number of a failed system call.
package struct SystemError: Error, Hashable, Sendable {
  package let number: Int32

  package init(number: Int32) { self.number = number }

  /// The error number of the call that has just failed.
  static var last: SystemError { SystemError(number: errno) }

  static let interrupted = SystemError(number: EINTR)
  static let notFound = SystemError(number: ENOENT)
  static let exists = SystemError(number: EEXIST)
  static let isLink = SystemError(number: ELOOP)
  static let notPermitted = SystemError(number: EPERM)
  static let notAFolder = SystemError(number: ENOTDIR)
  static let wouldBlock = SystemError(number: EWOULDBLOCK)
  static let outOfMemory = SystemError(number: ENOMEM)
  static let ioFailure = SystemError(number: EIO)
  package static let diskFull = SystemError(number: ENOSPC)
  package static let readOnly = SystemError(number: EROFS)

  /// Whether the file system does not support hard links.
  var meansNoLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number) }

  /// Whether the system lacks a call, or a sandbox or the file system refuses it.
  var meansNoSuchCall: Bool { [ENOSYS, EPERM, EOPNOTSUPP, ENOTSUP, EINVAL, E2BIG].contains(number) }

  /// Whether the disk or the quota is full.
  var meansDiskFull: Bool { number == ENOSPC || number == EDQUOT }

  /// Returns the error of a failed `action` on the file at `path`.
  func error(_ action: String, _ path: String) -> CacheError {
    // A lock is the only thing that the store's calls wait for.
    let text = self == .wouldBlock ? "another process holds its lock" : String(cString: strerror(number))
    return CacheError(
      meansDiskFull ? .diskFull : .fileSystem, reason: "could not \(action): \(text) (\(number))", path: path, errno: number)
  }
}
