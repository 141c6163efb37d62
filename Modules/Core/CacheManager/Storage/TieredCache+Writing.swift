internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Changes the stores. An older response never replaces a later one, a removed response never returns, and the layers never
/// contradict each other.
extension TieredCache {
  /// Whether the request has a memory store and may write to it.
  private var writesMemory: Bool { request.writes.contains(.memory) }
  private var writableMemory: MemoryTier? { writesMemory ? request.memory.map(MemoryTier.init) : nil }
  private var writableDisk: (any CacheStore)? { request.writes.contains(.disk) ? request.store : nil }

  /// Registers a response whose head has arrived, so that it does not replace a later one.
  ///
  /// - Returns: `nil` if the request has no durable store. Memory compares the times of the responses in each of its steps.
  func ticket(for candidate: Candidate) -> CommitOrder.Ticket? {
    request.hasStore ? request.store.map { ticket(for: candidate, in: $0) } : nil
  }

  func ticket(for candidate: Candidate, in store: any CacheStore) -> CommitOrder.Ticket {
    request.commitOrder.ticket(
      for: candidate.key, candidate.metadata.responseTime, isFromCaller: request.isFromCaller, in: store.id)
  }

  /// Runs a change of the durable store, and waits for it until the deadline. A removal must happen, so it is not run with this
  /// method.
  ///
  /// - Returns: `nil` if the change has not ended, or was not begun because too many others have not ended.
  func change<Value: Sendable>(_ key: CacheKey, _ change: @escaping @Sendable () async -> Value) async -> Value? {
    guard !request.isStoreOverloaded else {
      request.observe(.storeFailed(key: key, error: .overloadedStore))
      return nil
    }
    return await request.writeDeadline.wait(request, for: change)
  }

  /// Whether entries of the resource may have been removed since the request began its lookup.
  var isBehindRemovals: Bool { request.invalidations.mayHaveRemoved(resource, since: logPosition) }

  /// Puts content that was read from disk into memory.
  func promote(_ content: Content, _ candidate: Candidate) {
    guard content.source == .disk, content.data != nil || content.isBodyLeft, !candidate.isPartUnderKeyOfWhole else { return }
    storeInMemory(content.data, candidate) { _ in !isBehindRemovals && !isBehindCommits }
  }

  /// Puts bytes and metadata into memory. The metadata is stored even if the bytes are refused, because it replaces that of an
  /// older response.
  ///
  /// - Parameters:
  ///   - data: The body, or `nil` if it stays in the durable store.
  ///   - isNew: Whether memory does not have these bytes yet.
  ///   - isAllowed: Called with the current metadata in memory.
  private func storeInMemory(
    _ data: Data?, _ candidate: Candidate, isNew: Bool = true, if isAllowed: (StoredMetadata?) -> Bool
  ) {
    guard let memory = writableMemory else { return }
    let key = candidate.key
    guard request.destination.includesMemory else {
      return recordAlone(candidate, in: memory) { $0 != nil && isAllowed($0) }
    }
    guard let record = putRecord(candidate, in: memory, if: isAllowed) else { return }
    // The value of a transform is found by the metadata, even without the original.
    guard let data, request.cachesOriginal || !request.isResult(candidate.metadata.response) else {
      return removeFormerBytes(memory, candidate)
    }
    if memory.insert(data, cost: data.count, of: key, in: record, request.clock), isNew {
      request.observe(.stored(key: key, layer: .memory, bytes: Int64(data.count), duration: .zero))
    }
  }

  /// Records the metadata of a response whose bytes are not stored in memory.
  private func recordAlone(_ candidate: Candidate, in memory: MemoryTier, if isAllowed: (StoredMetadata?) -> Bool) {
    if putRecord(candidate, in: memory, if: isAllowed) != nil { removeFormerBytes(memory, candidate) }
  }

  /// Removes the bytes of an earlier response, which no lookup finds any more.
  private func removeFormerBytes(_ memory: MemoryTier, _ candidate: Candidate) {
    guard let former = memory.store.entry(for: candidate.key)?.revision, former != candidate.metadata.revision else { return }
    memory.store.remove(candidate.key, ifRevision: former)
  }

