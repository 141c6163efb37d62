internal import CacheCore
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The state that a disk cache shares with its writers and bodies. Every method blocks and runs in the executor's lanes.
final class DiskEngine: Sendable {
  let folder: StoreFolder
  let executor: IOExecutor
  let configuration: DiskCache.Configuration
  let clock: any CacheClock
  let checksBodies: Bool
  let index: EntryIndex
  let indexFile = Lock(IndexFileState())
  let startupGate = StartupGate()
  private let counted = Lock(DiskCounters())
  // Separate from the other counters, because every lookup increments one of them.
  private let hits = Atomic<Int>(0)
  private let misses = Atomic<Int>(0)
  /// Whether the system is believed to support reads of cached pages that never wait.
  let supportsNonblockingReads = Atomic<Bool>(true)
  private let isTrimming = Atomic<Bool>(false)
  private let isEvictingAfterDiskFull = Atomic<Bool>(false)

  init(_ path: String, _ configuration: DiskCache.Configuration, _ calls: FileCalls) throws(CacheError) {
    folder = try StoreFolder(path, calls, syncsFolders: configuration.durability == .fileAndFolder)
    self.configuration = configuration
    (clock, checksBodies) = (configuration.clock, configuration.checksBodies)
    index = EntryIndex(configuration.eviction, limit: configuration.sizeLimit)
    let folder = folder
    let gate = folder.suspension.map { system, flag in
      SuspensionGate(system, flag, handBack: { folder.handBackLocks() }, take: { folder.takeLocks() })
    }
    executor = IOExecutor(
      width: configuration.ioWidth,
      bounds: .init(count: configuration.pendingLimit, bytes: configuration.pendingSizeLimit), path: folder.root, gate: gate)
  }

  deinit { indexFile.withLock { $0.watch?.cancel() } }

  var counters: DiskCounters {
    var counters = counted.withLock { $0 }
    counters.hits = hits.load(ordering: .relaxed)
    counters.misses = misses.load(ordering: .relaxed)
    return counters
  }

  func count(_ change: (inout DiskCounters) -> Void) { counted.withLock { change(&$0) } }

  var now: Timestamp { clock.now }

  /// Whether the system can suspend the process, so that jobs only read.
  var isSuspended: Bool { folder.calls.isSuspended }

  // MARK: Reading

  /// Returns the entry's file if it is intact apart from its body, which is not checked here. A damaged or expired file is
  /// removed.
  func find(_ name: EntryName, expecting key: CacheKey?) throws(CacheError) -> EntryFile? {
    let version = index.version
    switch look(name, expecting: key) {
    case .entry(let file):
      guard isExpired(file.metadata) else { return file }
      if case .removed = remove(name, ifStill: file.status.identity) { count { $0.evictions[.expired, default: 0] += 1 } }
      return nil
    case .nothing:
      if index.use(name) != nil { forgetIndexFile() }
      index.removed(name, since: version)
      return nil
    case .otherKey, .newer: return nil
    case .damaged(_, let identity):
      discardDamaged(name, identity)
      return nil
    // The process that has the lock may be suspended in the middle of an append.
    case .failed(.wouldBlock): return nil
    case .failed(let error): throw error.error("open an entry", folder.path(name))
    }
  }

  private func look(_ name: EntryName, expecting key: CacheKey?) -> EntryFile.Finding {
    if let entries = surely(name.resource, { $0 != nil }) ? index.folder : nil {
      let found = folder.withPath(name, from: entries) { EntryFile.find($0, in: entries, expecting: key, folder.calls) }
      // The folder may have been deleted and created again.
      if case .nothing = found {} else { return found }
    }
    return folder.withPath(name) { EntryFile.find($0, expecting: key, folder.calls) }
  }

  func open(_ key: CacheKey, _ name: EntryName, _ range: Range<Int64>?) throws(CacheError) -> StoredEntry? {
    try opened(key, name, range)?.entry
  }

  /// Opens an entry, and returns its file too.
  func opened(
    _ key: CacheKey, _ name: EntryName, _ range: Range<Int64>?
  ) throws(CacheError) -> (entry: StoredEntry, file: EntryFile)? {
    folder.checkCounters(at: clock.uptime)
    guard let file = try find(name, expecting: key), let entry = entry(file, key, name, range) else {
      miss()
      return nil
    }
    hit()
    return (entry, file)
  }

