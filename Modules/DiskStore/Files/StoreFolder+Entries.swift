internal import CacheCore

/// Placing and removing the files of entries.
extension StoreFolder {
  /// Moves a finished file into place with one rename. Missing folders are created.
  ///
  /// - Parameter rewrite: Writes the temporary file again if it was deleted together with the folder.
  func place(
    _ spool: String, _ name: EntryName, syncsFolders: Bool, rewrite: () throws(CacheError) -> String
  ) throws(CacheError) {
    var spool = spool
    let target = path(name)
    var failure = SystemError.notFound
    for _ in 0..<8 {
      do throws(SystemError) {
        let isNew = try makeParents(of: name)
        guard let error = change({ calls.rename(spool, target) }) else {
          if syncsFolders { try synchronizeFolders(of: name, isNew: isNew) }
          return
        }
        failure = error
      } catch {
        failure = error
      }
      if failure == .notFound {
        do throws(SystemError) { try restore() } catch { throw error.error("recreate the store's folder", root) }
        if (try? FileStatus(path: spool)) == nil { spool = try rewrite() }
      } else if let kind = try? FileStatus(path: target).kind, kind == .folder {
        Paths.removeTree(target, calls)
      } else {
        break
      }
    }
    _ = calls.unlink(spool)
    throw failure.error("move an entry into place", target)
  }

  /// Returns whether a folder was created.
  private func makeParents(of name: EntryName) throws(SystemError) -> Bool {
    try Self.requireFolder(root)
    try Self.requireFolder(entries)
    var isNew = try makeInside(name, .shard)
    if name.member != nil, try makeInside(name, .resourceFolder) { isNew = true }
    return isNew
  }

  private func makeInside(_ name: EntryName, _ part: EntryName.Part) throws(SystemError) -> Bool {
    do throws(SystemError) {
      if try status(name, part).kind == .folder { return false }
      // A file or a link in place of a folder is removed. The target of the link stays.
      if let error = calls.unlink(path(name, part)) { throw error }
    } catch {
      guard error == .notFound else { throw error }
    }
    return try Paths.makeFolder(path(name, part))
  }

  private func synchronizeFolders(of name: EntryName, isNew: Bool) throws(SystemError) {
    try calls.synchronize(FileDescriptor(path(name, name.member == nil ? .shard : .resourceFolder), .folder))
    guard isNew else { return }
    if name.member != nil { try calls.synchronize(FileDescriptor(path(name, .shard), .folder)) }
    try calls.synchronize(FileDescriptor(entries, .folder))
  }

  enum Removal { case removed, absent, failed(SystemError) }

  /// Removes an entry's file.
  ///
  /// - Parameter identity: The file to remove; another one in its place stays. `nil` removes any file.
  @discardableResult
  func remove(_ name: EntryName, ifStill identity: FileStatus.Identity? = nil) -> Removal {
    do throws(SystemError) {
      try prepareToWrite()
      try requireFolders(of: name)
      if let identity, try status(name, .file).identity != identity { return .absent }
    } catch {
      return error == .notFound || error == .notAFolder ? .absent : .failed(error)
    }
    if let error = change({ calls.unlink(path(name)) }) { return error == .notFound ? .absent : .failed(error) }
    if name.member != nil { Paths.removeEmptyFolder(path(name, .resourceFolder)) }
    return .removed
  }
}
