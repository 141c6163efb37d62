internal import CacheCore
internal import Dispatch

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The file into which a caller loads a resource.
struct FileDestination: Sendable {
  var url: URL
  /// Whether the bytes are durable before the file appears.
  var isDurable: Bool
  var calls: FileSystemCalls

  /// The path of the file.
  ///
  /// - Throws: An error if the URL is not a valid file URL.
  func path() throws(CacheError) -> String {
    let path = url.path(percentEncoded: false)
    guard url.isFileURL, !path.isEmpty else {
      throw CacheError(
        .invalidConfiguration, reason: "the destination must be a file: URL, not '\(url.address)'")
    }
    guard !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path contains a zero byte", path: path)
    }
    return path
  }
}

/// The queues for the blocking calls that write callers' files. They never block the cooperative pool. There are several, so that
/// one slow file system does not delay all files.
enum FileQueues {
  private static let queues = (0..<4).map { DispatchQueue(label: "etagere.download.\($0)", qos: .utility) }
  private static let turn = Lock(0)

  /// Returns the queue for one file. Work on the file runs in the order in which it was submitted.
  static func next() -> DispatchQueue {
    queues[
      turn.withLock { turn in
        turn = (turn + 1) % queues.count
        return turn
      }]
  }
}

extension DispatchQueue {
  /// Runs blocking work in the queue, and waits for it without blocking.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withResumption { continuation in
      async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }
}

/// The system calls that write a caller's file. Tests replace them to cause failures. Each call returns the number of its error,
/// or `nil` or a count if it succeeds.
package struct FileSystemCalls: Sendable {
  /// The number of a system call's error.
  package struct Failure: Error {
    package var number: Int32

    package init(number: Int32) { self.number = number }
  }

  /// Writes at an offset. It may write fewer bytes than requested.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, Failure>
  /// Makes the content durable.
  package var sync: @Sendable (Int32) -> Failure?
  /// Moves a file to a path, and replaces an existing file.
  package var rename: @Sendable (_ from: String, _ to: String) -> Failure?
  /// Closes the file. It may wait for the disk.
  package var close: @Sendable (Int32) -> Void
  /// The container of this process, which no other process uses. `nil` on a system that suspends no process on its own.
  package var home: String?

  /// The calls of the system.
  package static let system = FileSystemCalls(
    write: { descriptor, bytes, offset in
      let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
      return count >= 0 ? .success(count) : .failure(Failure(number: errno))
    },
    sync: { descriptor in
      #if canImport(Darwin)
      // On Apple platforms, `fsync` leaves the bytes in the drive's own cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return nil }
      #endif
      return fsync(descriptor) == 0 ? nil : Failure(number: errno)
    },
    rename: { from, to in moveFile(from, to) ? nil : Failure(number: errno) },
    close: { closeFile($0) }, home: systemHome)

  // Mac Catalyst has UIKit, but macOS does not suspend a process on its own.
  #if canImport(UIKit) && !targetEnvironment(macCatalyst)
  private static var systemHome: String? { NSHomeDirectory() }
  #else
  private static var systemHome: String? { nil }
  #endif

  /// Whether files in a folder can be locked for the time of a transfer. If the system suspends a process with a lock on a file
  /// that other processes can use, such as one in the container of an app group, it ends the process.
  func canLock(in folder: String) -> Bool {
    guard let home else { return true }
    guard let home = resolvedPath(home), let folder = resolvedPath(folder.isEmpty ? "." : folder) else { return false }
    return folder == home || folder.hasPrefix("\(home)/")
  }

  /// Writes all bytes at an offset.
  func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Failure? {
    var done = 0
    while done < bytes.count {
      switch write(descriptor, UnsafeRawBufferPointer(rebasing: bytes[done...]), offset + Int64(done)) {
      case .success(0): return Failure(number: EIO)
      case .success(let count): done += count
      case .failure(let failure): if failure.number != EINTR { return failure }
      }
    }
    return nil
  }
}