  /// Returns the entry in a file that was found, or `nil` if its body is in memory and damaged.
  private func entry(_ file: EntryFile, _ key: CacheKey, _ name: EntryName, _ range: Range<Int64>?) -> StoredEntry? {
    guard !checksBodies || file.isBodyInMemoryWhole else {
      discardDamaged(name, file.status.identity)
      return nil
    }
    use(name, file)
    let wanted = (range ?? 0..<file.bodyLength).clamped(to: 0..<file.bodyLength)
    let body = file.bodyInMemory(wanted).map { ResourceBody($0) } ?? body(of: file, wanted, name)
    return StoredEntry(key: key, metadata: file.metadata, body: body)
  }

  func hit() { hits.add(1, ordering: .relaxed) }

  private func miss() {
    misses.add(1, ordering: .relaxed)
    if index.wantsListAfterMiss(folder.foreignChangesWithoutWaiting) { executor.start(.maintenance) { [self] in try? list() } }
  }

  /// Whether a test of a resource's entries in the index succeeds and its result is certain.
  func surely(_ resource: NameDigest, _ isTrue: (ResourceEntries?) -> Bool) -> Bool {
    // Neither the clock nor the counters, which need a system call, are read if the test fails.
    guard let leaseEnd = index.leaseEnd(of: resource, ifTrue: isTrue) else { return false }
    let start = SystemClock().uptime
    if start < leaseEnd { return true }
    guard let (changes, isLeased) = folder.foreignChanges(at: clock.uptime) else { return false }
    return index.passes(resource, changes, leaseEnd: isLeased ? start + Generation.lease : nil, isTrue)
  }

  /// Whether memory alone shows that there is no entry. If so, the lookup counts as a miss.
  func surelyLacks(_ name: EntryName) -> Bool {
    guard surely(name.resource, { $0?[name.member] == nil }) else { return false }
    misses.add(1, ordering: .relaxed)
    return true
  }

  /// Whether memory alone shows that a resource has no entry. If so, the lookup counts as a miss.
  func surelyLacks(resource: NameDigest) -> Bool {
    guard surely(resource, { $0 == nil }) else { return false }
    misses.add(1, ordering: .relaxed)
    return true
  }

  func variants(of resource: String, _ plain: EntryName) throws(CacheError) -> [StoredEntry] {
    folder.checkCounters(at: clock.uptime)
    var found: [StoredEntry] = []
    let key = CacheKey(resource: resource)
    if let file = try find(plain, expecting: key), let entry = entry(file, key, plain, nil) { found.append(entry) }
    let others: [EntryName]
    do throws(SystemError) {
      others = try folder.variantNames(of: plain)
    } catch {
      throw error.error("list the variants", folder.path(plain))
    }
    for name in others {
      guard let file = try find(name, expecting: nil) else { continue }
      let key = file.key
      if key.resource == resource, isInPlace(key, name), let entry = entry(file, key, name, nil) { found.append(entry) }
    }
    if found.isEmpty { miss() } else { hit() }
    return found
  }

  /// Whether a file that was found without a given key is stored under its own key's name. A file moved here may have been
  /// replaced at its proper place since.
  func isInPlace(_ key: CacheKey, _ name: EntryName) -> Bool { EntryName(key, hashKey: folder.key) == name }

  func isExpired(_ metadata: StoredMetadata) -> Bool {
    let deadline = (metadata.expiration ?? configuration.expiration).deadline(from: metadata.responseTime)
    return deadline != .distantFuture && deadline <= now
  }

  /// Records a use in memory, and in the file at most once a minute.
  private func use(_ name: EntryName, _ file: EntryFile) {
    let now = now
    index.used(name, size: file.status.allocatedSize, at: now)
    guard isUseDue(file, at: now), !isSuspended, folder.isWritable else { return }
    file.descriptor.setModified(now)
    folder.noteUse()
  }

  /// Whether a use at `now` has to be recorded in the file.
  func isUseDue(_ file: EntryFile, at now: Timestamp) -> Bool {
    let (since, overflows) = now.nanoseconds.subtractingReportingOverflow(file.status.modified.nanoseconds)
    return overflows || since.magnitude >= 60_000_000_000
  }

  // MARK: Changing

  /// Removes a damaged file unless another one has replaced it.
  func discardDamaged(_ name: EntryName, _ identity: FileStatus.Identity?) {
    count { $0.damaged += 1 }
    guard let identity else { return }
    remove(name, ifStill: identity)
  }

