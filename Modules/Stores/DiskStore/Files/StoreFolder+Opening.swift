internal import CacheCore

/// The creation and opening of the folder.
extension StoreFolder {
  /// Creates the folder, or throws an error that names the owner if other users can change it or a folder in it.
  ///
  /// A program that can change these folders could replace responses, and links in its place are not followed. The parent folder
  /// may be writable by others: a folder that they put in the place of this one belongs to them.
  static func requireOwnFolders(_ root: String) throws(CacheError) {
    do throws(SystemError) {
      try Paths.makeFolder(root)
    } catch {
      throw error.error("open the store's folder", root)
    }
    for path in [root, "\(root)/entries", "\(root)/tmp", "\(root)/generation"] {
      guard let status = try? FileStatus(path: path), status.kind != .other else { continue }
      guard status.ownership.isTrusted else { throw status.ownership.error(for: path) }
    }
  }

  /// Returns the folder, locked. Without file locks, still only one process creates the key.
  static func locked(_ root: String, _ calls: FileCalls) throws(SystemError) -> FileDescriptor {
    let folder = try FileDescriptor(root, .folder)
    try folder.waitForLock(calls)
    return folder
  }

  /// Creates the missing files of a folder, and its key unless it has one.
  ///
  /// - Throws: ``SystemError/laterFolder(version:)`` before the first change.
  static func prepare(
    _ root: String, _ calls: FileCalls, key mine: SipHash.Key?
  ) throws(SystemError) -> (key: SipHash.Key, generation: Generation) {
    let found = try readKey(root)
    try Paths.makeFolder("\(root)/entries")
    try Paths.makeFolder("\(root)/tmp")
    FileProtection.permitBackground(folders: [root, "\(root)/entries", "\(root)/tmp"])
    Backup.exclude(root)
    // New counters start at zero and could reach the value in an index file of the earlier ones.
    if (try? FileStatus(path: "\(root)/generation"))?.size != Int64(Generation.length) { _ = calls.unlink("\(root)/index") }
    let generation = try Generation("\(root)/generation", calls)
    if let found { return (found, generation) }
    if (try? FileStatus(path: "\(root)/folder.key")) != nil {
      // The key is damaged, so no name can be computed and no entry can be found. The entries are moved away first, so that after
      // a crash in between the next opening starts over.
      let trash = "\(root)/tmp/\(Revision.random()).trash"
      _ = generation.around { calls.rename("\(root)/entries", trash) }
      try Paths.makeFolder("\(root)/entries")
      Paths.removeTree("\(root)/folder.key", calls)
      Paths.removeTree(trash, calls)
    }
    let key = mine ?? .random()
    return (try publish(key, root, calls), generation)
  }

  /// Flushes the folder (which contains `entries` and `folder.key`), its parent, and the parents of the `made` folders above it.
  static func synchronize(_ root: String, made: Int, _ calls: FileCalls) throws(SystemError) {
    var path = root
    for _ in 0..<made + 2 {
      try calls.synchronize(FileDescriptor(path, .folder))
      path = Paths.parent(of: path)
    }
  }

  /// Returns the key, or `nil` if the file is missing or damaged.
  ///
  /// - Throws: ``SystemError/laterFolder(version:)``, or the error of a system call.
  static func readKey(_ root: String) throws(SystemError) -> SipHash.Key? {
    let file: FileDescriptor
    do throws(SystemError) {
      file = try FileDescriptor("\(root)/folder.key", .read)
    } catch {
      if error == .notFound || error == .isLink { return nil }
      throw error
    }
    // With the key of another user, that user could compute the names.
    let status = try file.status()
    guard status.kind == .file, status.ownership.isTrusted else { return nil }
    let bytes = try FileMemory(file, at: 0, count: FolderKey.lengthLimit + 1).withBytes { Array($0) }
    if let version = FolderKey.laterVersion(bytes) { throw .laterFolder(version: version) }
    // An earlier version has created the file with the class of the app.
    FileProtection.permitBackground(file.raw)
    return FolderKey.decoded(bytes)
  }