/// The state of an open file.
enum FileStatus {
  /// Returns the state of a regular file that belongs to this user and has one name, or `nil` for any other file.
  ///
  /// Another user could have put a file into a shared folder: a link, a FIFO, or a file that the user still has open.
  static func own(_ descriptor: Int32) -> stat? {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_nlink == 1
    else { return nil }
    return status
  }

  /// The time of the last modification, in seconds since 1970.
  static func modified(_ status: stat) -> Int {
    #if canImport(Darwin)
    status.st_mtimespec.tv_sec
    #else
    status.st_mtim.tv_sec
    #endif
  }
}

// The system's functions, under names that members of the types do not have.

/// Opens a file. Returns a negative number and sets `errno` if that fails.
func openFile(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
  while true {
    let descriptor = open(path, flags, mode)
    if descriptor >= 0 || errno != EINTR { return descriptor }
  }
}

/// Reads bytes at an offset, up to the end of the file. Returns the number of bytes, which is too small after an error.
func readFile(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
  var done = 0
  while done < buffer.count {
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
    let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + Int64(done)))
    if count > 0 { done += count } else if count == 0 || errno != EINTR { break }
  }
  return done
}

func closeFile(_ descriptor: Int32) { close(descriptor) }

/// Returns the path without links, `.` and `..`.
private func resolvedPath(_ path: String) -> String? {
  guard let result = realpath(path, nil) else { return nil }
  defer { free(result) }
  return String(cString: result)
}

func moveFile(_ from: String, _ to: String) -> Bool { rename(from, to) == 0 }

/// Locks an open file against other loads, in this process and in others. Returns `false` if another load has locked it, or if
/// the file system has no locks.
func lockFile(_ descriptor: Int32) -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

func unlockFile(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }

/// The names of the files beside a destination.
struct PartNames: Sendable {
  private static let partSuffix = ".etagere-part"
  private static let recordSuffix = ".etagere-record"
  private static let uniquePrefix = ".etagere-"
  private static let uniqueSuffix = ".part"
  /// The limit of most file systems, in bytes.
  private static let longestName = 255

  /// The path of the folder with its final slash, or an empty text for the current folder.
  let folder: String
  /// The path of the partial file, which is the same for each load into the destination.
  let part: String
  /// The path of its ``PartRecord``.
  let record: String

  init(target: String) {
    let (folder, name) = Self.split(target)
    self.folder = folder
    let stem = folder + "." + Self.shortened(name)
    (part, record) = (stem + Self.partSuffix, stem + Self.recordSuffix)
  }

  /// Returns a new path for a temporary file in the folder of a path.
  static func unique(beside path: String) -> String {
    "\(split(path).folder)\(uniquePrefix)\(Revision.random())\(uniqueSuffix)"
  }

  /// Splits a path after its last slash. As a character, a slash can be one with an accent.
  private static func split(_ path: String) -> (folder: String, name: String) {
    let start = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
    return (String(path[..<start]), String(path[start...]))
  }

  /// A long name is replaced by its beginning and a digest of it.
  private static func shortened(_ name: String) -> String {
    guard name.utf8.count + recordSuffix.utf8.count >= longestName else { return name }
    let (digest, _) = SipHash.digest(name, key: SipHash.Key(first: 0, second: 0))
    var start = name
    while start.utf8.count > 160 { start.removeLast() }
    return "\(start)~\(Hexadecimal.text(digest))"
  }

  // MARK: Old files

  /// The age from which a file that no load has continued is removed.
  private static let longestAge = 7 * 24 * 3_600

