internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A response body that is stored while it is read. It is committed only after it was read to its end without an error.
///
/// A failing disk does not end the transfer, unless the disk is the only destination.
final class RecordingBody: ResourceBody.Source {
  /// The entry to store, and the entries that it replaces.
  struct Storage: Sendable {
    let cache: TieredCache
    /// The key and the metadata of the new entry.
    let candidate: Candidate
    /// Responses that the new one replaces, in addition to its own predecessor.
    let outdated: [Candidate]
    /// The responses that were stored when the request was sent.
    let known: [Candidate]
    /// Whether the original was not wanted when the head arrived.
    let omitsOriginal: Bool
    /// The parts from which the response is combined, and which it replaces.
    var parts: LiveParts?
  }

  /// The result of a body that was read to its end.
  struct Recording: Sendable {
    /// The bytes, if they were collected in memory.
    var data: Data?
    /// The length of the body in bytes.
    var count: Int64
    /// The committed metadata, or `nil` if the body is not stored.
    var metadata: StoredMetadata?
  }

  private struct State {
    var writer: (any EntryWriter)?
    /// `nil` while a chunk is being collected, and after the end.
    var collector: BodyCollector?
    var leader: CoalescingLeader?
    var lease: (any RequestLease)?
    var count: Int64 = 0
    var isEnded = false
    var recording: Recording?
    /// Whether a later response was found when this one was to be stored.
    var isOutdated = false
    var isOnDisk = false

    mutating func end() { (writer, collector, leader, lease, isEnded) = (nil, nil, nil, nil, true) }
  }

  /// The announced length in bytes.
  var length: Int64? { base.length }
  /// Whether the memory store may accept the whole body, judged by its length and by the memory budget.
  let mayFitInMemory: Bool
  /// The metadata of the response in the durable store, or `nil` if it is not stored there, or not yet.
  var storedOnDisk: StoredMetadata? { state.withLock { $0.isOnDisk ? $0.recording?.metadata : nil } }
  /// Whether the body was read to its end and is stored: in the durable store if there is one, or else in memory.
  var isStored: Bool {
    state.withLock { state in
      guard !state.isOutdated, let recording = state.recording else { return false }
      return state.isOnDisk || !request.hasStore && recording.metadata != nil && recording.data != nil
    }
  }
  /// The bytes of a stream that are collected in memory, or `nil` if they are not collected.
  var collected: CollectedBytes? { state.withLock { $0.collector?.stream } }

  private let request: ResolvedRequest
  private let base: ResourceBody
  private let storage: Storage?
  /// The position of the response among those with the same key, or `nil` if it is not stored in a durable store.
  private let ticket: CommitOrder.Ticket?
  /// The part of the memory budget that the bytes use, or `nil` if they are not counted.
  private let reservation: MemoryReservation?
  private let state: Lock<State>

  /// - Parameters:
  ///   - base: The body to read.
  ///   - request: The request whose destination collects the bytes.
  ///   - storage: The entry to store, or `nil` to only collect the bytes.
  ///   - writer: The writer of the durable store, if that store is used.
  ///   - leader: The leader that informs coalesced requests of the end.
  ///   - lease: The lease under which the request was sent.
  ///   - reservation: The part of the memory budget that the collected bytes use.
  init(
    _ base: ResourceBody, for request: ResolvedRequest, storing storage: Storage? = nil, writer: (any EntryWriter)? = nil,
    leader: CoalescingLeader? = nil, lease: (any RequestLease)? = nil, reservation: MemoryReservation? = nil
  ) {
    self.request = request
    self.base = base
    self.storage = storage
    ticket = storage.flatMap { $0.cache.ticket(for: $0.candidate) }
    self.reservation = reservation
    let isWhole = base.data != nil && request.destination.isMemory
    let collector = isWhole ? nil : BodyCollector(request, length: base.length, reservation)
    mayFitInMemory =
      storage != nil && BodyCollector.mayFitInMemory(base.length, request)
      && (collector?.stream != nil || !request.destination.isStream)
    state = Lock(State(writer: writer, collector: collector, leader: leader, lease: lease))
  }

