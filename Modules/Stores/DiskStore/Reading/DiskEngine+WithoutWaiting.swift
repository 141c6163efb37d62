internal import CacheCore
internal import Synchronization

/// Hits on the caller's thread: reading bytes that the system has in memory is faster than waking another thread.
///
/// Nothing here waits or changes the disk. In any unusual case the result is `nil`, which means nothing, and a thread that may
/// wait does the lookup.
extension DiskEngine {
  /// The maximum size in bytes of a file read this way, because the caller's thread also verifies its checksums.
  private static let limit: Int64 = 65_536

  /// Returns the entry at `name`. If `alone` is true, it does so only if its resource has no other variant.
  ///
  /// It does not take the resource's turn. The turn is free, so earlier operations are done, and concurrent ones have no defined
  /// order.
  func entryWithoutWaiting(_ key: CacheKey, _ name: EntryName, alone: Bool) -> StoredEntry? {
    guard supportsNonblockingReads.load(ordering: .relaxed),
      surely(
        name.resource,
        {
          guard let entries = $0, let known = entries[name.member] else { return false }
          return known.size <= Self.limit && !(alone && entries.hasVariants)
        }), executor.isIdle(name.lane), let file = fileWithoutWaiting(key, name)
    else { return nil }
    let now = now
    guard !isExpired(file.metadata), !isUseDue(file, at: now), !checksBodies || file.isBodyInMemoryWhole,
      let body = file.bodyInMemory(0..<file.bodyLength)
    else { return nil }
    index.used(name, size: nil, at: now)
    hit()
    return StoredEntry(key: key, metadata: file.metadata, body: ResourceBody(body))
  }

  private func fileWithoutWaiting(_ key: CacheKey, _ name: EntryName) -> EntryFile? {
    let entries = index.folder
    return folder.withPath(name, from: entries) { path in
      do throws(SystemError) {
        return try EntryFile.findCached(path, in: entries, expecting: key, folder.calls)
      } catch {
        // An unsupported call is tried only once.
        if error.meansNoSuchCall { supportsNonblockingReads.store(false, ordering: .relaxed) }
        return nil
      }
    }
  }
}

extension DiskEngine {
  /// Whether memory alone shows that a resource has no transformed value. Unlike a lookup, this is not counted.
  func surelyLacksTransforms(of plain: EntryName) -> Bool {
    surely(plain.resource) { $0?.hasTransforms != true }
  }

  /// Returns the transformed values of a resource, without their bodies.
  func transforms(of resource: String, _ plain: EntryName) throws(CacheError) -> [ListedEntry] {
    folder.checkCounters(at: configuration.clock.uptime)
    let names: [EntryName]
    do throws(SystemError) {
      names = try folder.transformNames(of: plain)
    } catch {
      throw error.error("list the transforms", folder.path(plain))
    }
    var listed: [ListedEntry] = []
    for name in names {
      guard let file = try find(name, expecting: nil) else { continue }
      let key = file.key
      if key.resource == resource, !key.transform.isEmpty, isInPlace(key, name) {
        listed.append(ListedEntry(key: key, metadata: file.metadata))
      }
    }
    return listed
  }
}