  /// Puts a new response into memory, even before a slow durable store has committed it, so that the next request need not wait.
  ///
  /// - Parameter data: The body, or `nil` if memory does not accept it. The earlier response is then removed from memory.
  func storeNew(_ data: Data?, _ candidate: Candidate) {
    if let data, writesMemory {
      storeInMemory(data, candidate) { _ in true }
    } else if !request.hasStore {
      // Without a durable store, the metadata in memory refuses earlier responses. Lookups ignore it without its body. The
      // response of a request that may not write to memory replaces one that is there, and leaves nothing if there is none.
      let mayAdd = writesMemory
      if let memory = request.memory { recordAlone(candidate, in: MemoryTier(store: memory)) { $0 != nil || mayAdd } }
    } else if let memory = writableMemory {
      recordAlone(candidate, in: memory) { $0 != nil }
    }
  }

  /// Stores an original in the durable store that was not wanted when its head arrived.
  @inline(never)
  func storeOriginal(_ data: Data, _ candidate: Candidate) async -> StoredMetadata? {
    guard surviving(candidate) != nil, let writer = try? await writer(candidate) else { return nil }
    do throws(CacheError) {
      let start = request.observationStart
      try await writer.write(data)
      let committed = try await writer.commit(trailers: nil)
      request.observeStored(candidate.key, Int64(data.count), since: start)
      return committed
    } catch {
      writer.abort()
      request.observe(.storeFailed(key: candidate.key, error: error))
      return nil
    }
  }

  /// Stores a new response in memory, and prevents every layer from serving the earlier one.
  ///
  /// - Parameters:
  ///   - data: The body, or `nil` if memory does not accept it.
  ///   - candidate: The response.
  ///   - ticket: The ticket of the response, which has entered.
  ///   - isOnDisk: Whether the durable store has committed the response.
  ///   - outdated: Other responses that the new one replaces.
  ///   - known: The responses that were stored when the request was sent.
  func store(
    _ data: Data?, _ candidate: Candidate, _ ticket: CommitOrder.Ticket?, isOnDisk: Bool, replacing outdated: [Candidate],
    known: [Candidate]
  ) async {
    // A load that read the durable store before does not put what it found into memory, and compares its response with this one
    // before it stores it.
    if isOnDisk { request.commitOrder.noteCommit(of: resource) }
    replaceInMemory(data, candidate)
    if !isOnDisk, mayBeOnDisk(candidate.key, known) || ticket?.followsAnother == true, let other = request.store {
      await remove(candidate.key, ifRevision: nil, from: other)
    }
    await drop(replaced(by: candidate, isStored: isOnDisk || data != nil, of: outdated))
    // A request of an HTTP caller makes no transforms. If it found nothing, it does not look for any.
    if !request.destination.isStream || !known.isEmpty { await dropTransforms(outdatedBy: candidate) }
    await applyPurge(to: candidate)
  }

  /// Like ``store(_:_:_:isOnDisk:replacing:known:)``, for a request without a durable store.
  ///
  /// It needs no order: each of its steps leaves a later response in memory as it is. Of responses that arrived at the same time,
  /// one that is stored after another replaces it. If their steps overlap, perhaps neither is found. A body is used only with the
  /// metadata of its own response.
  func storeInMemory(_ data: Data?, _ candidate: Candidate, replacing outdated: [Candidate]) {
    replaceInMemory(data, candidate)
    if !outdated.isEmpty { forgetInMemory(replaced(by: candidate, isStored: data != nil, of: outdated)) }
    applyPurgeInMemory(to: candidate)
  }

  /// Returns those of the outdated entries that a response replaces. If its body is stored nowhere, parts of the same state stay.
  private func replaced(by candidate: Candidate, isStored: Bool, of outdated: [Candidate]) -> [Candidate] {
    let others = outdated.filter { $0.key != candidate.key }
    let fields = candidate.metadata.response.headerFields
    guard !isStored, let validator = RangeValidator(fields, now: candidate.metadata.responseTime) else { return others }
    return others.filter { other in
      let response = other.metadata.response
      return response.status != .partialContent || !validator.isConfirmed(by: response.headerFields)
        || response.headerFields[.contentEncoding] != fields[.contentEncoding]
    }
  }

