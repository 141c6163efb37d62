public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResourceManager {
  /// Removes stored answers, or marks them stale, in the manager's memory store and in its durable one.
  ///
  /// ```swift
  /// try await manager.purge(.url(url))                                // gone
  /// try await manager.purge(.prefix(news), .soft)                     // asked about at their next use
  /// let count = try await manager.purge(.tag("product-7"), in: .all)  // in every partition
  /// ```
  ///
  /// When it returns, no load that begins gets what was purged, and none that is under way brings it back: an answer that was
  /// asked for before the purge is handed to those who wait for it and not stored, or stored as a stale one.
  ///
  /// A URL, or a key, in one partition costs a look-up. All else goes through everything that is stored: the stores list it (on
  /// disk, a part of every file is read).
  ///
  /// - Parameters:
  ///   - selection: which answers.
  ///   - mode: whether they are removed or marked stale.
  ///   - scope: where; as in every other call, no partition means those answers that were loaded in none.
  /// - Returns: how many answers it met, each variant of a resource counted once, wherever it is stored.
  /// - Throws: `CacheError.Code.invalidURL`; `CacheError.Code.unsupported` when a store can't list what it holds; a store's
  ///   error, with path and reason. What could be purged in spite of it, is.
  @discardableResult
  public func purge(
    _ selection: PurgeSelection, _ mode: PurgeMode = .hard, in scope: PurgeScope = .partition(nil)
  ) async throws(CacheError) -> Int {
    let mode = configuration.validator == nil ? .hard : mode
    let purge = try Purge(selection, mode, in: scope) { kind throws(CacheError) in try uri(of: kind) }
    let purger = Purger(
      purge: purge, memory: configuration.memory.map(MemoryTier.init), store: configuration.store,
      clock: configuration.clock, core: core)
    return try await purger.run()
  }

  /// What answers of a URL are filed under; a prefix is nothing that a request modifier could be asked about.
  private func uri(of kind: PurgeSelection.Kind) throws(CacheError) -> String {
    switch kind {
    case .url(let url):
      let head = try RequestSettings(ResourceRequest(url), configuration, core).head
      return ResourceID.uri(of: head) ?? url.absoluteString
    case .prefix(let url): return ResourceID.uri(of: try HTTPRequest(resource: url)) ?? url.absoluteString
    case .key, .tag, .everything: return ""
    }
  }
}
