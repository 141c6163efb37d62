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

  static func prepare(
    _ root: String, _ calls: FileCalls, key mine: SipHash.Key?
  ) throws(SystemError) -> (key: SipHash.Key, generation: Generation) {
    try Paths.makeFolder("\(root)/entries")
    try Paths.makeFolder("\(root)/tmp")
    // New counters start at zero and could reach the value in an index file of the earlier ones.
    if (try? FileStatus(path: "\(root)/generation"))?.size != Int64(Generation.length) { _ = calls.unlink("\(root)/index") }
    let generation = try Generation("\(root)/generation", calls)
    if let key = try readKey(root) { return (key, generation) }
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
    return FolderKey.decoded(try FileMemory(file, at: 0, count: FolderKey.length + 1).withBytes { Array($0) })
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