  deinit { abandon() }

  var trailers: HTTPFields? { base.source.trailers }

  func cancel() {
    base.source.cancel()
    abandon()
  }

  /// Reads to the end and returns the recording.
  ///
  /// - Parameter progress: Called after each chunk, with the number of bytes so far.
  @inline(never)
  func record(_ progress: (Int64) -> Void) async throws(CacheError) -> Recording {
    do throws(CacheError) {
      if let data = base.data, request.destination.isMemory {
        try await record(whole: data, progress)
      } else {
        try await state.withLock { $0.collector }?.begin()
        while try await next() != nil { progress(state.withLock { $0.count }) }
      }
    } catch {
      abandon()
      throw error
    }
    guard let recording = state.withLock({ $0.recording }) else { throw .cancelled }
    return recording
  }

  /// Records a body that has arrived as a whole, in one step.
  private func record(whole data: Data, _ progress: (Int64) -> Void) async throws(CacheError) {
    let count = Int64(data.count)
    guard count <= request.maximumBodySize else { throw request.bodyTooLarge }
    reservation?.hold(count)
    if count > 0, let writer = state.withLock({ $0.writer }) { try await write(data, writer) }
    if count > 0 { progress(count) }
    try await commit(whole: data)
  }

  /// Out of line, because an asynchronous call allocates memory for everything that is inlined into it.
  @inline(never)
  func next() async throws(CacheError) -> Data? {
    let chunk: Data?
    do throws(CacheError) {
      chunk = try await readBase()
    } catch {
      abandon()
      throw error
    }
    guard let chunk else {
      try await finish()
      return nil
    }
    try await collect(chunk)
    let (writer, count) = state.withLock { state in
      state.count += Int64(chunk.count)
      return (state.writer, state.count)
    }
    if let length = base.length, count > length {
      cancel()
      throw .overlong(expected: length)
    }
    if let writer { try await write(chunk, writer) }
    // A reader that has every byte must find the response in the cache.
    if count == base.length, request.destination.isStream { try await commit() }
    return chunk
  }

  /// Reads the next chunk. A body may load something through the manager, which must not wait for this load.
  private func readBase() async throws(CacheError) -> Data? {
    guard reservation != nil else { return try await base.source.next() }
    return try await MemoryBudget.insideLoad { () async throws(CacheError) in try await base.source.next() }
  }

  private func collect(_ chunk: Data) async throws(CacheError) {
    // The collector is moved out and back in: a copy would make each append copy the bytes. A constant for the result of
    // `withLock` would be such a copy, because it lives until the end of this function.
    guard var collector = state.withLock({ $0.collector.take() }) else { return }
    do throws(CacheError) {
      try await collector.take(chunk)
    } catch {
      cancel()
      throw error
    }
    state.withLock { [collector] in if !$0.isEnded { $0.collector = collector } }
  }

  private func finish() async throws(CacheError) {
    let (count, collector) = state.withLock { ($0.count, $0.collector) }
    if let length = base.length, count != length {
      abandon()
      throw .truncated(received: count, expected: length)
    }
    do throws(CacheError) {
      try await collector?.finish()
    } catch {
      abandon()
      throw error
    }
    try await commit()
  }

  // MARK: Storing

  /// Returns the response with the length of its body, and the view of the stores with which it is stored.
  private func completed(_ storage: Storage, _ count: Int64) -> (cache: TieredCache, response: Candidate) {
    var response = storage.candidate
    if response.metadata.bodyLength != count { response.metadata.bodyLength = count }
    guard request.isFromCaller, ticket == nil else { return (storage.cache, response) }
    // Without a ticket, a caller's response is the latest because it arrives now, and earlier requests are outdated.
    response.metadata.responseTime = request.clock.now
    return (storage.cache.invalidatingEarlierRequests(), response)
  }

