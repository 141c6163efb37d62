internal import CacheCore

/// Removing many files at once.
extension StoreFolder {
  /// What became of a file that was to leave.
  enum EvictionOutcome {
    case removed, absent, failed(SystemError)
    /// Another process has used it since it was chosen.
    case kept(FileStatus)
  }

  /// The folder of the entries whose resources' digests begin with `digits`.
  func shardFolder(_ shard: UInt8) -> Result<OpenFolder, SystemError> {
    let digits = String(shard, radix: 16)
    let name = (digits.count == 1 ? "0" : "") + digits
    // One step at a time: of a whole path only the last name would not be followed if it is a link.
    return Result { () throws(SystemError) in try OpenFolder(name, in: OpenFolder("entries", in: OpenFolder(root))) }
  }

  /// Removes a file.
  ///
  /// - Parameter looks: whether somebody may have used it since it was chosen, who has told its file and nobody else.
  func remove(_ victim: EntryIndex.Victim, in shard: OpenFolder, looks: Bool) -> EvictionOutcome {
    guard victim.name.member != nil else { return remove(victim, from: shard, looks) }
    return victim.name.withResourceFolderName { folderName in
      switch Result(catching: { () throws(SystemError) in try OpenFolder(folderName, in: shard) }) {
      case .failure(let error): return EvictionOutcome(error)
      case .success(let folder):
        let outcome = remove(victim, from: folder, looks)
        if case .removed = outcome { shard.removeEmptyFolder(folderName) }
        return outcome
      }
    }
  }

  private func remove(_ victim: EntryIndex.Victim, from folder: OpenFolder, _ looks: Bool) -> EvictionOutcome {
    victim.name.withFileName { name in
      if looks, case .success(let status) = Result(catching: { () throws(SystemError) in try folder.status(name) }),
        status.kind == .file, status.modified > victim.last
      {
        return .kept(status)
      }
      return folder.remove(name, calls).map { EvictionOutcome($0) } ?? .removed
    }
  }
}

extension StoreFolder.EvictionOutcome {
  /// Of a file that could not be removed: most are gone, with all that is above them, or lie behind a link.
  init(_ error: SystemError) {
    self = [.notFound, .notAFolder, .isLink].contains(error) ? .absent : .failed(error)
  }
}