  @discardableResult
  func remove(_ name: EntryName, ifStill identity: FileStatus.Identity? = nil) -> StoreFolder.Removal {
    let version = index.version
    let removal = folder.remove(name, ifStill: identity)
    switch removal {
    case .removed:
      index.removed(name, since: version)
      noteChange()
    case .absent: if identity == nil { index.removed(name, since: version) }
    case .failed: count { $0.failedRemovals += 1 }
    }
    return removal
  }

  func remove(_ key: CacheKey, _ name: EntryName, ifRevision revision: Revision?) throws(CacheError) {
    var identity: FileStatus.Identity?
    if let revision {
      try requireWritable()
      switch EntryFile.find(folder.path(name), expecting: key, folder.calls) {
      case .entry(let file) where file.header.revision == revision: identity = file.status.identity
      case .failed(let error): throw error.error("open an entry", folder.path(name))
      // An entry that is damaged or belongs to another key does not have that revision.
      case .entry, .nothing, .otherKey, .newer, .damaged: return
      }
    }
    if case .failed(let error) = remove(name, ifStill: identity) {
      // A read-only folder is the more useful error. It is checked only after a failure, to save a system call.
      try requireWritable()
      throw error.error("remove an entry", folder.path(name))
    }
  }

  /// Removes entries, whose names must be ordered by shard. The removals in one shard count as one change in the folder's
  /// counters.
  ///
  /// - Returns: The entries that could not be removed, or whose resource has another operation in progress. Remove them one by
  ///   one in their lanes. A single removal reports the error.
  func remove(_ names: some Collection<EntryName>) -> [EntryName] {
    guard (try? folder.prepareToWrite()) != nil else { return Array(names) }
    var left: [EntryName] = []
    var rest = names[...]
    while !isSuspended, let shard = rest.first?.shardNumber {
      let part = rest.prefix { $0.shardNumber == shard }
      rest = rest.dropFirst(part.count)
      left += folder.change { remove(part, from: shard) }
    }
    left += rest
    if left.count < names.count { noteChange() }
    return left
  }

  private func remove(_ names: some Collection<EntryName>, from shard: UInt8) -> [EntryName] {
    executor.inFreeTurns(Set(names.lazy.map(\.lane))) { turns in
      let version = index.version
      // Opened in these turns, because a store may create the folder again after its removal.
      let shard = folder.shardFolder(shard)
      var (gone, left): ([EntryName], [EntryName]) = ([], [])
      for name in names {
        let isGone = turns.contains(name.lane) && folder.remove(name, in: shard).isGone
        if isGone { gone.append(name) } else { left.append(name) }
      }
      index.removed(gone, since: version)
      return left
    }
  }

  func removeAll() throws(CacheError) {
    try requireWritable()
    // Before, because lookups must not use the folder that is moved away once a store has put an entry into the new one.
    index.removingAll()
    // The list makes the index reliable again. A folder that cannot be listed now is listed when the index is next needed.
    defer { try? list() }
    try folder.removeAll()
    index.removedAll()
  }

  /// - Parameter checksAgain: Whether to check with the system even if the folder was writable at the last check.
  func requireWritable(checksAgain: Bool = true) throws(CacheError) {
    // Outside a job, the locks may be handed back until the next one.
    if checksAgain, isSuspended { throw SystemError.suspended.error("change the store", folder.root) }
    guard checksAgain ? folder.isWritable : folder.isProbablyWritable else {
      throw CacheError(.readOnly, reason: "the folder is not writable", path: folder.root, errno: SystemError.readOnly.number)
    }
  }

  /// Appends a metadata record to the entry if it has the given revision. With `nil`, any revision matches. Returns `false` if
  /// there is no such entry.
  ///
  /// - Parameter change: Returns the new metadata for the stored metadata.
  func updateMetadata(
    _ key: CacheKey, _ name: EntryName, ifRevision revision: Revision?, _ change: (StoredMetadata) -> StoredMetadata
  ) throws(CacheError) -> Bool {
    try requireWritable()
    let path = folder.path(name)
    let outcome: Appending
    do throws(SystemError) {
      outcome = try append(name, key, revision, change)
    } catch {
      if [.notFound, .notAFolder, .isLink].contains(error) { return false }
      let failure = error.error("append metadata", path)
      if failure.code == .diskFull { evictAfterDiskFull() }
      throw failure
    }
    guard outcome != .tooLarge else {
      throw CacheError(.entryTooLarge, reason: "the metadata is larger than \(MetadataRecord.payloadLimit) bytes", path: path)
    }
    return outcome == .appended
  }

