internal import CacheCore

/// The index file beside the entries.
extension StoreFolder {
  private var indexPath: String { "\(root)/index" }

  /// The stamp for an index of the folder's current state, or `nil` during a change or if the state is unknown.
  var indexStamp: IndexFile.Stamp? {
    guard !hasLostGeneration, let boot = BootID.name, let (identity, counts) = generationNow, counts.isQuiet else {
      return nil
    }
    return IndexFile.Stamp(
      boot: NameDigest(SipHash.digest(boot, key: key)), generation: identity, count: counts.started)
  }

  /// Returns the entries of the index file if it matches the folder's current state.
  func readIndex(_ stamp: IndexFile.Stamp) -> [EntryName: EntryIndex.Use]? {
    guard let file = try? FileDescriptor(indexPath, .read), let status = try? file.status(), status.kind == .file,
      status.ownership.isTrusted, status.size <= IndexFile.lengthLimit,
      let memory = try? FileMemory(file, at: 0, count: Int(status.size))
    else { return nil }
    return memory.withBytes { IndexFile.decoded($0, stamp) }
  }

  /// Writes the index file. Returns `false` if that failed; an earlier index file then stays.
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

  /// Removes the index file. If a link has replaced the folder, its target is not changed.
  func removeIndex() {
    guard (try? FileStatus(path: root))?.kind == .folder else { return }
    _ = calls.unlink(indexPath)
  }
}
