internal import CacheCore

/// The index that is kept beside the entries.
extension StoreFolder {
  private var indexPath: String { "\(root)/index" }

  /// What an index of the folder as it is now bears; nil while somebody changes something, and where it can't be told.
  var indexStamp: IndexFile.Stamp? {
    guard !hasLostGeneration, let boot = BootID.name, let (identity, counts) = generationNow, counts.isQuiet else {
      return nil
    }
    return IndexFile.Stamp(
      boot: NameDigest(SipHash.digest(boot, key: key)), generation: identity, count: counts.started)
  }

  /// The entries, if the index is of the folder as it is.
  func readIndex(_ stamp: IndexFile.Stamp) -> [EntryName: EntryIndex.Use]? {
    guard let file = try? FileDescriptor(indexPath, .read), let status = try? file.status(), status.kind == .file,
      status.size <= IndexFile.lengthLimit, let memory = try? FileMemory(file, at: 0, count: Int(status.size))
    else { return nil }
    return memory.withBytes { IndexFile.decoded($0, stamp) }
  }

  /// Puts an index into its place; false when that failed, and then there is the earlier one.
  func writeIndex(_ bytes: [UInt8]) -> Bool {
    guard isWritable, let path = try? temporaryPath("index") else { return false }
    do throws(SystemError) {
      try calls.writeAll(try FileDescriptor(path, .createNew), bytes, at: 0)
      if let error = calls.rename(path, indexPath) { throw error }
      return true
    } catch {
      _ = calls.unlink(path)
      return false
    }
  }

  /// Where a link has taken the folder's place, what it leads to stays.
  func removeIndex() {
    guard (try? FileStatus(path: root))?.kind == .folder else { return }
    _ = calls.unlink(indexPath)
  }
}
