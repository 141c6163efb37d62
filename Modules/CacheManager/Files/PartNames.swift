internal import CacheCore

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
  /// - Returns: The number of files in the folder.
  func removeOldFiles() -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
    let limit = time(nil) - Self.longestAge
    for name in names where name.hasPrefix(".") {
      let path = folder + name
      if name.hasSuffix(Self.partSuffix) {
        let record = String(path.dropLast(Self.partSuffix.count)) + Self.recordSuffix
        Self.removeIfUnused(path, withRecord: record, olderThan: limit)
      } else if name.hasPrefix(Self.uniquePrefix), name.hasSuffix(Self.uniqueSuffix) {
        Self.removeIfUnused(path, olderThan: limit)
      } else if name.hasSuffix(Self.recordSuffix) {
        var status = stat()
        // The record of a part is removed together with it.
        guard lstat(String(path.dropLast(Self.recordSuffix.count)) + Self.partSuffix, &status) != 0, errno == ENOENT else {
          continue
        }
        Self.removeIfUnused(path, olderThan: limit)
      }
    }
    return names.count
  }

  private static func removeIfUnused(_ path: String, withRecord record: String? = nil, olderThan limit: Int) {
    // Over NFS, only a file that is open for writing can be locked exclusively.
    let descriptor = openFile(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { closeFile(descriptor) }
    guard let status = FileStatus.own(descriptor), FileStatus.modified(status) < limit, OpenedPart.takes(descriptor, path) else {
      return
    }
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
  func removeOldFiles(beside names: PartNames) {
    let isDue = state.withLock { state in
      let count = state.untilCleaning[names.folder] ?? 0
      if count > 0 { state.untilCleaning[names.folder] = count - 1 }
      return count == 0
    }
    guard isDue else { return }
    let next = names.removeOldFiles() / 100
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
