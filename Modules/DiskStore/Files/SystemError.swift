internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The number of a system call's failure.
package struct SystemError: Error, Hashable, Sendable {
  package let number: Int32

  package init(number: Int32) { self.number = number }

  /// What the call that failed just now left behind.
  static var last: SystemError { SystemError(number: errno) }

  static let interrupted = SystemError(number: EINTR)
  static let notFound = SystemError(number: ENOENT)
  static let exists = SystemError(number: EEXIST)
  static let isLink = SystemError(number: ELOOP)
  static let notAFolder = SystemError(number: ENOTDIR)
  static let wouldBlock = SystemError(number: EWOULDBLOCK)
  static let outOfMemory = SystemError(number: ENOMEM)
  static let ioFailure = SystemError(number: EIO)
  package static let diskFull = SystemError(number: ENOSPC)
  package static let readOnly = SystemError(number: EROFS)

  /// Whether links between files are what the file system lacks.
  var meansNoLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number) }

  /// Whether a call is what the system lacks, or a sandbox or the file system does not grant.
  var meansNoSuchCall: Bool { [ENOSYS, EPERM, EOPNOTSUPP, ENOTSUP, EINVAL, E2BIG].contains(number) }

  /// Whether the disk, or the quota, is used up.
  var meansNoRoom: Bool { number == ENOSPC || number == EDQUOT }

  /// The error of a caller's who wanted to do `action` with the file at `path`.
  func error(_ action: String, _ path: String) -> CacheError {
    // No call of ours waits for anything but a lock.
    let text = self == .wouldBlock ? "another process holds its lock" : String(cString: strerror(number))
    return CacheError(
      meansNoRoom ? .diskFull : .fileSystem, reason: "could not \(action): \(text) (\(number))", path: path, errno: number)
  }
}
