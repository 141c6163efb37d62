#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open partial file.
struct OpenedPart {
  var descriptor: Int32 = -1
  /// The permissions of the complete file, or `nil` if the partial file has them.
  var permissions: mode_t?
  /// The bytes of an earlier load, which are not verified yet.
  var recorded: RecordedBytes?

  /// Creates a file, with the permissions of the file that it replaces. If they cannot be set, it is as private as any new file.
  init?(unique path: String, _ replaced: mode_t?) {
    descriptor = Self.create(path)
    guard descriptor >= 0 else { return nil }
    _ = lockFile(descriptor)
    if let replaced { _ = fchmod(descriptor, replaced) }
  }

  /// Opens or creates the part of a destination. Returns `nil` if another load uses it, or if it may belong to another user.
  init?(_ names: PartNames, _ replaced: mode_t?) {
    // Another process can move, remove or create the file between two calls.
    for _ in 0..<3 {
      descriptor = Self.create(names.part)
      if descriptor >= 0 {
        if Self.takes(descriptor, names.part), let status = FileStatus.own(descriptor) {
          // Only this user can read the file before it is complete.
          _ = fchmod(descriptor, 0o600)
          permissions = replaced ?? status.st_mode & 0o777
          unlink(names.record)
          return
        }
      } else {
        guard errno == EEXIST else { return nil }
        descriptor = openFile(names.part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT { continue }
        // A complete file could not be moved in a folder that cannot be written.
        guard descriptor >= 0, access(names.folder + ".", W_OK | X_OK) == 0, FileStatus.own(descriptor) != nil else { break }
        // The size counts only under the lock, because the load that held it may have changed the file.
        if Self.takes(descriptor, names.part), let status = FileStatus.own(descriptor) {
          if status.st_size > 0, let (record, file) = PartRecordFile.open(names.record) {
            recorded = RecordedBytes(record, file, size: Int64(status.st_size))
            permissions = replaced ?? mode_t(record.permissions)
            return
          }
          unlink(names.record)
          unlink(names.part)
        }
      }
      closeFile(descriptor)
      descriptor = -1
    }
    if descriptor >= 0 { closeFile(descriptor) }
    return nil
  }

  private static func create(_ path: String) -> Int32 {
    openFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
  }

  /// Locks a file that still has its name. Returns `false` if another load uses the file, or if the name is another file's.
  static func takes(_ descriptor: Int32, _ path: String) -> Bool {
    var (named, opened) = (stat(), stat())
    return lockFile(descriptor) && lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev
      && named.st_ino == opened.st_ino
  }
}
