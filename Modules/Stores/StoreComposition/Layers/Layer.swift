internal import CacheCore

/// One of the stores, with the entries that must be hidden: those that could not be removed or are older than another layer's.
final class Layer: Sendable {
  private struct State {
    var hidden: Set<CacheKey> = []
    var hidesAll = false
    /// Whether the store is read-only by its nature, and has refused the last change.
    var isReadOnly = false
    var counters = LayeredCounters.Layer()
  }

  let store: any CacheStore
  private let state = Lock(State())

  init(_ store: any CacheStore) { self.store = store }

  /// Whether other machines use the store, or a part of it.
  var isShared: Bool {
    get async { await store.sharedPart() != nil }
  }

  var counters: LayeredCounters.Layer { state.withLock { $0.counters } }

  /// Whether the layer could not be emptied.
  var hidesAll: Bool { state.withLock { $0.hidesAll } }

  func isHidden(_ key: CacheKey) -> Bool { state.withLock { $0.hidesAll || $0.hidden.contains(key) } }

  func hide(_ key: CacheKey) { state.withLock { _ = $0.hidden.insert(key) } }

  func show(_ key: CacheKey) { state.withLock { _ = $0.hidden.remove(key) } }

  /// Counts a failure, except a refusal that is in the nature of the store or of the entry.
  func note(_ error: CacheError) {
    guard ![.readOnly, .entryTooLarge, .superseded].contains(error.code) else { return }
    state.withLock { $0.counters.failures += 1 }
  }

  // MARK: Reading

  // A read returns nothing if the store fails, and sets `failure` unless a layer above has failed.

  func entry(
    for key: CacheKey, range: Range<Int64>?, _ failure: inout CacheError?
  ) async throws(CacheError) -> StoredEntry? {
    guard !isHidden(key) else { return nil }
    let entry = try await read(or: nil, &failure) { store throws(CacheError) in try await store.entry(for: key, range: range) }
    if entry != nil { state.withLock { $0.counters.hits += 1 } }
    return entry
  }

