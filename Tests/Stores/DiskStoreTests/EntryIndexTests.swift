import CacheCore
import Testing

@testable import DiskStore

extension EntryIndex {
  fileprivate func lacks(_ name: EntryName, _ changes: FolderChanges?) -> Bool {
    changes.map { passes(name.resource, $0, leaseEnd: nil) { $0?[name.member] == nil } } ?? false
  }

  fileprivate func lacks(resource: NameDigest, _ changes: FolderChanges?) -> Bool {
    changes.map { passes(resource, $0, leaseEnd: nil) { $0 == nil } } ?? false
  }
}

@Suite("Disk store: the in-memory index")
struct EntryIndexTests {
  private let index = EntryIndex()
  private let key = SipHash.Key(first: 1, second: 2)
  private let quiet = FolderChanges(serial: 1, counts: .init(started: 5, finished: 5))
  private let now = Timestamp(seconds: 1)

  private func name(_ resource: String, variant: String = "", transform: String = "") -> EntryName {
    EntryName(CacheKey(resource: resource, variant: variant, transform: transform), hashKey: key)
  }

  private func use(_ size: Int64 = 10) -> EntryIndex.Use { EntryIndex.Use(size: size, last: now) }

  /// Makes a list that finds these entries.
  private func list(_ found: [EntryName], meanwhile: () -> Void = {}, then look: [EntryName: EntryIndex.Use] = [:]) {
    index.beginList()
    meanwhile()
    for name in index.endList(Dictionary(uniqueKeysWithValues: found.map { ($0, use()) })) { index.recordCheck(name, look[name]) }
    index.trust(since: quiet)
  }

  @Test("the size that a reader sees is recorded, because other caches may have appended to the file")
  func seenSize() {
    list([name("a"), name("a", variant: "v"), name("b")])
    index.used(name("a", variant: "v"), size: 522, at: now)
    // The variant is in a folder of its own.
    #expect(index.known.size == 542 + FileStatus.blockSize)
    index.used(name("c"), size: 99, at: now)
    #expect(index.known == (542 + FileStatus.blockSize, 3))
  }

  @Test("entries stored during the first list are evicted in their order, after those that the list found")
  func storedMeanwhile() {
    // Given
    let index = EntryIndex(LeastRecentlyUsed())
    let names = (0..<12).map { name("\($0)") }
    let old = name("old")

    // When
    index.beginList()
    for (second, name) in names.enumerated() { index.stored(name, size: 10, at: now + .seconds(second)) }
    for name in index.endList([old: use(), names[3]: use(), names[7]: use()]) { index.recordCheck(name, index.use(name)) }

    // Then
    #expect((0..<13).flatMap { _ in index.choose(1, most: 1).map(\.name) } == [old] + names)
  }

  @Test("an entry updated during the first list has the number of uses from the index file")
  func updatedMeanwhile() {
    // Given
    let index = EntryIndex(LeastFrequentlyUsed())
    let (often, once) = (name("often"), name("once"))
    let found = [
      often: EntryIndex.Use(size: 10, last: now, uses: 3), once: EntryIndex.Use(size: 10, last: now + .seconds(5), uses: 1),
    ]

    // When
    index.beginList()
    index.resized(often, size: 20, at: now + .seconds(1))
    for name in index.endList(found) { index.recordCheck(name, index.use(name)) }

    // Then
    #expect((0..<2).flatMap { _ in index.choose(1, most: 1).map(\.name) } == [once, often])
  }

  @Test("sparse files of any size count as the largest entry and are evicted like others", arguments: [true, false])
  func hugeFiles(first: Bool) {
    // Given
    if !first { list([name("a"), name("b")]) }
    let names = ["a", "b", "c"].map { name($0) }

    // When
    index.beginList()
    _ = index.endList(Dictionary(uniqueKeysWithValues: names.map { ($0, use(.max)) }))
    index.trust(since: quiet)
    index.used(names[0], size: .max, at: now)
    index.resized(names[1], size: .max, at: now)

    // Then
    #expect(index.known == (3 * IndexFile.sizeLimit, 3))
    #expect(index.choose(.max, most: 10).count == 3)
    for name in names { index.removed(name, since: index.version) }
    #expect(index.known == (0, 0))
  }

  @Test("the index is not reliable for an uncertain name until it is checked")
  func doubts() {
    list([])
    index.placing(name("a"))
    index.failedToPlace(name("a"))
    #expect(!index.lacks(name("a"), quiet))
    #expect(index.lacks(name("b"), quiet))
    #expect(index.snapshot(quiet) == nil)
    index.recordCheck(name("a"), nil)
    #expect(index.lacks(name("a"), quiet))
  }

  @Test("before the first list has ended, the index reports no entry as absent")
  func incomplete() {
    #expect(!index.lacks(name("a"), quiet))
    index.beginList()
    #expect(!index.lacks(name("a"), quiet))
    let again = index.endList([:])
    #expect(again.isEmpty)
    #expect(!index.lacks(name("a"), quiet), "the entries that changed during the list are not checked yet")
    index.trust(since: quiet)
    #expect(index.lacks(name("a"), quiet))
    index.close()
    #expect(!index.lacks(name("a"), quiet))
  }

