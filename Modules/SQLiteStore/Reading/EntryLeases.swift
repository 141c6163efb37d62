#if SQLite
internal import CacheCore

/// The entries whose bytes this process still reads or writes. They stay even if the entry is replaced or removed here.
final class EntryLeases: Sendable {
  struct EntryIdentity: Hashable, Sendable {
    private let opening: ObjectIdentifier
    let entry: Int64

    init(_ opening: DatabaseFile.Opening, _ entry: Int64) {
      self.opening = ObjectIdentifier(opening)
      self.entry = entry
    }

    func isIn(_ opening: DatabaseFile.Opening) -> Bool { self.opening == ObjectIdentifier(opening) }
  }

  /// A lease that protects an entry's bytes for its lifetime.
  final class EntryLease: Sendable {
    let opening: DatabaseFile.Opening
    let entry: Int64
    private let leases: EntryLeases

    fileprivate init(_ opening: DatabaseFile.Opening, _ entry: Int64, _ leases: EntryLeases) {
      (self.opening, self.entry, self.leases) = (opening, entry, leases)
      leases.counts.withLock { $0[EntryIdentity(opening, entry), default: 0] += 1 }
    }

    deinit {
      leases.counts.withLock { counts in
        let identity = EntryIdentity(opening, entry)
        let left = (counts[identity] ?? 1) - 1
        counts[identity] = left > 0 ? left : nil
      }
    }
  }

  private let counts = Lock<[EntryIdentity: Int]>([:])

  func lease(_ opening: DatabaseFile.Opening, _ entry: Int64) -> EntryLease { EntryLease(opening, entry, self) }

  func entries(in opening: DatabaseFile.Opening) -> Set<Int64> {
    counts.withLock { counts in Set(counts.keys.filter { $0.isIn(opening) }.map(\.entry)) }
  }
}
#endif