  func values(
    for keys: [CacheKey], _ failure: inout CacheError?
  ) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let shown = keys.filter { !isHidden($0) }
    guard !shown.isEmpty else { return [:] }
    let values = try await read(or: [:], &failure) { store throws(CacheError) in try await store.values(for: shown) }
    // Some may have been hidden meanwhile.
    let entries = values.filter { !isHidden($0.key) }
    state.withLock { $0.counters.hits += entries.count }
    return entries
  }

  /// Returns the visible metadata of a key. Returns `nil` if there is none, or if the store fails.
  func metadata(of key: CacheKey) async throws(CacheError) -> StoredMetadata? {
    guard !isHidden(key) else { return nil }
    var failure: CacheError?
    return try await read(or: nil, &failure) { store throws(CacheError) in try await store.entry(for: key, range: 0..<0) }?
      .metadata
  }

  func variants(of resource: String, _ failure: inout CacheError?) async throws(CacheError) -> [StoredEntry] {
    let entries = try await read(or: [], &failure) { store throws(CacheError) in try await store.variants(of: resource) }
      .filter { !isHidden($0.key) }
    if !entries.isEmpty { state.withLock { $0.counters.hits += 1 } }
    return entries
  }

  /// Lists the transforms. Listing an entry does not count as a use.
  func transforms(of resource: String, _ failure: inout CacheError?) async throws(CacheError) -> [ListedEntry] {
    try await read(or: [], &failure) { store throws(CacheError) in try await store.transforms(of: resource) }
      .filter { !isHidden($0.key) }
  }

  /// Returns the result of a read, or `nothing` if the store fails. The failure is noted.
  ///
  /// - Throws: Only a cancellation.
  private func read<Value>(
    or nothing: Value, _ failure: inout CacheError?, _ read: (any CacheStore) async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    do throws(CacheError) {
      return try await read(store)
    } catch {
      if error.isCancellation { throw error }
      note(error)
      failure = failure ?? error
      return nothing
    }
  }

  // MARK: Listing

  /// Whether lists include the entry of a key. They omit entries that are hidden because the store is read-only.
  ///
  /// Other hidden entries are listed, so that a purge removes them: an earlier removal failed, and another process or a restart
  /// would show them again.
  func lists(_ key: CacheKey) -> Bool { !state.withLock { $0.isReadOnly } || !isHidden(key) }

  // MARK: Changing

  func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, _ lease: (any RequestLease)? = nil
  ) async throws(CacheError) -> any EntryWriter {
    do throws(CacheError) {
      guard let lease else { return try await store.makeWriter(for: key, metadata: metadata) }
      return try await store.makeWriter(for: key, metadata: metadata, lease: lease)
    } catch {
      if !error.isCancellation { note(error) }
      throw error
    }
  }

  /// Removes an entry of any revision. If it stays, it is hidden.
  ///
  /// - Returns: The error, or `nil` on success or if the store is read-only and not shared.
  func remove(_ key: CacheKey) async -> CacheError? {
    do throws(CacheError) {
      try await store.remove(key, ifRevision: nil)
      showRemoved([key])
      return nil
    } catch {
      note(error)
      guard await isPermanent(error) else {
        hide(key)
        return error
      }
      await hideExisting(key)
      return nil
    }
  }

  private func showRemoved(_ keys: [CacheKey]) {
    state.withLock { state in
      state.isReadOnly = false
      state.hidden.subtract(keys)
    }
  }

  /// Hides the entry of a read-only store. A key without an entry is not hidden. Otherwise every key ever stored above would be
  /// remembered.
  private func hideExisting(_ key: CacheKey) async {
    do throws(CacheError) {
      if try await store.entry(for: key, range: 0..<0) == nil { show(key) } else { hide(key) }
    } catch {
      hide(key)
    }
  }

  /// Removes several entries, each in any revision. If the store fails, they are hidden. After a cancellation they are not,
  /// because the caller gets the error and repeats the removal.
  ///
  /// - Returns: The first error, or `nil` on success or if the store is read-only and not shared.
  func remove(_ keys: [CacheKey]) async -> CacheError? {
    do throws(CacheError) {
      try await store.remove(keys)
      showRemoved(keys)
      return nil
    } catch {
      if error.isCancellation { return error }
      note(error)
      guard await isPermanent(error) else {
        state.withLock { $0.hidden.formUnion(keys) }
        return error
      }
      for key in keys { await hideExisting(key) }
      return nil
    }
  }

  /// Marks several entries stale, each in any revision. If the store fails, it loses the entries.
  ///
  /// - Returns: Whether the store is read-only, and the error if the entries could neither be marked nor removed.
  func markStale(_ keys: [CacheKey], at now: Timestamp) async -> (isReadOnly: Bool, failure: CacheError?) {
    do throws(CacheError) {
      try await store.markStale(keys, at: now)
      return (false, nil)
    } catch {
      if error.isCancellation { return (false, error) }
      note(error)
      return await isPermanent(error) ? (true, nil) : (false, await remove(keys))
    }
  }

  /// Hides the entry of a read-only store if it would be used without revalidation.
  func hideIfFresh(_ key: CacheKey, at now: Timestamp) async {
    do throws(CacheError) {
      if try await store.entry(for: key, range: 0..<0)?.metadata.freshness.isFresh(at: now) == true { hide(key) }
    } catch {
      hide(key)
    }
  }

  /// Returns whether an error says that the store is read-only by its nature, and remembers that.
  ///
  /// A shared server is read-only for a while, during a failover, and other machines read what it keeps.
  func isPermanent(_ error: CacheError) async -> Bool {
    guard error.code == .readOnly, await !isShared else { return false }
    state.withLock { $0.isReadOnly = true }
    return true
  }

  /// Removes all entries. Those that stay are hidden.
  func removeAll() async throws(CacheError) {
    do throws(CacheError) {
      try await store.removeAll()
      state.withLock { state in
        (state.hidesAll, state.isReadOnly) = (false, false)
        state.hidden = []
      }
    } catch {
      note(error)
      state.withLock { $0.hidesAll = true }
      if await !isPermanent(error) { throw error }
    }
  }
}
