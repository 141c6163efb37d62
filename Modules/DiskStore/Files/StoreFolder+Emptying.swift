internal import CacheCore

/// Removing everything.
extension StoreFolder {
  /// Where entries go that are on their way out. Without room for a sign of life it has no owner: whoever finds it removes it,
  /// and that is what it is for.
  private func trashPath() throws(SystemError) -> String {
    do throws(SystemError) {
      return try temporaryPath("trash")
    } catch {
      guard error.meansNoRoom else { throw error }
      return "\(tmp)/\(Revision.random()).trash"
    }
  }

  /// Removes all entries: they leave in one step, and are deleted afterwards. What is stored meanwhile is stored in a new folder.
  func removeAll() throws(CacheError) {
    do throws(SystemError) {
      try prepareToWrite()
      for _ in 0..<8 {
        do throws(SystemError) {
          guard (try? FileStatus(path: entries)) != nil else { return try restore() }
          let trash = try trashPath()
          if let error = change({ calls.rename(entries, trash) }) { throw error }
          // Where there is no room for a folder, what is on its way out has it.
          if (try? Paths.makeFolder(entries)) == nil { Paths.removeTree(trash, calls) }
          try Paths.makeFolder(entries)
          if syncsFolders { try calls.synchronise(FileDescriptor(root, .folder)) }
          return Paths.removeTree(trash, calls)
        } catch {
          // The entries may be there all the same: it can be the folder they were to leave for that is gone.
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
