internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body on its way to a caller, which is stored as it is read. What is not read to its end, or breaks, is never committed.
///
/// The disk is a guest here: when it fails, the bytes go on without it. Stored is the whole before its last byte is handed over,
/// so that who has it all finds it in the cache.
final class StoringBody: ResourceBody.Source {
  private struct State {
    var writer: (any EntryWriter)?
    /// What has come, for the memory store; nil: it is too much for that.
    var kept: [Data]?
    var leader: CoalescingLeader?
    var count: Int64 = 0
    var isEnded = false

    mutating func end() { (writer, kept, leader, isEnded) = (nil, nil, nil, true) }
  }

  /// The length that was announced.
  var length: Int64? { base.length }
  /// Whether memory takes all of it, as far as the length tells.
  let mayFitInMemory: Bool
  /// Whether memory takes all of it, and that is known.
  var fitsInMemory: Bool { mayFitInMemory && base.length != nil }
  private let base: ResourceBody
  private let candidate: Candidate
  private let cache: TieredCache
  private let outdated: [Candidate]
  private let known: [Candidate]
  private let state: Lock<State>

  /// - Parameters:
  ///   - base: where the bytes come from.
  ///   - candidate: what they are stored as.
  ///   - cache: where.
  ///   - writer: the durable store's, where it takes part.
  ///   - outdated: what the answer replaces, beside its own predecessor.
  ///   - known: what was stored when the request was made.
  ///   - leadership: who is told of the end.
  init(
    _ base: ResourceBody, _ candidate: Candidate, cache: TieredCache, writer: (any EntryWriter)?, replacing outdated: [Candidate],
    known: [Candidate], leader: CoalescingLeader? = nil
  ) {
    self.base = base
    self.candidate = candidate
    self.cache = cache
    self.outdated = outdated
    self.known = known
    mayFitInMemory =
      base.length ?? 0 <= cache.load.maximumBodyInMemory && cache.load.writes.contains(.memory)
    state = Lock(State(writer: writer, kept: mayFitInMemory ? [] : nil, leader: leader))
  }

  deinit { abandon() }

  var trailers: HTTPFields? { base.source.trailers }

  func cancel() {
    base.source.cancel()
    abandon()
  }

  func next() async throws(CacheError) -> Data? {
    let chunk: Data?
    do throws(CacheError) {
      chunk = try await base.source.next()
    } catch {
      abandon()
      throw error
    }
    guard let chunk else {
      let count = state.withLock { $0.count }
      if let length = base.length, count != length {
        abandon()
        throw CacheError(.truncatedBody, reason: "the body ended after \(count) of \(length) bytes")
      }
      await commit()
      return nil
    }
    let limit = cache.load.maximumBodyInMemory
    let (writer, count, leader) = state.withLock { state in
      state.count += Int64(chunk.count)
      if state.count > limit { state.kept = nil } else { state.kept?.append(chunk) }
      return (state.writer, state.count, state.kept == nil && state.writer == nil ? state.leader : nil)
    }
    // It is stored nowhere: nobody need wait for that.
    leader?.unshared(.success(candidate.metadata.response), isUsual: true)
    if let length = base.length, count > length {
      cancel()
      throw CacheError(.malformedResponse, reason: "the body has more than the \(length) bytes that were announced")
    }
    if let writer { await write(chunk, writer) }
    if count == base.length { await commit() }
    return chunk
  }

  /// Whether others may read along from what the writer has.
  private var isReadFromSpool: Bool { !fitsInMemory && state.withLock { $0.leader }?.isOver == false }

  private func write(_ chunk: Data, _ writer: any EntryWriter) async {
    let write: @Sendable () async -> Result<Void, CacheError> = {
      do throws(CacheError) {
        return .success(try await writer.write(chunk))
      } catch {
        return .failure(error)
      }
    }
    // Who reads along reads what the writer has: to give it up would cut them all off.
    let outcome = isReadFromSpool ? await write() : await cache.load.writeDeadline.wait(cache.load, times: 10, for: write)
    do throws(CacheError) {
      try (outcome ?? .failure(CacheError(.overloaded, reason: "the store takes too long"))).get()
    } catch {
      fail(writer, error)
    }
  }

  private func fail(_ writer: any EntryWriter, _ error: CacheError) {
    writer.abort()
    state.withLock { $0.writer = nil }
    cache.load.observe(.storeFailed(key: candidate.key, error: error))
  }

  private func abandon() {
    let (writer, leader) = state.withLock { state in
      defer { state.end() }
      return (state.writer, state.leader)
    }
    writer?.abort()
    leader?.abandon()
  }

  /// Whether a later answer was stored while this one was read, as slowly as its reader likes: an older word does not take its
  /// place.
  private func isSuperseded() async -> Bool {
    let (load, key, responseTime) = (cache.load, candidate.key, candidate.metadata.responseTime)
    if let known = load.memory.map(MemoryTier.init)?.index(of: key.resource)?.element(of: key.variant),
      known.responseTime > responseTime
    {
      return true
    }
    // Most are read at once; for their sake the disk is not asked.
    guard load.writes.contains(.disk), let store = load.store, load.clock.now - responseTime >= .seconds(1) else { return false }
    let stored = (try? await store.variants(of: key.resource)) ?? []
    return stored.contains { $0.key == key && $0.metadata.responseTime > responseTime }
  }

  /// Once; never after it was abandoned.
  private func commit() async {
    let taken = state.withLock { state -> State? in
      guard !state.isEnded else { return nil }
      defer { state.end() }
      return state
    }
    guard let taken else { return }
    guard await cache.load.writeDeadline.wait(cache.load, for: { [self] in await commit(taken) }) == nil, taken.kept != nil else {
      return
    }
    // It is in memory, so who waits need not wait for the disk.
    var stored = candidate
    stored.metadata.bodyLength = taken.count
    cache.keepEarly(joined(taken.kept, taken.count), stored)
    taken.leader?.stored(stored, status: nil)
  }

  private func commit(_ taken: State) async {
    // What is not to be stored is not aborted either: who reads along needs what the writer has. It goes with the last of them.
    guard await !isSuperseded() else {
      taken.leader?.abandon()
      return
    }
    var stored = candidate
    stored.metadata.bodyLength = taken.count
    var isOnDisk = false
    // Purged while it came: it has reached its caller, and that is all.
    if let writer = taken.writer, cache.surviving(stored) != nil {
      do throws(CacheError) {
        stored.metadata = try await writer.commit(trailers: base.source.trailers)
        isOnDisk = true
        cache.load.observe(.stored(key: stored.key, layer: .disk, bytes: taken.count))
      } catch {
        fail(writer, error)
      }
    }
    // What memory has no room for must not stay there in an older version.
    let keeper = taken.kept == nil ? cache.seen(by: cache.load.with { $0.target = .store }) : cache
    await keeper.store(joined(taken.kept, taken.count), stored, isOnDisk: isOnDisk, replacing: outdated, known: known)
    taken.leader?.stored(stored, status: nil)
  }

  private func joined(_ chunks: [Data]?, _ count: Int64) -> Data {
    var whole = Data(capacity: chunks == nil ? 0 : Int(count))
    for chunk in chunks ?? [] { whole.append(chunk) }
    return whole
  }
}
