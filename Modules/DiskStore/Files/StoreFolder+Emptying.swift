internal import CacheCore

/// The removal of all entries.
extension StoreFolder {
  /// Returns a path for entries that are being removed. If the disk has no space for a lock file, the path has no owner, so the
  /// next process that collects orphans removes it.
  private func trashPath() throws(SystemError) -> String {
    do throws(SystemError) {
      return try temporaryPath("trash")
    } catch {
      guard error.meansDiskFull else { throw error }
      return "\(tmp)/\(Revision.random()).trash"
    }
  }

  /// Removes all entries in one step and deletes their files afterwards. Entries stored meanwhile go into a new folder.
  func removeAll() throws(CacheError) {
    do throws(SystemError) {
      try prepareToWrite()
      for _ in 0..<8 {
        do throws(SystemError) {
          guard (try? FileStatus(path: entries)) != nil else { return try restore() }
          let trash = try trashPath()
          if let error = change({ calls.rename(entries, trash) }) { throw error }
          // If there is no space for a new folder, deleting the old entries makes space.
          if (try? Paths.makeFolder(entries)) == nil { Paths.removeTree(trash, calls) }
          try Paths.makeFolder(entries)
          if syncsFolders { try calls.synchronize(FileDescriptor(root, .folder)) }
          return Paths.removeTree(trash, calls)
        } catch {
          // The entries may still exist: the missing folder can be the one they were to be moved to.
          guard error == .notFound else { throw error }
          try restore()
        }
      }
      throw .notFound
    } catch {
      throw error.error("remove the entries", entries)
    }
  }
}
