public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResourceManager {
  /// Removes stored responses, or marks them stale, in the manager's memory store and in its durable store.
  ///
  /// ```swift
  /// try await manager.purge(.url(url))                                // gone
  /// try await manager.purge(.prefix(news), .soft)                     // asked about at their next use
  /// let count = try await manager.purge(.tag("product-7"), in: .all)  // in every partition
  /// ```
  ///
  /// When the call returns, no new load gets a purged response, and no running load brings one back. A response that was
  /// requested before the purge reaches its waiters. It is not stored, or it is stored as a stale response.
  ///
  /// A URL or a key in one partition costs one look-up. Every other selection examines everything that is stored, which the
  /// stores list. On disk, a part of every file is read.
  ///
  /// - Parameters:
  ///   - selection: The responses to purge.
  ///   - mode: Whether the responses are removed or marked stale.
  ///   - scope: The partitions to purge. As in every other call, no partition means the responses that were loaded in none.
  /// - Returns: The number of purged responses. Each variant of a resource counts once, in whichever layers it is stored.
  /// - Throws: `CacheError.Code.invalidURL`, `CacheError.Code.unsupported` if a store cannot list its entries, or the error of a
  ///   store, with path and reason. Every response that can be purged in spite of the error is purged.
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

  /// Returns the URI under which the responses of a URL are stored. The interceptor does not see a prefix, because a prefix
  /// is not a request.
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