  private func write(_ chunk: Data, _ writer: any EntryWriter) async throws(CacheError) {
    let write: @Sendable () async -> Result<Void, CacheError> = {
      do throws(CacheError) {
        return .success(try await writer.write(chunk))
      } catch {
        return .failure(error)
      }
    }
    do throws(CacheError) {
      // Most writers collect small chunks in memory, which needs no task and no deadline.
      if try writer.writeWithoutWaiting(chunk) { return }
      try (await request.writeDeadline.wait(request, times: 10, for: write) ?? .failure(.slowStore)).get()
    } catch {
      try fail(writer, error)
    }
  }

  private func fail(_ writer: any EntryWriter, _ error: CacheError) throws(CacheError) {
    writer.abort()
    state.withLock { $0.writer = nil }
    if let storage { request.observe(.storeFailed(key: storage.candidate.key, error: error)) }
    if request.destination.isStore { throw error }
  }

  private func abandon() {
    // The last references to the lease and to the collected bytes are released outside the lock.
    let former = state.withLock { state in
      defer { state.end() }
      return state
    }
    former.leader?.abandon()
    let (data, length) = (former.collector?.stream?.data, base.length)
    if let storage, let broken = BrokenTransfer(storage, request, ticket, former.writer, data, former.count, of: length) {
      broken.storeInBackground()
    } else {
      former.writer?.abort()
    }
  }

  /// The data for the commit, taken when the body has ended.
  private struct Ending: Sendable {
    /// Released outside the lock.
    var collector: BodyCollector?
    var writer: (any EntryWriter)?
    var leader: CoalescingLeader?
    var lease: (any RequestLease)?
    var data: Data?
    var count: Int64
  }

  /// Commits once, and never after ``abandon()``.
  ///
  /// - Parameter whole: The body, or `nil` if it was collected in chunks.
  private func commit(whole: Data? = nil) async throws(CacheError) {
    let ending = state.withLock { state -> Ending? in
      guard !state.isEnded else { return nil }
      defer { state.end() }
      return Ending(
        collector: state.collector, writer: state.writer, leader: state.leader, lease: state.lease,
        data: whole ?? state.collector?.bytes,
        count: whole.map { Int64($0.count) } ?? state.count)
    }
    guard let ending else { return }
    var recording = Recording(data: ending.data, count: ending.count)
    if storage?.parts?.isStorable == false {
      ending.writer?.abort()
    } else if let storage {
      let (cache, complete) = completed(storage, ending.count)
      // Memory needs no deadline, because it takes no time.
      let outcome: Result<StoredMetadata, CacheError>?
      if let ticket {
        if ending.writer == nil, request.isStoreOverloaded {
          // The work would hold the body until the store has removed the earlier response.
          outcome = nil
          await cache.removeReplaced(by: complete, ticket, storage.outdated, known: storage.known)
        } else {
          outcome = await request.writeDeadline.wait(request) { [self] in await store(complete, ending, storage, cache) }
        }
      } else {
        outcome = await store(complete, ending, storage, cache)
      }
      if let outcome {
        recording.metadata = try outcome.get()
      } else if request.destination.isStore {
        throw .slowStore
      } else {
        recording.metadata = complete.metadata
        if ticket?.isSuperseded != true { cache.storeNew(ending.data, complete) }
        if state.withLock({ $0.isOutdated }) {
          // The work has found a later response in the store.
          cache.forgetInMemory([complete])
        } else if ending.data != nil {
          // The body is in memory, so coalesced requests need not wait for the disk.
          ending.leader?.stored(complete, status: nil)
        }
      }
    }
    state.withLock { [recording] in $0.recording = recording }
  }

  /// Stores the response, unless a later one is stored, and returns its metadata as stored.
  @inline(never)
  private func store(
    _ complete: Candidate, _ ending: Ending, _ storage: Storage, _ cache: TieredCache
  ) async -> Result<StoredMetadata, CacheError> {
    if await ticket?.enter() ?? true {
      defer { ticket?.leave() }
      if await !isSuperseded(complete) { return await storeInOrder(complete, ending, storage, cache) }
    }
    ending.writer?.abort()
    return giveWay(complete, ending, cache)
  }

