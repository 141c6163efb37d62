internal import CacheCore
internal import Synchronization

/// Hits in the caller's thread: what the system has in its memory is read sooner than another thread is woken for it.
///
/// Nothing here waits, for the disk or for anybody, and nothing is changed on it. Where anything is not as usual the answer is
/// nil, which says nothing, and a thread that may wait looks.
extension DiskEngine {
  /// Bytes of the largest file that is read so: its checksums are the caller's thread's work too.
  private static let limit: Int64 = 65_536

  /// The entry at `name`; where it is to be `alone`, only if its resource has no other variant.
  ///
  /// Without a turn of the resource: nobody has one, so whatever was asked for before is done, and what is asked for meanwhile
  /// may come first or second.
  func entryAtOnce(_ key: CacheKey, _ name: EntryName, alone: Bool) -> StoredEntry? {
    guard readsAtOnce.load(ordering: .relaxed),
      let size = index.size(of: name, alone: alone, folder.foreignChanges(at: clock.uptime)), size <= Self.limit,
      executor.isIdle(name.lane), let file = fileAtOnce(key, name)
    else { return nil }
    let now = now
    guard !isExpired(file.metadata), !isUseDue(file, at: now), !checksBodies || file.isBodyInMemoryWhole,
      let body = file.bodyInMemory(0..<file.bodyLength)
    else { return nil }
    index.used(name, size: nil, at: now)
    hit()
    return StoredEntry(key: key, metadata: file.metadata, body: ResourceBody(body))
  }

  private func fileAtOnce(_ key: CacheKey, _ name: EntryName) -> EntryFile? {
    folder.withPath(name) { path in
      do throws(SystemError) {
        return try EntryFile.findCached(path, expecting: key, folder.calls)
      } catch {
        // It is asked for once.
        if error.meansNoSuchCall { readsAtOnce.store(false, ordering: .relaxed) }
        return nil
      }
    }
  }
}
