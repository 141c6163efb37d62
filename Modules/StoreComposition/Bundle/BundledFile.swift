internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open file, closed with its last reference.
final class BundledFile: Sendable {
  private let descriptor: Int32
  let path: String
  let size: Int64
  let modified: Timestamp

  /// - Parameters:
  ///   - name: The path relative to the folder. Links on the way are not followed, because they could lead out of the folder.
  init(_ name: String, in folder: String) throws(CacheError) {
    path = folder + (folder.hasSuffix("/") ? "" : "/") + name
    descriptor = try Self.descend(name.split(separator: "/").map(String.init), from: folder, path)
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      let number = errno
      close(descriptor)
      throw Self.failure("open a file (it must be a regular file)", path, number)
    }
    #if canImport(Darwin)
    let changed = status.st_mtimespec
    #else
    let changed = status.st_mtim
    #endif
    size = Int64(status.st_size)
    modified = Timestamp(seconds: Int64(changed.tv_sec)) + .nanoseconds(Int64(changed.tv_nsec))
  }

  deinit { close(descriptor) }

  private static func descend(_ parts: [String], from folder: String, _ path: String) throws(CacheError) -> Int32 {
    var place = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    for (index, part) in parts.enumerated() where place >= 0 {
      let isLast = index == parts.count - 1
      let next = openat(place, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (isLast ? 0 : O_DIRECTORY))
      let number = errno
      close(place)
      errno = number
      place = next
    }
    guard place >= 0 else { throw failure("open a file", path, errno) }
    return place
  }

  /// - Throws: An error if the read fails or the file has become shorter.
  func read(_ range: Range<Int64>) throws(CacheError) -> Data {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeMutableBytes { [descriptor] buffer in
        pread(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(range.lowerBound) + off_t(done))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw count < 0 ? Self.failure("read a file", path, errno) : shorter }
      done += count
    }
    return Data(bytes)
  }

  private var shorter: CacheError { CacheError(.damagedEntry, reason: "the file has become shorter", path: path) }

  private static func failure(_ action: String, _ path: String, _ number: Int32) -> CacheError {
    CacheError(.fileSystem, reason: "cannot \(action): \(String(cString: strerror(number)))", path: path, errno: number)
  }
}