  @Test(
    "the index reports no entry as absent if other caches have changed or are changing something",
    arguments: [
      nil, FolderChanges(serial: 1, counts: .init(started: 6, finished: 6)),
      FolderChanges(serial: 1, counts: .init(started: 6, finished: 5)),
      FolderChanges(serial: 2, counts: .init(started: 5, finished: 5)),
    ] as [FolderChanges?])
  func foreignChanges(changes: FolderChanges?) {
    list([name("b")])
    #expect(!index.lacks(name("a"), changes))
    #expect(!index.lacks(resource: name("a").resource, changes))
    #expect(index.lacks(name("a"), quiet))
  }

  @Test("a list that began during another cache's change is not trusted, even if the counters stay the same")
  func unquietList() {
    let unquiet = FolderChanges(serial: 1, counts: .init(started: 6, finished: 5))
    list([])
    index.trust(since: unquiet)
    #expect(!index.lacks(name("a"), unquiet))
  }

  @Test("an entry is not reported as absent from before its move until its removal")
  func ownStore() {
    list([])
    index.placing(name("a"))
    #expect(!index.lacks(name("a"), quiet))
    #expect(!index.lacks(resource: name("a").resource, quiet))
    #expect(index.lacks(name("b"), quiet))
    index.stored(name("a"), size: 10, at: now)
    #expect(!index.lacks(name("a"), quiet))
    index.removed(name("a"), since: index.version)
    #expect(index.lacks(name("a"), quiet))
    #expect(index.known == (0, 0))
  }

  @Test("a name whose move failed is uncertain until it is checked")
  func failedStore() {
    list([])
    index.placing(name("a"))
    index.failedToPlace(name("a"))
    #expect(!index.lacks(name("a"), quiet))
    index.placing(name("a", variant: "v"))
    index.stored(name("a", variant: "v"), size: 10, at: now)
    #expect(!index.lacks(name("a"), quiet), "another entry of the resource does not resolve it")
    list([name("a", variant: "v")], then: [name("a", variant: "v"): use()])
    #expect(index.lacks(name("a"), quiet))
    #expect(!index.lacks(resource: name("a").resource, quiet))
  }

  @Test("an entry that was missing may exist if a list has ended since")
  func oldLook() {
    list([])
    let version = index.version
    // Another process stores the entry now, and the list finds it.
    list([name("a")])
    index.removed(name("a"), since: version)
    #expect(!index.lacks(name("a"), quiet))
    #expect(index.sum(quiet) == nil)
  }

  @Test("an entry stored or removed during a list is checked again, whatever the list found", arguments: [true, false])
  func duringList(isThere: Bool) {
    list([name("a"), name("b")])
    list(
      isThere ? [name("a"), name("b")] : [name("b")],
      meanwhile: {
        index.stored(name("a"), size: 20, at: now)
        index.removed(name("a"), since: index.version)
      }, then: isThere ? [name("a"): use(30)] : [:])
    #expect(index.lacks(name("a"), quiet) == !isThere)
    #expect(index.sum(quiet)?.size == (isThere ? 40 : 10))
    #expect(index.sum(quiet)?.count == (isThere ? 2 : 1))
  }

  @Test("an abandoned list changes nothing")
  func abandonedList() {
    list([name("a")])
    index.beginList()
    index.stored(name("b"), size: 10, at: now)
    index.abandonList()
    #expect(!index.lacks(name("a"), quiet) && !index.lacks(name("b"), quiet) && index.lacks(name("c"), quiet))
  }

  @Test("a resource with a variant or a transform is not absent, but its other names are")
  func members() {
    list([name("a", variant: "v"), name("b", transform: "f"), name("c")])
    for resource in ["a", "b", "c"] { #expect(!index.lacks(resource: name(resource).resource, quiet)) }
    #expect(
      index.lacks(name("a"), quiet) && index.lacks(name("a", transform: "v"), quiet)
        && index.lacks(name("c", variant: "v"), quiet))
    index.removed(name("a", variant: "v"), since: index.version)
    #expect(index.lacks(resource: name("a").resource, quiet))
    #expect(index.known == (20 + FileStatus.blockSize, 2))
  }

  @Test("after all entries were removed, none is reported as absent before the next list")
  func removedAll() {
    list([name("a")])
    index.removedAll()
    #expect(!index.lacks(name("a"), quiet))
    #expect(index.known == (0, 0))
  }

  @Test("stores of a tenth of the limit cause a list if the changes by other caches are unknown")
  func listAfterStores() {
    list([])
    index.stored(name("a"), size: 99, at: Timestamp(seconds: 1))
    #expect(!index.wantsList(limit: 1_000, nil))
    index.stored(name("b"), size: 1, at: Timestamp(seconds: 1))
    #expect(index.wantsList(limit: 1_000, nil) && !index.wantsList(limit: 1_000, quiet))
  }

  @Test("misses that read the file system cause one list once they have cost as much as it")
  func listAfterMisses() {
    let changed = FolderChanges(serial: 1, counts: .init(started: 6, finished: 6))
    list((0..<100).map { name("\($0)") })
    for _ in 0..<200 { #expect(!index.wantsListAfterMiss(quiet)) }
    for _ in 0..<200 { #expect(!index.wantsListAfterMiss(FolderChanges(serial: 1, counts: .init(started: 7, finished: 6)))) }
    for _ in 0..<99 { #expect(!index.wantsListAfterMiss(changed)) }
    #expect(index.wantsListAfterMiss(changed))
    #expect(!index.wantsListAfterMiss(changed))
  }
}
