internal import CacheCore

/// One of the stores, with the entries that must be hidden: those that could not be removed or are older than another layer's.
final class Layer: Sendable {
  private struct State {
    var hidden: Set<CacheKey> = []
    var hidesAll = false
    var counters = LayeredCounters.Layer()
  }

  let store: any CacheStore
  private let state = Lock(State())

  init(_ store: any CacheStore) { self.store = store }

  /// Whether other machines use the store, or a part of it.
  var isShared: Bool {
    get async { await store.unsharedPart()?.id != store.id }
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

  /// Returns the entry. A failure is a counted miss.
  ///
  /// - Throws: Only a cancellation.
  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard !isHidden(key) else { return nil }
    do throws(CacheError) {
      guard let entry = try await store.entry(for: key, range: range) else { return nil }
      state.withLock { $0.counters.hits += 1 }
      return entry
    } catch {
      if error.isCancellation { throw error }
      note(error)
      return nil
    }
  }

  /// Returns the entries. A failure is a counted miss for all keys.
  ///
  /// - Throws: Only a cancellation.
  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    let shown = keys.filter { !isHidden($0) }
    guard !shown.isEmpty else { return [:] }
    do throws(CacheError) {
      // Some may have been hidden meanwhile.
      let entries = try await store.values(for: shown).filter { !isHidden($0.key) }
      state.withLock { $0.counters.hits += entries.count }
      return entries
    } catch {
      if error.isCancellation { throw error }
      note(error)
      return [:]
    }
  }

  /// Returns the visible revision of a key, or `nil` if there is none.
  func revision(of key: CacheKey) async throws(CacheError) -> Revision? {
    guard !isHidden(key) else { return nil }
    do throws(CacheError) {
      return try await store.entry(for: key, range: 0..<0)?.metadata.revision
    } catch {
      if error.isCancellation { throw error }
      note(error)
      return nil
    }
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    do throws(CacheError) {
      let entries = try await store.variants(of: resource).filter { !isHidden($0.key) }
      if !entries.isEmpty { state.withLock { $0.counters.hits += 1 } }
      return entries
    } catch {
      if error.isCancellation { throw error }
      note(error)
      return []
    }
  }

  /// Lists the transforms. Listing an entry does not count as a use.
  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    do throws(CacheError) {
      return try await store.transforms(of: resource).filter { !isHidden($0.key) }
    } catch {
      if error.isCancellation { throw error }
      note(error)
      return []
    }
  }

  // MARK: Listing

  /// Returns a list without the hidden entries.
  ///
  /// The list of a shared store has them too, because other processes may find them. After a removal that failed, another
  /// process may also have replaced the entry.
  func listed(_ entries: [ListedEntry]) async -> [ListedEntry] {
    guard state.withLock({ $0.hidesAll || !$0.hidden.isEmpty }), await !isShared else { return entries }
    return entries.filter { !isHidden($0.key) }
  }

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
      show(key)
      return nil
    } catch {
      note(error)
      guard await isPermanent(error) else {
        hide(key)
        return error
      }
      // Only an existing entry is hidden. Otherwise every key ever stored above would be remembered.
      if (try? await store.entry(for: key, range: 0..<0)) ?? nil != nil { hide(key) } else { show(key) }
      return nil
    }
  }

  /// Removes several entries, each in any revision. Those that stay are hidden.
  ///
  /// - Returns: The first error, or `nil` on success or if the store is read-only and not shared.
  func remove(_ keys: [CacheKey]) async -> CacheError? {
    do throws(CacheError) {
      try await store.remove(keys)
      state.withLock { $0.hidden.subtract(keys) }
      return nil
    } catch {
      guard await isPermanent(error) else {
        note(error)
        state.withLock { $0.hidden.formUnion(keys) }
        return error
      }
      // Single removals find the entries that exist.
      for key in keys { _ = await remove(key) }
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
      note(error)
      return await isPermanent(error) ? (true, nil) : (false, await remove(keys))
    }
  }

  /// Whether the store is read-only by its nature. A shared server is read-only for a while, during a failover, and other
  /// machines read what it keeps.
  private func isPermanent(_ error: CacheError) async -> Bool {
    if error.code == .readOnly { await !isShared } else { false }
  }

  /// Removes all entries. Those that stay are hidden.
  func removeAll() async throws(CacheError) {
    do throws(CacheError) {
      try await store.removeAll()
      state.withLock { state in
        state.hidesAll = false
        state.hidden = []
      }
    } catch {
      note(error)
      state.withLock { $0.hidesAll = true }
      if await !isPermanent(error) { throw error }
    }
  }
}
