import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes

/// A durable store whose calls a test can hold.
final class HeldStore: CacheStore {
  /// The kinds of calls. Lookups, lists and reads are held after the call, and all others before it.
  enum Call: Hashable, Sendable { case look, list, open, removal, make, write, commit, metadata }

  let id = ComponentID.unique(HeldStore.self)
  let base: VolatileStore
  let boundsLookupTime: Bool
  /// The error of bodies after their first bytes, or `nil` if they are whole.
  let bodyError: CacheError?
  private let gates = Lock<[Call: (gate: Gate, isForAll: Bool)]>([:])
  private let hung = Lock<Gate?>(nil)
  private let counts = Lock((lookups: 0, byCaller: 0))
  /// The number of bodies that lookups have read and that are still in memory. They are counted with ``boundsLookupTime``.
  private let bodies = Lock(0)
  var bodiesInMemory: Int { bodies.withLock { $0 } }

  init(clock: any CacheClock, boundsLookupTime: Bool = false, bodyError: CacheError? = nil) {
    base = VolatileStore(clock: clock)
    self.boundsLookupTime = boundsLookupTime
    self.bodyError = bodyError
  }

  /// Set by a test in its own task. Detached tasks do not inherit it.
  @TaskLocal static var isInTaskOfCaller = false

  /// The number of calls of ``variants(of:)``, and of those in the task of a caller.
  var lookups: (all: Int, byCaller: Int) { counts.withLock { ($0.lookups, $0.byCaller) } }

  /// Holds the next call of this kind, or all calls of this kind.
  func hold(_ call: Call, all isForAll: Bool = false) -> Gate {
    let gate = Gate()
    gates.withLock { $0[call] = (gate, isForAll) }
    return gate
  }

  /// Holds all calls from now on, even if their tasks are cancelled, as a file system that hangs does.
  func hang() -> Gate {
    let gate = Gate()
    hung.withLock { $0 = gate }
    return gate
  }

  fileprivate func pass(_ call: Call) async {
    // Creating a writer needs no file system.
    if call != .make, let gate = hung.withLock({ $0 }) { return await Task.detached { await gate.pass() }.value }
    let gate = gates.withLock { gates in
      guard let (gate, isForAll) = gates[call] else { return Gate?.none }
      if !isForAll { gates[call] = nil }
      return gate
    }
    await gate?.pass()
  }

  /// Returns a copy of a body that is counted until its memory is freed.
  private func counted(_ body: Data) -> Data {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, body.count), alignment: 1)
    guard let start = bytes.baseAddress else { return body }
    body.copyBytes(to: bytes)
    bodies.withLock { $0 += 1 }
    return Data(
      bytesNoCopy: start, count: body.count,
      deallocator: .custom { [self] pointer, _ in
        pointer.deallocate()
        bodies.withLock { $0 -= 1 }
      })
  }

  private func broken(_ body: ResourceBody) -> ResourceBody {
    bodyError.map { ResourceBody(length: body.length, source: ChunkedBody(["by"], then: $0)) } ?? body
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let isByCaller = Self.isInTaskOfCaller
    counts.withLock { counts in
      counts.lookups += 1
      if isByCaller { counts.byCaller += 1 }
    }
    var variants = try await base.variants(of: resource)
    if boundsLookupTime {
      for index in variants.indices {
        variants[index].body = ResourceBody(counted(try await variants[index].body.collect(limit: .max)))
      }
    }
    for index in variants.indices { variants[index].body = broken(variants[index].body) }
    await pass(.look)
    return variants
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    var entry = try await base.entry(for: key, range: range)
    if let body = entry?.body { entry?.body = broken(body) }
    await pass(.open)
    return entry
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    await pass(.make)
    return HeldWriter(try await base.makeWriter(for: key, metadata: metadata), self)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    await pass(.metadata)
    return try await base.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    await pass(.removal)
    try await base.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) {
    await pass(.removal)
    try await base.removeAll()
  }

  func entries(where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool) async throws(CacheError) -> [ListedEntry] {
    let entries = try await base.entries(where: isWanted)
    await pass(.list)
    return entries
  }
}

private final class HeldWriter: EntryWriter {
  private let base: any EntryWriter
  private let store: HeldStore

  init(_ base: any EntryWriter, _ store: HeldStore) { (self.base, self.store) = (base, store) }

  func write(_ chunk: Data) async throws(CacheError) {
    await store.pass(.write)
    try await base.write(chunk)
  }

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    await store.pass(.commit)
    return try await base.commit(trailers: trailers)
  }

  func abort() { base.abort() }
}

extension ManagerFixture {
  /// Returns a fixture with a disk that can be held.
  ///
  /// - Parameter boundsLookupTime: Whether the disk states that its lookups end soon. They then have their bodies in memory.
  static func held(
    boundsLookupTime: Bool = false, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }
  ) throws -> (fixture: ManagerFixture, store: HeldStore) {
    let kept = Lock<HeldStore?>(nil)
    let fixture = try ManagerFixture {
      let store = HeldStore(clock: $0.clock, boundsLookupTime: boundsLookupTime)
      kept.withLock { $0 = store }
      $0.store = store
      change(&$0)
    }
    guard let store = kept.withLock({ $0 }) else { throw ContractViolation("the fixture has no store") }
    return (fixture, store)
  }
}
