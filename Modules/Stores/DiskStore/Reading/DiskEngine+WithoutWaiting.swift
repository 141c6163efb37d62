internal import CacheCore
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Hits on the caller's thread: reading bytes that the system has in memory is faster than waking another thread.
///
/// Nothing here waits or changes the disk. In any unusual case the result is `nil`, which means nothing, and a thread that may
/// wait does the lookup.
extension DiskEngine {
  /// The maximum number of bytes that are returned this way, because the caller's thread also verifies their checksums. The
  /// blocks that contain them may have one block more.
  private static let limit: Int64 = 65_536
  /// The maximum size in bytes of a file that is opened this way. It has 32 KiB of checksums, which are read at once.
  private static let fileLimit: Int64 = 1 << 29

  /// Returns the entry at `name`.
  ///
  /// It does not take the resource's turn. The turn is free, so earlier operations are done, and concurrent ones have no defined
  /// order.
  ///
  /// - Parameters:
  ///   - range: The bytes of the body, or `nil` for all of them.
  ///   - alone: Whether the entry is returned only if its resource has no other variant.
  ///   - requiresBody: Whether the entry is returned only with its body in memory. A large body is read later.
  func entryWithoutWaiting(
    _ key: CacheKey, _ name: EntryName, _ range: Range<Int64>? = nil, alone: Bool, requiresBody: Bool = false
  ) -> StoredEntry? {
    guard supportsNonblockingReads.load(ordering: .relaxed),
      surely(
        name.resource,
        {
          guard let entries = $0, let known = entries[name.member] else { return false }
          // A file of another size is either read as a whole by one call, and has many checksums to verify, or has a long table.
          let isLarge = EntryFile.wholeLimit < known.size && known.size <= Self.fileLimit
          return (known.size <= Self.limit || isLarge && !requiresBody) && !(alone && entries.hasVariants)
        }), executor.isIdle(name.lane), let file = fileWithoutWaiting(key, name)
    else { return nil }
    let now = now
    guard !isExpired(file.metadata), !isUseDue(file, at: now), !checksBodies || file.isBodyInMemoryWhole else { return nil }
    let wanted = (range ?? 0..<file.bodyLength).clamped(to: 0..<file.bodyLength)
    let known = file.bodyInMemory(wanted)
    // Another process may have stored a large body since the index was read.
    guard known != nil || !requiresBody else { return nil }
    let body = known.map { ResourceBody($0) } ?? body(of: file, wanted, name)
    index.used(name, size: nil, at: now)
    hit()
    return StoredEntry(key: key, metadata: file.metadata, body: body)
  }

  /// Returns a short rest of a body if the system has it in memory and it is not damaged.
  func readWithoutWaiting(_ file: EntryFile, _ range: Range<Int64>) -> Data? {
    guard range.upperBound - range.lowerBound <= Self.limit, supportsNonblockingReads.load(ordering: .relaxed) else { return nil }
    return try? file.chunk(range, checks: checksBodies, folder.calls.readCached)
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
