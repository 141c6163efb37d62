public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A test double of a durable store. It stores entries in memory and fails on demand.
///
/// ```swift
/// let store = VolatileStore()
/// configuration.store = store
/// store.refusesWrites = true  // like a full disk
/// let resource = try await ResourceManager(configuration).load(url)  // loads succeed all the same
/// ```
///
/// To simulate a restart, create a new manager with the same instance.
public final class VolatileStore: CacheStore {
  struct Stored {
    var metadata: StoredMetadata
    var body: Data
  }

  struct State {
    var entries: [CacheKey: Stored] = [:]
    var failure: CacheError?
    var refusesWrites = false
    var opened = 0
  }

  public let id = ComponentID.unique(VolatileStore.self)
  let state = Lock(State())

  private let clock: any CacheClock
  private let expiration: Expiration

  /// Creates an empty store.
  ///
  /// - Parameters:
  ///   - expiration: The time to live of entries whose metadata has none.
  ///   - clock: The clock for times to live.
  public init(expiration: Expiration = .never, clock: any CacheClock = SystemClock()) {
    self.expiration = expiration
    self.clock = clock
  }

  private func isAlive(_ stored: Stored) -> Bool {
    clock.now < (stored.metadata.expiration ?? expiration).deadline(from: stored.metadata.responseTime)
  }

  /// The error with which every call fails, or `nil`.
  public var failure: CacheError? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  /// Whether new entries fail with `CacheError.Code.diskFull`. Stored entries can still be read and removed.
  public var refusesWrites: Bool {
    get { state.withLock { $0.refusesWrites } }
    set { state.withLock { $0.refusesWrites = newValue } }
  }

  /// The keys of all entries.
  public var keys: [CacheKey] { state.withLock { Array($0.entries.keys) } }

  /// The number of times an entry was opened.
  public var opened: Int { state.withLock { $0.opened } }

  /// Damages a stored body, like a failing disk. Its reader receives a damaged entry.
  public func damage(_ key: CacheKey) { state.withLock { $0.entries[key]?.metadata.bodyLength = -1 } }

  /// Bodies are not available without opening them, so damage is found on reading.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try checked { state in
      state.entries.filter { $0.key.resource == resource && $0.key.transform.isEmpty && isAlive($0.value) }.map { key, stored in
        let body = ResourceBody(length: nil, source: ResourceBody(stored.body).source)
        return StoredEntry(key: key, metadata: stored.metadata, body: body)
      }
    }
  }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try checked { state in
      state.entries.filter { $0.key.resource == resource && !$0.key.transform.isEmpty && isAlive($0.value) }
        .map { ListedEntry(key: $0, metadata: $1.metadata) }
    }
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try checked { state in
      state.opened += 1
      guard let stored = state.entries[key], isAlive(stored) else { return nil }
      guard stored.metadata.bodyLength != -1 else {
        state.entries[key] = nil
        return nil
      }
      let length = Int64(stored.body.count)
      let clamped = (range ?? 0..<length).clamped(to: 0..<length)
      let bytes = stored.body.dropFirst(Int(clamped.lowerBound)).prefix(clamped.count)
      return StoredEntry(key: key, metadata: stored.metadata, body: ResourceBody(Data(bytes)))
    }
  }

  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try state.withLock { state throws(CacheError) in
      if let failure = state.failure { throw failure }
      if state.refusesWrites { throw CacheError(.diskFull, reason: "the store is set to refuse writes") }
    }
    return VolatileWriter(self, key, metadata)
  }

  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    try checked { state in
      guard let stored = state.entries[key]?.metadata, stored.revision == revision else { return false }
      state.entries[key]?.metadata = metadata
      state.entries[key]?.metadata.bodyLength = stored.bodyLength
      return true
    }
  }

  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try checked { state in
      if let revision, state.entries[key]?.metadata.revision != revision { return }
      state.entries[key] = nil
    }
  }

  public func removeAll() async throws(CacheError) { try checked { $0.entries = [:] } }

  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try checked { state in
      state.entries.filter { isAlive($0.value) && isWanted($0.key, $0.value.metadata) }
        .map { ListedEntry(key: $0, metadata: $1.metadata) }
    }
  }

  /// Returns the number of entries and the bytes of their bodies.
  public func usage() async throws(CacheError) -> StoreUsage? {
    try checked { state in
      StoreUsage(entries: state.entries.count, bytes: state.entries.values.reduce(0) { $0 + Int64($1.body.count) })
    }
  }

  func checked<Result>(_ work: (inout State) -> Result) throws(CacheError) -> Result {
    try state.withLock { state throws(CacheError) in
      if let failure = state.failure { throw failure }
      return work(&state)
    }
  }
}

/// A writer that fails while the store is set to fail.
private final class VolatileWriter: EntryWriter {
  private let store: VolatileStore
  private let writer: CollectingWriter

  init(_ store: VolatileStore, _ key: CacheKey, _ metadata: StoredMetadata) {
    self.store = store
    writer = CollectingWriter(metadata) { metadata, body throws(CacheError) in
      try store.checked { $0.entries[key] = VolatileStore.Stored(metadata: metadata, body: body) }
    }
  }

  func write(_ chunk: Data) async throws(CacheError) {
    try store.checked { _ in }
    try await writer.write(chunk)
  }

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    // Checked first, so that a test can retry a failed commit.
    try store.checked { _ in }
    return try await writer.commit(trailers: trailers)
  }

  func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? {
    try store.checked { _ in }
    return try await writer.commitPart(as: metadata)
  }

  func abort() { writer.abort() }
}