  /// Publishes the key in one step. Without file locks, two processes can reach this point at once, and only one of them can
  /// create the link.
  private static func publish(_ key: SipHash.Key, _ root: String, _ calls: FileCalls) throws(SystemError) -> SipHash.Key {
    let draft = "\(root)/tmp/\(Revision.random()).key"
    let file = try FileDescriptor(draft, .createNew)
    defer { _ = calls.unlink(draft) }
    try calls.writeAll(file, FolderKey.encoded(key), at: 0)
    try calls.synchronize(file)
    if let error = Paths.link(draft, "\(root)/folder.key") {
      if error == .exists {
        guard let winner = try readKey(root) else { throw .ioFailure }
        return winner
      }
      guard error.meansNoLinks else { throw error }
      if let error = calls.rename(draft, "\(root)/folder.key") { throw error }
    }
    return key
  }
}

extension StoreFolder {
  /// The number of checks before the counters are considered abandoned, about half a second in all.
  private static let checkCount = 25

  /// Replaces counters that a process left unequal when it ended during a change. Otherwise they would never be trusted again.
  ///
  /// A process that uses the old counters sees them unequal for good, reads the file system, and finds the new ones at its next
  /// check. A process that changes something increments both.
  ///
  /// - Returns: Whether the counters were replaced.
  func renewCounters() -> Bool {
    for _ in 0..<Self.checkCount {
      guard let (_, counts) = generationNow, !counts.isQuiet else { return false }
      calls.pause()
    }
    guard !hasLostGeneration, let lock = try? FileDescriptor(root, .folder), lock.lockExclusively() else { return false }
    let isNew = withExtendedLifetime(lock) {
      // An index file refers to counters, and the new ones start again at zero.
      removeIndex()
      guard calls.unlink("\(root)/generation") == nil else { return false }
      return (try? Generation("\(root)/generation", calls)) != nil
    }
    lock.unlock()
    adoptGeneration()
    return isNew
  }
}

/// `folder.key`: the random key that hashes the folder's file names.
///
/// With a key, the choice of a URL does not determine a file name. The key is stored in the folder so that every process computes
/// the same names.
enum FolderKey {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x4B, 0x0D, 0x0A, 0x1A, 0x0A]
  static let length = 32
  /// The maximum length in bytes of the file in any version.
  static let lengthLimit = 4096
  static let version: UInt32 = 1

  static func encoded(_ key: SipHash.Key) -> [UInt8] {
    var writer = ByteWriter()
    writer.raw(magic)
    writer.integer(version)
    writer.integer(key.first)
    writer.integer(key.second)
    writer.checksum(from: 0)
    return writer.bytes
  }

  /// Decodes the key, or returns `nil` if the bytes are damaged.
  static func decoded(_ bytes: [UInt8]) -> SipHash.Key? {
    guard bytes.count == length else { return nil }
    return bytes.withUnsafeBytes { bytes in
      guard bytes.part(0..<8).elementsEqual(magic), bytes.integer(at: 8) == version,
        bytes.integer(at: 28) == crc32c(bytes.part(0..<28))
      else { return nil }
      return SipHash.Key(first: bytes.integer(at: 12), second: bytes.integer(at: 20))
    }
  }

  /// Returns the version of an intact file that a later version of this package has written, or `nil`.
  ///
  /// Every version begins with the magic and the version, and ends with a checksum of all bytes before it. A damaged file is thus
  /// never taken for one of a later version.
  static func laterVersion(_ bytes: [UInt8]) -> UInt32? {
    guard (16...lengthLimit).contains(bytes.count) else { return nil }
    return bytes.withUnsafeBytes { bytes in
      let (end, written) = (bytes.count - 4, bytes.integer(at: 8, as: UInt32.self))
      guard written > version, bytes.part(0..<8).elementsEqual(magic),
        bytes.integer(at: end) == crc32c(bytes.part(0..<end))
      else { return nil }
      return written
    }
  }

  /// Returns a secret that is derived from the key and does not reveal it.
  static func digestSecret(_ key: SipHash.Key) -> DigestSecret {
    let (first, second) = SipHash.digest("etagere digest secret 1", key: key)
    // The secret is the 16 bytes of the two words, the least significant byte of each first.
    return DigestSecret(high: first.byteSwapped, low: second.byteSwapped)
  }
}
