internal import CacheCore

/// The removal of many files at once.
extension StoreFolder {
  /// The outcome of an eviction.
  enum EvictionOutcome {
    case removed, absent, failed(SystemError)
    /// Another process used the entry after it was chosen.
    case kept(FileStatus)
  }

  /// Opens the folder of the entries whose resource digests begin with these digits.
  func shardFolder(_ shard: UInt8) -> Result<OpenFolder, SystemError> {
    let digits = String(shard, radix: 16)
    let name = (digits.count == 1 ? "0" : "") + digits
    // One step at a time, because an open with a whole path refuses only a final link.
    return Result { () throws(SystemError) in try OpenFolder(name, in: OpenFolder("entries", in: OpenFolder(root))) }
  }

  /// Removes a file.
  ///
  /// - Parameter checksUse: Whether another cache may have used the entry after it was chosen and recorded that only in the file.
  func remove(_ victim: EntryIndex.Victim, in shard: OpenFolder, checksUse: Bool) -> EvictionOutcome {
    guard victim.name.member != nil else { return remove(victim, from: shard, checksUse) }
    return victim.name.withResourceFolderName { folderName in
      switch Result(catching: { () throws(SystemError) in try OpenFolder(folderName, in: shard) }) {
      case .failure(let error): return EvictionOutcome(error)
      case .success(let folder):
        let outcome = remove(victim, from: folder, checksUse)
        if case .removed = outcome { shard.removeEmptyFolder(folderName) }
        return outcome
      }
    }
  }

  private func remove(_ victim: EntryIndex.Victim, from folder: OpenFolder, _ checksUse: Bool) -> EvictionOutcome {
    victim.name.withFileName { name in
      if checksUse, case .success(let status) = Result(catching: { () throws(SystemError) in try folder.status(name) }),
        status.kind == .file, status.modified > victim.last
      {
        return .kept(status)
      }
      return folder.remove(name, calls).map { EvictionOutcome($0) } ?? .removed
    }
  }
}

extension StoreFolder.EvictionOutcome {
  /// Creates the outcome of a file that could not be removed. Most such files are already gone, or are behind a link.
  init(_ error: SystemError) {
    self = [.notFound, .notAFolder, .isLink].contains(error) ? .absent : .failed(error)
  }
}