  private func replaceInMemory(_ data: Data?, _ candidate: Candidate) {
    storeNew(data, candidate)
    let isPurged = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) == .hard
    guard !writesMemory || isPurged, let memory = request.memory else { return }
    MemoryTier(store: memory).forget(candidate.key.variant, of: resource, replacedBy: candidate.metadata, request.clock)
  }

  /// Whether the durable store may have had an earlier response at the lookup.
  ///
  /// A lookup that failed does not count. A process without descriptors would otherwise remove every entry that it cannot read.
  private func mayBeOnDisk(_ key: CacheKey, _ known: [Candidate]) -> Bool {
    known.contains { $0.key == key } || !request.reads.contains(.disk)
  }

  /// Removes the responses that a new one replaces from the durable store, if that store does not accept the new one.
  ///
  /// An earlier response whose commit has not ended is removed after it. A later response is stored after the removal.
  func removeReplaced(
    by candidate: Candidate, _ ticket: CommitOrder.Ticket, _ outdated: [Candidate], known: [Candidate]
  ) async {
    guard let store = request.store else { return }
    let (key, isKnown) = (candidate.key, mayBeOnDisk(candidate.key, known))
    _ = await request.writeDeadline.wait(request) {
      guard await ticket.enter() else { return }
      defer { ticket.leave() }
      guard isKnown || ticket.followsAnother else { return }
      await remove(key, ifRevision: nil, from: store)
      await dropTransforms(outdatedBy: candidate)
    }
    await drop(replaced(by: candidate, isStored: false, of: outdated))
  }

  /// Replaces the metadata after a 304. The body stays unchanged.
  ///
  /// The durable store comes first. Memory gets the metadata if it has the same body, or if it has none and the durable store has
  /// that body.
  ///
  /// - Parameters:
  ///   - content: The confirmed body.
  ///   - ticket: The ticket of the 304, or `nil` without a durable store.
  func confirm(_ candidate: Candidate, _ content: Content, _ ticket: CommitOrder.Ticket?) async {
    let revision = candidate.metadata.revision
    let isChanged = await changeMetadata(candidate, ticket) { candidate, isOnDisk in
      confirmInMemory(candidate, content) { known in
        // The metadata of another body, or later metadata of this one, stays. An entry that is still in memory was not removed,
        // even if other entries were.
        known.map { $0.revision == revision } ?? (isOnDisk && !isBehindRemovals)
      }
    }
    if isChanged { request.observe(.revalidated(key: candidate.key)) }
  }

  /// Replaces the metadata of a stored response in every layer that has it.
  func update(_ candidate: Candidate) async {
    _ = await changeMetadata(candidate, ticket(for: candidate)) { candidate, _ in updateInMemory(candidate) }
  }

  /// Replaces metadata in the durable store and then in memory, under the ticket of a response. If the store is too slow, memory
  /// does not wait for it.
  ///
  /// - Parameter changeMemory: Changes memory. Its parameter states whether the durable store has an entry of that revision.
  /// - Returns: `false` if a purge has removed the response.
  private func changeMetadata(
    _ candidate: Candidate, _ ticket: CommitOrder.Ticket?, inMemory changeMemory: @escaping @Sendable (Candidate, Bool) -> Void
  ) async -> Bool {
    guard let candidate = surviving(candidate) else { return false }
    if let ticket {
      let ended: Void? = await change(candidate.key) {
        guard await ticket.enter() else { return }
        defer { ticket.leave() }
        var isOnDisk = false
        if let disk = writableDisk { isOnDisk = await refresh(candidate, on: disk) == true }
        changeMemory(candidate, isOnDisk)
        await applyPurge(to: candidate)
      }
      guard ended == nil, !ticket.isSuperseded else { return true }
    }
    changeMemory(candidate, false)
    if ticket == nil { applyPurgeInMemory(to: candidate) }
    return true
  }

  private func confirmInMemory(_ candidate: Candidate, _ content: Content, if isAllowed: (StoredMetadata?) -> Bool) {
    if !candidate.isPartUnderKeyOfWhole, content.data != nil || content.isBodyLeft || !request.destination.isStream {
      storeInMemory(content.data, candidate, isNew: content.source != .memory, if: isAllowed)
    } else {
      // The body streams past memory, so a response that is not in memory is not added.
      updateInMemory(candidate)
    }
  }

  /// Replaces the metadata of the original, and of its known and its wanted transforms. Other transforms are updated when they
  /// are next used.
  ///
  /// - Returns: Whether an entry of that revision is stored, or `nil` if the store failed.
  func refresh(_ candidate: Candidate, on disk: any CacheStore) async -> Bool? {
    var isCurrent: Bool?
    var entries = candidate.isInTransformsAlone ? [] : [(key: candidate.key, length: candidate.metadata.bodyLength)]
    do throws(CacheError) {
      entries += try await transforms(beside: candidate, on: disk)
    } catch {
      request.observe(.storeFailed(key: candidate.key, error: error))
    }
    for (key, length) in entries {
      var metadata = candidate.metadata
      if metadata.bodyLength != length { metadata.bodyLength = length }
      do throws(CacheError) {
        let isThere = try await disk.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision)
        isCurrent = isThere || isCurrent == true
      } catch {
        request.observe(.storeFailed(key: key, error: error))
      }
    }
    return isCurrent
  }

  /// Returns a writer of the durable store, or `nil` if the request does not write to it or the store refuses.
  ///
  /// - Throws: The store's error, if the store is the only destination.
  @inline(never)
  func writer(_ candidate: Candidate, _ lease: (any RequestLease)? = nil) async throws(CacheError) -> (any EntryWriter)? {
    do throws(CacheError) {
      return try await writerOrError(candidate, lease)
    } catch {
      request.observe(.storeFailed(key: candidate.key, error: error))
      if request.destination.isStore { throw error }
      return nil
    }
  }

  /// Like ``writer(_:_:)``, but throws the error of the store, and does not report it.
  func writerOrError(
    _ candidate: Candidate, _ lease: (any RequestLease)? = nil
  ) async throws(CacheError) -> (any EntryWriter)? {
    guard let disk = writableDisk else { return nil }
    if request.isStoreOverloaded { throw .overloadedStore }
    guard let lease else { return try await disk.makeWriter(for: candidate.key, metadata: candidate.metadata) }
    return try await disk.makeWriter(for: candidate.key, metadata: candidate.metadata, lease: lease)
  }

  private func updateInMemory(_ candidate: Candidate) {
    guard let memory = writableMemory else { return }
    _ = putRecord(candidate, in: memory) { $0?.revision == candidate.metadata.revision }
  }

  /// Removes responses that another one has replaced, from every layer.
  func drop(_ outdated: [Candidate]) async {
    forgetInMemory(outdated)
    guard let store = request.store, !outdated.isEmpty else { return }
    _ = await request.writeDeadline.wait(request) { await drop(outdated, from: store) }
  }

  /// Like ``drop(_:)``, without a deadline.
  func drop(_ outdated: [Candidate], from store: any CacheStore) async {
    for candidate in outdated { await remove(candidate.key, ifRevision: candidate.metadata.revision, from: store) }
    await dropTransforms(of: outdated)
    // A request that read the disk earlier must not promote its result.
    request.invalidations.advance(afterRemovalOf: resource)
    forgetInMemory(outdated)
  }

  func forgetInMemory(_ outdated: [Candidate]) {
    guard let memory = request.memory else { return }
    for candidate in outdated {
      let revision = candidate.metadata.revision
      MemoryTier(store: memory).forget(candidate.key.variant, of: resource) { $0.revision == revision }
      memory.remove(candidate.key, ifRevision: revision)
    }
  }

  /// Applies the changes to the stores that a response to `head` causes.
  ///
  /// - Parameter candidates: The stored responses that the indices of the changes refer to.
  func apply(_ changes: StoreChanges, to candidates: [Candidate], of head: HTTPRequest) async {
    for (index, metadata) in changes.updates.sorted(by: { $0.key < $1.key }) {
      var candidate = candidates[index]
      candidate.metadata = metadata
      await self.update(candidate)
    }
    await drop(changes.drops.map { candidates[$0] })
    await invalidate(changes.invalidations, by: head)
  }

  /// Removes the responses that are stored under these URIs in the request's partition. For the request's own URI, also removes
  /// those under its own key.
  private func invalidate(_ uris: [String], by head: HTTPRequest) async {
    guard !uris.isEmpty else { return }
    var resources = Set(uris.map(request.resource(ofURI:)))
    if let uri = ResourceID.uri(of: head), uris.contains(uri) { resources.insert(resource) }
    // The next request must not find the removed responses, so this one waits longer for a slow store.
    let failed = await request.writeDeadline.wait(request, times: StoreDeadline.hangFactor) { [resources] in
      await failures(ofRemoving: resources)
    }
    for (resource, error) in failed ?? resources.map({ ($0, .slowStore) }) {
      request.observe(.storeFailed(key: CacheKey(resource: resource), error: error))
    }
  }

  /// Removes resources from every layer, even from those that the request may not write: outdated responses must not be served
  /// (RFC 9111 §4.4). A removal that hangs does not delay the others.
  private func failures(ofRemoving resources: Set<String>) async -> [(String, CacheError)] {
    await withTaskGroup(of: (String, CacheError)?.self) { group in
      for resource in resources {
        group.addTask {
          do throws(CacheError) {
            try await TieredCache(request, resource: resource).removeAll(from: .all)
            return nil
          } catch {
            return (resource, error)
          }
        }
      }
      return await group.reduce(into: []) { failures, failure in if let failure { failures.append(failure) } }
    }
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?, from store: any CacheStore) async {
    do throws(CacheError) {
      try await store.remove(key, ifRevision: revision)
    } catch {
      request.observe(.storeFailed(key: key, error: error))
    }
  }

  /// Removes the resource from the given layers. If these are all layers, responses that were requested before are not stored
  /// either, and the call waits for those that are being committed.
  ///
  /// - Throws: The error of the durable store, after it has removed the entries that it can list and remove.
  func removeAll(from layers: CacheLayers) async throws(CacheError) {
    if layers == .all {
      request.invalidations.advance(removing: resource)
    } else {
      request.invalidations.advance(afterRemovalOf: resource)
    }
    if layers.contains(.memory), let memory = request.memory { MemoryTier(store: memory).remove(resource) }
    guard layers.contains(.disk), let store = request.store else { return }
    defer {
      // A request that began after the first step may have promoted an entry that was still on disk, or one of a commit that had
      // begun.
      request.invalidations.advance(afterRemovalOf: resource)
      if layers.contains(.memory), let memory = request.memory { MemoryTier(store: memory).remove(resource) }
    }
    var failure: CacheError?
    var keys: [CacheKey]
    do throws(CacheError) {
      keys = try await store.entries(of: resource).map(\.key)
    } catch {
      if error.isCancellation { throw error }
      failure = error
      // A store with several layers lists nothing if one of them fails, but lookups find what the others have. It hides the
      // removed keys of the layer that fails, so the most likely key is always removed.
      keys = [CacheKey(resource: resource)] + ((try? await store.variants(of: resource)) ?? []).map(\.key)
      keys += ((try? await store.transforms(of: resource)) ?? []).map(\.key)
    }
    try await store.remove(keys)
    // A response whose commit had begun was not listed. It is removed before its commit ends.
    if layers == .all { await request.commitOrder.waitForCommits(in: store.id) { $0 == resource } }
    if let failure { throw failure }
  }
}

extension StoredMetadata {
  /// Whether the response arrived later than another one. A time in the future comes from before the clock was set back. It says
  /// nothing about the order, unless both have such a time.
  func isLater(than other: StoredMetadata, at now: Timestamp) -> Bool {
    responseTime > other.responseTime && (responseTime <= now || other.responseTime > now)
  }
}
