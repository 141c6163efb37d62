#if SQLite
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The identity of the file at a path.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let number: UInt64

  /// Reads the identity, or returns `nil` if the file does not exist or cannot be examined.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    number = UInt64(truncatingIfNeeded: status.st_ino)
  }

  /// The paths of a database, of its log and of the log's index.
  static func files(_ path: String) -> [String] { [path, path + "-wal", path + "-shm"] }

  /// Creates an empty database for this user alone. SQLite would let all users read it, and gives its mode to the other files.
  ///
  /// The file is linked into place, because closing a descriptor of a database that is in use would release SQLite's locks.
  static func createEmpty(_ path: String) {
    let draft = "\(path)-\(Revision.random())"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    close(descriptor)
    _ = link(draft, path)
    _ = unlink(draft)
  }

  static func remove(_ path: String) { _ = unlink(path) }
}
#endif