  /// Leaves the stores as they are, because they have a later response. The load may have stopped waiting for this, and may have
  /// put its response into memory.
  private func giveWay(
    _ complete: Candidate, _ ending: Ending, _ cache: TieredCache
  ) -> Result<StoredMetadata, CacheError> {
    state.withLock { $0.isOutdated = true }
    cache.forgetInMemory([complete])
    ending.leader?.abandon()
    ending.lease?.endAsStored()
    return .success(complete.metadata)
  }

  private func storeInOrder(
    _ complete: Candidate, _ ending: Ending, _ storage: Storage, _ cache: TieredCache
  ) async -> Result<StoredMetadata, CacheError> {
    var candidate = complete
    var isOnDisk = false
    if cache.surviving(complete) != nil {
      do throws(CacheError) {
        if let committed = try await commitOnDisk(complete, ending, storage) {
          candidate.metadata = committed
          isOnDisk = true
        }
      } catch {
        guard error.code == .superseded else { return .failure(error) }
        // Another process has stored a later response, which must stay.
        return giveWay(complete, ending, cache)
      }
    }
    await cache.store(
      ending.data, candidate, ticket, isOnDisk: isOnDisk, replacing: storage.outdated, known: storage.known)
    state.withLock { [isOnDisk] in $0.isOnDisk = isOnDisk }
    // If the whole response is stored nowhere, its parts remain.
    if let parts = storage.parts, isOnDisk || !request.hasStore && cache.isInMemory(candidate) {
      await cache.drop(parts.becomeOutdated())
    }
    ending.leader?.stored(candidate, status: nil)
    // A purge may have removed the response. Another process then sends the request.
    guard cache.surviving(candidate) != nil else {
      guard request.destination.isStore else { return .success(candidate.metadata) }
      return .failure(CacheError(.notCached, reason: "the response was purged while it was stored"))
    }
    ending.lease?.end(storing: isOnDisk ? candidate.metadata : nil, at: request.clock.now)
    return .success(candidate.metadata)
  }

  private func commitOnDisk(
    _ candidate: Candidate, _ ending: Ending, _ storage: Storage
  ) async throws(CacheError) -> StoredMetadata? {
    guard let writer = ending.writer else {
      // A waiter that wants the original may have joined after the head arrived.
      guard storage.omitsOriginal, request.storesOriginal, let data = ending.data else { return nil }
      return await storage.cache.storeOriginal(data, candidate)
    }
    do throws(CacheError) {
      let start = request.observationStart
      let committed = try await writer.commit(trailers: base.source.trailers)
      request.observeStored(candidate.key, ending.count, since: start)
      return committed
    } catch {
      if error.code == .superseded {
        request.observe(.storeFailed(key: candidate.key, error: error))
        throw error
      }
      try fail(writer, error)
      return nil
    }
  }

  /// Whether a later response was stored while this body was read. It may be one of another process, which has no ticket here.
  ///
  /// With a ticket, no other response with the key changes the stores now. One that did so before this response had a ticket was
  /// noted as a commit.
  private func isSuperseded(_ candidate: Candidate) async -> Bool {
    let key = candidate.key
    let inMemory = request.memory.flatMap { MemoryTier(store: $0).index(of: key.resource)?.metadata(of: key.variant) }
    // The clock is read after each lookup: a response that arrives after an earlier reading would count as one of the future.
    var now = request.clock.now
    if inMemory?.isLater(than: candidate.metadata, at: now) == true { return true }
    // Most bodies are read at once, before another process stores a response. The disk is not read for those.
    guard request.writes.contains(.disk), let store = request.store,
      storage?.cache.isBehindCommits == true || now - candidate.metadata.responseTime >= .seconds(1)
    else { return false }
    let stored = (try? await store.variants(of: key.resource)) ?? []
    now = request.clock.now
    return stored.contains { $0.key == key && $0.metadata.isLater(than: candidate.metadata, at: now) }
  }
}
