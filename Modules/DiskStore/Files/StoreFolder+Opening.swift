internal import CacheCore

/// Making the folder, or finding it.
extension StoreFolder {
  /// The folder, locked. Without locks in the file system the key is still made by one process only.
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
    // New counters begin at zero, and would come to what an index of the earlier ones bears.
    if (try? FileStatus(path: "\(root)/generation"))?.size != Int64(Generation.length) { _ = calls.unlink("\(root)/index") }
    let generation = try Generation("\(root)/generation", calls)
    generation.mendIfAlone()
    if let key = try readKey(root) { return (key, generation) }
    if (try? FileStatus(path: "\(root)/folder.key")) != nil {
      // Damaged: no name here can be computed any more, so everything is out of reach. The entries leave first: a crash in
      // between starts anew again.
      let trash = "\(root)/tmp/\(Revision.random()).trash"
      _ = generation.around { calls.rename("\(root)/entries", trash) }
      try Paths.makeFolder("\(root)/entries")
      Paths.removeTree("\(root)/folder.key", calls)
      Paths.removeTree(trash, calls)
    }
    let key = mine ?? .random()
    return (try publish(key, root, calls), generation)
  }

  /// Flushes the folder, which names `entries` and `folder.key`, the one that names it, and those that name the `made` folders
  /// above it.
  static func synchronise(_ root: String, made: Int, _ calls: FileCalls) throws(SystemError) {
    var path = root
    for _ in 0..<made + 2 {
      try calls.synchronise(FileDescriptor(path, .folder))
      path = Paths.parent(of: path)
    }
  }

  /// nil: not there, or damaged.
  static func readKey(_ root: String) throws(SystemError) -> SipHash.Key? {
    let file: FileDescriptor
    do throws(SystemError) {
      file = try FileDescriptor("\(root)/folder.key", .read)
    } catch {
      if error == .notFound || error == .isLink { return nil }
      throw error
    }
    guard try file.status().kind == .file else { return nil }
    return FolderKey.decoded(try FileMemory(file, at: 0, count: FolderKey.length + 1).withBytes { Array($0) })
  }

  /// Writes the key in one step. Where the file system has no locks two processes may get here at once: a link is made by one of
  /// them only.
  private static func publish(_ key: SipHash.Key, _ root: String, _ calls: FileCalls) throws(SystemError) -> SipHash.Key {
    let draft = "\(root)/tmp/\(Revision.random()).key"
    let file = try FileDescriptor(draft, .createNew)
    defer { _ = calls.unlink(draft) }
    try calls.writeAll(file, FolderKey.encoded(key), at: 0)
    try calls.synchronise(file)
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
