internal import CacheCore

/// The removal of many files at once.
extension StoreFolder {
  /// The outcome of the removal of one of many files.
  enum BatchRemoval {
    case removed, absent, failed(SystemError)
    /// Another process used the entry after it was chosen for eviction.
    case kept(FileStatus)

    /// Whether the store no longer has the file.
    var isGone: Bool {
      switch self {
      case .removed, .absent: true
      case .failed, .kept: false
      }
    }
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
  /// - Parameter use: The last use that this cache knows. A file with a later time is kept, because another cache has used the
  ///   entry. With `nil`, the file is removed in any case.
  func remove(
    _ name: EntryName, in shard: Result<OpenFolder, SystemError>, unlessUsedSince use: Timestamp? = nil
  ) -> BatchRemoval {
    switch shard {
    case .success(let shard): remove(name, inOpen: shard, use)
    case .failure(let error): BatchRemoval(error)
    }
  }

  private func remove(_ name: EntryName, inOpen shard: OpenFolder, _ use: Timestamp?) -> BatchRemoval {
    guard name.member != nil else { return remove(name, from: shard, use) }
    return name.withResourceFolderName { folderName in
      switch Result(catching: { () throws(SystemError) in try OpenFolder(folderName, in: shard) }) {
      case .failure(let error): return BatchRemoval(error)
      case .success(let folder):
        let outcome = remove(name, from: folder, use)
        if case .removed = outcome { shard.removeEmptyFolder(folderName) }
        return outcome
      }
    }
  }

  private func remove(_ name: EntryName, from folder: OpenFolder, _ use: Timestamp?) -> BatchRemoval {
    name.withFileName { name in
      if let use, case .success(let status) = Result(catching: { () throws(SystemError) in try folder.status(name) }),
        status.kind == .file, status.modified > use
      {
        return .kept(status)
      }
      return folder.remove(name, calls).map { BatchRemoval($0) } ?? .removed
    }
  }
}

extension StoreFolder.BatchRemoval {
  /// Creates the outcome of a file that could not be removed. Most such files are already gone, or are behind a link.
  init(_ error: SystemError) {
    self = [.notFound, .notAFolder, .isLink].contains(error) ? .absent : .failed(error)
  }
}