  /// Removes the partial files of this user in the folder that were last changed more than seven days ago.
  ///
  /// - Parameter locks: Whether a file in use has a lock. Without locks, only its age tells.
  /// - Returns: The number of files in the folder.
  func removeOldFiles(locks: Bool) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
    let limit = time(nil) - Self.longestAge
    for name in names where name.hasPrefix(".") {
      let path = folder + name
      if name.hasSuffix(Self.partSuffix) {
        let record = String(path.dropLast(Self.partSuffix.count)) + Self.recordSuffix
        Self.removeIfUnused(path, withRecord: record, olderThan: limit, locks: locks)
      } else if name.hasPrefix(Self.uniquePrefix), name.hasSuffix(Self.uniqueSuffix) {
        Self.removeIfUnused(path, olderThan: limit, locks: locks)
      } else if name.hasSuffix(Self.recordSuffix) {
        var status = stat()
        // The record of a part is removed together with it.
        guard lstat(String(path.dropLast(Self.recordSuffix.count)) + Self.partSuffix, &status) != 0, errno == ENOENT else {
          continue
        }
        Self.removeIfUnused(path, olderThan: limit, locks: locks)
      }
    }
    return names.count
  }

  private static func removeIfUnused(_ path: String, withRecord record: String? = nil, olderThan limit: Int, locks: Bool) {
    // Over NFS, only a file that is open for writing can be locked exclusively.
    let descriptor = openFile(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { closeFile(descriptor) }
    guard let status = FileStatus.own(descriptor), FileStatus.modified(status) < limit,
      !locks || OpenedPart.takes(descriptor, path)
    else { return }
    // Under the lock of the part, and before it: afterwards, the record can be that of a new part.
    if let record { unlink(record) }
    unlink(path)
  }
}

/// The partial files that loads of a manager use.
final class OpenParts: Sendable {
  private struct Entry {
    /// Whether the load that uses the file ends without further work.
    var isEnding: @Sendable () -> Bool
    let end = OneShotBroadcast<Void>()
  }

  private struct State {
    var open: [String: Entry] = [:]
    /// The number of loads into a folder before its old files are removed again.
    var untilCleaning: [String: Int] = [:]
  }

  /// The exclusive use of a partial file within the manager, until it is released.
  final class Claim: Sendable {
    private let parts: OpenParts
    private let path: String

    fileprivate init(_ parts: OpenParts, _ path: String) { (self.parts, self.path) = (parts, path) }

    deinit { parts.state.withLock { $0.open.removeValue(forKey: path) }?.end.make(()) }
  }

  private let state = Lock(State())

  /// Claims a partial file. If the load that uses it was cancelled, waits until that load has left the file.
  ///
  /// - Returns: `nil` if another load uses the file.
  func claim(_ path: String, isEnding: @escaping @Sendable () -> Bool) async throws(CacheError) -> Claim? {
    while true {
      let other = state.withLock { state -> Entry? in
        if let other = state.open[path] { return other }
        state.open[path] = Entry(isEnding: isEnding)
        return nil
      }
      guard let other else { return Claim(self, path) }
      guard other.isEnding() else { return nil }
      guard await other.end.value() != nil else { throw .cancelled }
    }
  }

  /// Removes old files beside a destination. Folders with many files are read less often, so that a load pays for at most a
  /// hundred files on average.
  func removeOldFiles(beside names: PartNames, locks: Bool) {
    let isDue = state.withLock { state in
      let count = state.untilCleaning[names.folder] ?? 0
      if count > 0 { state.untilCleaning[names.folder] = count - 1 }
      return count == 0
    }
    guard isDue else { return }
    let next = names.removeOldFiles(locks: locks) / 100
    state.withLock { state in
      if state.untilCleaning.count > 1_000 { state.untilCleaning = [:] }
      state.untilCleaning[names.folder] = next > 0 ? next : nil
    }
  }
}

/// An open partial file.
struct OpenedPart {
  var descriptor: Int32 = -1
  /// The permissions of the complete file, or `nil` if the partial file has them.
  var permissions: mode_t?
  /// The bytes of an earlier load, which are not verified yet.
  var recorded: RecordedBytes?

  /// Creates a file, with the permissions of the file that it replaces. If they cannot be set, it is as private as any new file.
  init?(unique path: String, _ replaced: mode_t?, locks: Bool = true) {
    descriptor = Self.create(path)
    guard descriptor >= 0 else { return nil }
    if locks { _ = lockFile(descriptor) }
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
