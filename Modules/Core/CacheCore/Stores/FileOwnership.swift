#if canImport(Darwin)
package import Darwin
#elseif canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#endif

/// The owner and the permissions of a file or folder, which decide who can change what a store serves.
package struct FileOwnership: Hashable, Sendable {
  package let user: UInt32
  package let group: UInt32
  /// The permission bits.
  package let mode: UInt32

  package init(user: UInt32, group: UInt32, mode: UInt32) { (self.user, self.group, self.mode) = (user, group, mode & 0o7777) }

  /// Reads the ownership of the file that a path leads to, or returns `nil` if there is none.
  package init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(user: status.st_uid, group: status.st_gid, mode: UInt32(status.st_mode))
  }

  /// Whether only the user of this process, the superuser and a group of this process can change the file.
  ///
  /// A group may write because only a deliberate `chmod`, or the system that mounts a volume, permits it: the stores themselves
  /// create folders with mode 0700.
  package var isTrusted: Bool {
    guard user == geteuid() || user == 0, mode & 0o002 == 0 else { return false }
    return mode & 0o020 == 0 || group == getegid() || Self.groups.contains(group)
  }

  /// The supplementary groups of this process.
  private static var groups: [gid_t] {
    let count = getgroups(0, nil)
    guard count > 0 else { return [] }
    var groups = [gid_t](repeating: 0, count: Int(count))
    return Array(groups.prefix(Int(max(getgroups(count, &groups), 0))))
  }

  /// Returns the error for a file that other users can change.
  package func error(for path: String) -> CacheError {
    let permissions = String(mode, radix: 8)
    return CacheError(
      .fileSystem,
      reason: """
        users other than this process's can change '\(path)': it belongs to the user \(user) and the group \(group) and has mode \
        \(permissions), and this process runs as the user \(geteuid()); remove it, or run 'chown -R \(geteuid())' and \
        'chmod -R go-w' on it if its contents can be trusted
        """, path: path, errno: EPERM)
  }
}

extension Timestamp {
  /// Creates a time from a time of the system. It saturates outside the years 1678 to 2262.
  package init(_ time: timespec) {
    let (sum, overflows) = Timestamp(seconds: Int64(time.tv_sec)).nanoseconds.addingReportingOverflow(Int64(time.tv_nsec))
    self = overflows ? .distantFuture : Timestamp(nanoseconds: sum)
  }

  /// Returns the time of the last change of a file's content, which programs can set.
  package static func modified(_ status: stat) -> Timestamp {
    #if canImport(Darwin)
    Timestamp(status.st_mtimespec)
    #else
    Timestamp(status.st_mtim)
    #endif
  }

  /// Returns the time of the last change of a file's content, name or permissions, which only the system sets.
  package static func changed(_ status: stat) -> Timestamp {
    #if canImport(Darwin)
    Timestamp(status.st_ctimespec)
    #else
    Timestamp(status.st_ctim)
    #endif
  }
}
