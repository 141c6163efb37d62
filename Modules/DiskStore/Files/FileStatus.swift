internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The status of a file.
struct FileStatus: Hashable, Sendable {
  enum Kind: Hashable, Sendable { case file, folder, other }

  /// The identity of a file, unique while the file is open or exists.
  struct Identity: Hashable, Sendable {
    var device: UInt64
    var inode: UInt64
  }

  var identity: Identity
  var kind: Kind
  /// The size in bytes.
  var size: Int64
  var modified: Timestamp
  var ownership: FileOwnership

  /// The user of this process when it was first asked for, which takes a system call.
  private static let firstUser = geteuid()

  /// Whether only trusted users can change the file. It needs no system call if the file is this user's alone, as the store
  /// creates it.
  var isTrusted: Bool { ownership.user == Self.firstUser && ownership.mode & 0o022 == 0 || ownership.isTrusted }

  /// The unit in bytes in which most file systems allocate space.
  static let blockSize: Int64 = 4_096

  /// The space in bytes that the file occupies on the disk.
  var allocatedSize: Int64 { Self.allocatedSize(of: size) }

  /// Returns the space in bytes that a file of `size` bytes occupies: whole blocks, as most file systems allocate them. It is
  /// capped at ``IndexFile/sizeLimit``. No entry is larger, but a sparse file can claim any size.
  ///
  /// It is computed, because file systems state the allocated blocks of a new file only after a while, and differently.
  static func allocatedSize(of size: Int64) -> Int64 {
    (min(max(size, 0), IndexFile.sizeLimit) + blockSize - 1) / blockSize * blockSize
  }

  init(_ status: stat) {
    identity = Identity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
    switch status.st_mode & S_IFMT {
    case S_IFREG: kind = .file
    case S_IFDIR: kind = .folder
    default: kind = .other
    }
    size = Int64(status.st_size)
    ownership = FileOwnership(user: status.st_uid, group: status.st_gid, mode: UInt32(status.st_mode))
    #if canImport(Darwin)
    let time = status.st_mtimespec
    #else
    let time = status.st_mtim
    #endif
    let (sum, overflows) = Timestamp(seconds: Int64(time.tv_sec)).nanoseconds.addingReportingOverflow(Int64(time.tv_nsec))
    modified = overflows ? .distantFuture : Timestamp(nanoseconds: sum)
  }

  /// Reads the status of the file at `name`, a path from an open folder. Links are not followed.
  init(_ name: UnsafePointer<CChar>, in folder: Int32) throws(SystemError) {
    var status = stat()
    guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw .last }
    self.init(status)
  }

  /// The status of a file that exists but cannot be examined.
  static let unknown = FileStatus()

  private init() {
    identity = Identity(device: 0, inode: 0)
    kind = .file
    size = 0
    modified = Timestamp(nanoseconds: 0)
    ownership = FileOwnership(user: 0, group: 0, mode: 0o600)
  }

  /// Reads the status without copying the path for the call. Links are not followed.
  init(path: String) throws(SystemError) {
    self = try path.withCString { path in Result { () throws(SystemError) in try FileStatus(path: path) } }.get()
  }

  /// Reads the status of the file at `path`. Links are not followed.
  init(path: UnsafePointer<CChar>) throws(SystemError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw .last }
    self.init(status)
  }
}

extension timespec {
  init(_ time: Timestamp) {
    let seconds = time.seconds
    let (scaled, _) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    self.init(tv_sec: time_t(seconds), tv_nsec: Int(time.nanoseconds &- scaled))
  }
}
