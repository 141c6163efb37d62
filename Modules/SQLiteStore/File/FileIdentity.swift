#if SQLite
#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Which file a path leads to now.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let number: UInt64

  /// Nil: none, or none that can be asked about.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    number = UInt64(truncatingIfNeeded: status.st_ino)
  }

  static func remove(_ path: String) { _ = unlink(path) }
}
#endif
