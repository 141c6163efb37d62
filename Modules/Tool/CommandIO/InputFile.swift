public import CacheCore

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

/// A file that a command reads: a regular file, a pipe, a device or an open descriptor such as `/dev/stdin`.
public struct InputFile: Sendable {
  /// The path, as given by the user.
  public let path: String

  /// Names a file, without opening it.
  public init(_ path: String) { self.path = path }

  /// Reads all bytes. If the path names a FIFO, the call waits until the last process has closed it.
  ///
  /// - Parameter limit: The maximum number of bytes of any file that is not a regular one, because a device or a pipe may have no
  ///   end. A regular file may have more bytes, but no more than when it was opened.
  /// - Throws: `CacheError.Code.bodyTooLarge` above the limit, or else `CacheError.Code.fileSystem`, with the path, the reason
  ///   and the system's number.
  public func read(limit: Int = Descriptor.listLimit) throws(CacheError) -> Data {
    do throws(CacheError) {
      if case .descriptor(let descriptor) = LinkTarget(path) { return try descriptor.read(limit: limit) }
      // Without O_NOCTTY, a terminal that is opened can become the one that controls the process.
      let number = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC)
      guard number >= 0 else { throw .system(errno) }
      defer { close(number) }
      var status = stat()
      guard fstat(number, &status) == 0 else { throw .system(errno) }
      // A file of the kernel, such as one in /proc, states no size.
      let isRegular = status.st_mode & S_IFMT == S_IFREG && status.st_size > 0
      return try Descriptor(number: number).read(limit: isRegular ? max(limit, Int(status.st_size)) : limit)
    } catch {
      throw CacheError(error.code, reason: error.reason, path: path, errno: error.errno)
    }
  }

  /// Whether the path names a regular file that other users may read or write.
  ///
  /// The rule is that of ssh: if the file belongs to the user of this process, its group counts as other users.
  public var isOpenToOthers: Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    return status.st_mode & (status.st_uid == geteuid() ? 0o077 : 0o007) != 0
  }
}