  private enum Appending { case appended, gone, tooLarge }

  private func append(
    _ name: EntryName, _ key: CacheKey, _ revision: Revision?, _ change: (StoredMetadata) -> StoredMetadata
  ) throws(SystemError) -> Appending {
    let path = folder.path(name)
    try folder.requireFolders(of: name)
    let descriptor = try FileDescriptor(path, .readAndWrite)
    // Other processes, and other caches of this process, append to the same log.
    try descriptor.waitForLock(folder.calls)
    defer { descriptor.unlock() }
    switch try EntryFile.read(descriptor, expecting: key, folder.calls) {
    case .entry(let file):
      guard revision == nil || file.header.revision == revision else { return .gone }
      guard let size = try append(change(file.metadata), to: file) else { return .tooLarge }
      // If the file was replaced or removed meanwhile, no reader will see the record.
      guard try FileStatus(path: path).identity == file.status.identity else { return .gone }
      let total = index.resized(name, size: FileStatus.allocatedSize(of: size), at: now)
      forgetIndexFile()
      if total > configuration.sizeLimit ?? .max { startTrimming() }
      return .appended
    case .damaged(_, let identity):
      discardDamaged(name, identity)
      return .gone
    case .nothing, .otherKey, .newer: return .gone
    case .failed(let error): throw error
    }
  }

  /// Returns the size of the file afterwards in bytes, or `nil` if the metadata is too large.
  private func append(_ metadata: StoredMetadata, to file: EntryFile) throws(SystemError) -> Int64? {
    var metadata = metadata
    metadata.revision = file.header.revision
    metadata.bodyLength = file.bodyLength
    let payload = metadata.encoded()
    guard payload.count <= MetadataRecord.payloadLimit else { return nil }
    let start = Int64(file.header.metadataOffset)
    let slot = Int64(MetadataRecord.slot)
    let place = MetadataArea.place(
      slots: MetadataRecord.slots(payload: payload.count), after: file.newest,
      areaSlots: Int((file.status.size - start + slot - 1) / slot))
    if place.wantsBarrier, configuration.durability != .none { try folder.calls.synchronize(file.descriptor) }
    forgetIndexFile()
    let record = MetadataRecord.encoded(sequence: place.sequence, revision: file.header.revision, payload: payload)
    let offset = start + Int64(place.firstSlot) * slot
    try folder.calls.writeAll(file.descriptor, record, at: offset)
    file.descriptor.setModified(now)
    folder.noteUse()
    return max(file.status.size, offset + Int64(record.count))
  }

  // MARK: Size

  /// Moves a file of `size` bytes into place with `move`, and counts it.
  func place(_ name: EntryName, size: Int64, _ move: () throws(CacheError) -> Void) throws(CacheError) {
    index.placing(name)
    do throws(CacheError) {
      try move()
    } catch {
      index.failedToPlace(name)
      throw error
    }
    count { $0.writes += 1 }
    let total = index.stored(name, size: FileStatus.allocatedSize(of: size), at: now)
    noteChange()
    guard let limit = configuration.sizeLimit else { return }
    if total > limit || index.wantsList(limit: limit, folder.foreignChanges) { startTrimming() }
  }

  /// Enforces the size limit in the background. A pass that has not begun yet covers this call too.
  func startTrimming() {
    guard !isTrimming.exchange(true, ordering: .acquiringAndReleasing) else { return }
    executor.start(.maintenance) { [self] in
      _ = isTrimming.exchange(false, ordering: .acquiringAndReleasing)
      enforceLimit()
    }
  }

  /// Evicts a tenth of the cache in the background after the disk was found full, so that later stores succeed.
  func evictAfterDiskFull() {
    count { $0.fullDisk += 1 }
    guard !isEvictingAfterDiskFull.exchange(true, ordering: .acquiringAndReleasing) else { return }
    executor.start(.maintenance) { [self] in
      _ = isEvictingAfterDiskFull.exchange(false, ordering: .acquiringAndReleasing)
      evictTenth()
    }
  }
}
