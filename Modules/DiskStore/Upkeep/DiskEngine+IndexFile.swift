internal import CacheCore

/// What a cache knows of the index beside the files.
struct IndexFileState: Sendable {
  /// What it bears, when this cache has read or written it.
  var stamp: IndexFile.Stamp?
}

/// The index beside the files, in the upkeep's lane.
extension DiskEngine {
  /// Takes the index from its file, if it is of the folder as it is; false when the files must be listed.
  func loadIndex() -> Bool {
    let changes = folder.foreignChanges
    index.beginList()
    // The counts are read after that: what we change from here on is noted, and what we changed before has raised them.
    guard let stamp = folder.indexStamp, let found = folder.readIndex(stamp) else {
      index.abandonList()
      return false
    }
    endList(found, since: changes)
    indexFile.withLock { $0.stamp = stamp }
    return true
  }

  /// Writes the index to its file, unless it is there, or small, or something is changing.
  func saveIndex() {
    guard (IndexFile.fewest...IndexFile.most).contains(index.known.count), let stamp = folder.indexStamp,
      indexFile.withLock({ $0.stamp }) != stamp
    else {
      return
    }
    // Noted before the entries are taken: who appends metadata from here on takes the note back, and the file must not stay.
    indexFile.withLock { $0 = IndexFileState(stamp: stamp) }
    let isWritten =
      index.snapshot(folder.foreignChanges).map { entries in
        folder.indexStamp == stamp && folder.writeIndex(IndexFile.encoded(entries, stamp))
      } ?? false
    guard isWritten else { return indexFile.withLock { $0.stamp = nil } }
    if indexFile.withLock({ $0.stamp }) != stamp { folder.removeIndex() }
  }

  /// Before and after metadata is appended, which changes a size and no counter; and where a file is gone that the index had named. Another cache may have
  /// written one since we looked last.
  func forgetIndexFile() {
    indexFile.withLock { $0.stamp = nil }
    folder.removeIndex()
  }
}
