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
    modified = .modified(status)
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

  /// Reads the status of the file at a path from an open folder. Links are not followed.
  init(path: UnsafePointer<CChar>, in folder: Int32 = AT_FDCWD) throws(SystemError) {
    var status = stat()
    guard fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw .last }
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

/// System calls on paths that tests need not replace. None follows a final link, and only `makeFolders` acts outside the store's
/// folder.
enum Paths {
  /// Creates a folder. Returns whether it did not exist before.
  @discardableResult
  static func makeFolder(_ path: String) throws(SystemError) -> Bool {
    if mkdir(path, 0o700) == 0 { return true }
    let error = SystemError.last
    guard error == .exists else { throw error }
    // A link to a folder would lead outside the store.
    guard try FileStatus(path: path).kind == .folder else { throw .notAFolder }
    return false
  }

  /// Creates a folder and its missing parents. Links on the way are the caller's choice and are followed.
  ///
  /// - Returns: The number of folders created.
  @discardableResult
  static func makeFolders(_ path: String) throws(SystemError) -> Int {
    if mkdir(path, 0o700) == 0 { return 1 }
    let error = SystemError.last
    if error == .exists {
      var status = stat()
      guard stat(path, &status) == 0 else { throw .last }
      guard status.st_mode & S_IFMT == S_IFDIR else { throw .notAFolder }
      return 0
    }
    guard error == .notFound, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { throw error }
    let above = try makeFolders(String(path[..<slash]))
    if mkdir(path, 0o700) == 0 { return above + 1 }
    guard errno == EEXIST else { throw .last }
    return above
  }

  /// Returns the parent of a path without links. The parent of the root is the root.
  static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  /// Returns the path without links, `.` and `..`.
  static func resolved(_ path: String) throws(SystemError) -> String {
    guard let result = realpath(path, nil) else { throw .last }
    defer { free(result) }
    return String(cString: result)
  }

  static func link(_ from: String, _ to: String) -> SystemError? { linkSystem(from, to) == 0 ? nil : .last }

  private static func linkSystem(_ from: String, _ to: String) -> Int32 { linkat(AT_FDCWD, from, AT_FDCWD, to, 0) }

  @discardableResult
  static func removeEmptyFolder(_ path: String) -> Bool { rmdir(path) == 0 }

  static var processID: Int32 { getpid() }

  /// Returns the names in a folder, in no particular order. A link in the folder's place is not followed.
  static func names(in folder: String) throws(SystemError) -> [String] {
    var names: [String] = []
    // A name that is not UTF-8 is not one of the store's.
    try FolderListing(folder)?.forEach { item in
      if let name = String(validating: item.bytes, as: UTF8.self) { names.append(name) }
    }
    return names
  }

  /// Removes a file, or a folder with its contents. Links are removed but not followed. Items that cannot be removed stay. The
  /// removal stops when no lock may be taken.
  static func removeTree(_ path: String, _ calls: FileCalls) {
    guard let status = try? FileStatus(path: path) else { return }
    if status.kind == .folder {
      for name in (try? names(in: path)) ?? [] {
        // The locks are handed back when the last job ends, so a long one must not delay that.
        guard !calls.isSuspended else { return }
        removeTree("\(path)/\(name)", calls)
      }
      removeEmptyFolder(path)
    } else {
      _ = calls.unlink(path)
    }
  }
}

/// The identity of the current boot of the system.
enum BootID {
  /// A text that differs after each boot, or `nil` if the system does not provide one.
  static var name: String? {
    #if canImport(Darwin)
    var bytes = [UInt8](repeating: 0, count: 64)
    var count = bytes.count
    guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
    #else
    guard let file = try? FileDescriptor("/proc/sys/kernel/random/boot_id", .read),
      let bytes = try? FileMemory(file, at: 0, count: 64).withBytes({ Array($0) })
    else { return nil }
    #endif
    let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
