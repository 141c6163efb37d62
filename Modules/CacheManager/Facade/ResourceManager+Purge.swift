public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Removes stored responses, or marks them stale, in the manager's memory store and in its durable store.
  ///
  /// ```swift
  /// try await manager.purge(.url(url))                                // removed
  /// try await manager.purge(.prefix(news), .soft)                     // revalidated at their next use
  /// let count = try await manager.purge(.tag("product-7"), in: .all)  // in every partition
  /// ```
  ///
  /// After the call, no new load gets a purged response, and no running load brings one back. A response that was requested
  /// before the purge still reaches its waiters. It is not stored, or it is stored as a stale response.
  ///
  /// With a ``Configuration/fleet``, the purge reaches every process. After the call, each process revalidates a purged response
  /// before it uses it, with the exceptions in <doc:/Etagere/SeveralMachines>. The count is that of this process and of
  /// the shared store.
  ///
  /// A URL or a key in one partition costs one lookup. A tag uses the store's index by tag, if it has one. Every other
  /// selection lists and examines everything in the stores. On disk, this reads a part of every file.
  ///
  /// - Parameters:
  ///   - selection: The responses to purge.
  ///   - mode: Whether the responses are removed or marked stale.
  ///   - scope: The partitions to purge. `.partition(nil)` is the partition of loads that name none.
  /// - Returns: The number of purged responses. Each variant of a resource counts once, even if it is both in memory and
  ///   in the durable store.
  /// - Throws: `CacheError.Code.invalidURL`, `CacheError.Code.unsupported` if a store cannot list its entries, or the error of a
  ///   store, with path and reason. The purge continues with the other responses after an error. If one layer of a store cannot
  ///   list its entries, responses can remain in the others too. Repeat the purge after an error, also if the fleet cannot be
  ///   reached (`CacheError.Code.storeUnavailable`).
  @discardableResult
  public func purge(
    _ selection: PurgeSelection, _ mode: PurgeMode = .hard, in scope: PurgeScope = .partition(nil)
  ) async throws(CacheError) -> Int {
    let mode = configuration.validator == nil ? .hard : mode
    let purge = try Purge(selection, mode, in: scope) { kind throws(CacheError) in try resource(of: kind) }
    let purger = Purger(
      purge: purge, memory: configuration.memory.map(MemoryTier.init), store: configuration.store,
      clock: configuration.clock, invalidations: core.environment.invalidations, flights: core.flights)
    guard let member = core.environment.fleetMember else { return try await purger.run() }
    return try await member.run(purger)
  }

  /// Whether this process is known to have applied every purge of its ``Configuration/fleet`` that has returned.
  ///
  /// It is `true` without a fleet. It is `false` before the process has joined, after a time without contact, and after
  /// ``close()``. It is also `false` while a purge of another process takes too long here, or after it has failed here until it
  /// succeeds. A failed purge of this process only throws.
  ///
  /// While the value is `false`, loads do not use a stored response before the origin has confirmed it, with the exceptions in
  /// <doc:/Etagere/SeveralMachines>. Reading the value does not wait.
  public var isCurrentInFleet: Bool { core.environment.fleetMember?.isCurrent ?? true }

  /// Returns the resource under which the responses of a URL are stored. A prefix is not a request, so it has no key, and the
  /// interceptor does not receive it.
  private func resource(of kind: PurgeSelection.Kind) throws(CacheError) -> String {
    switch kind {
    case .url(let url): return try ResolvedRequest(ResourceRequest(url), core).settings.resource
    case .prefix(let url): return ResourceID.uri(of: try HTTPRequest(resource: url)) ?? url.absoluteString
    case .key, .tag, .everything: return ""
    }
  }
}

/// The stored responses that a purge affects.
public struct PurgeSelection: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case url(URL)
    case key(String)
    case prefix(URL)
    case tag(String)
    case everything
  }

  let kind: Kind

  /// The responses that are stored under a URL, or under its key by ``ResourceManager/Configuration/cacheKey``, in every variant.
  public static func url(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .url(url)) }

  /// The responses that are stored under a key (`RequestOptions.key`, ``ResourceManager/Configuration/cacheKey``), in every
  /// variant.
  public static func key(_ key: String) -> PurgeSelection { PurgeSelection(kind: .key(key)) }

  /// The responses that are stored under a URI with this prefix, and those from such a URI that are stored under a key.
  ///
  /// The bytes of the URIs in normal form are compared (see `ResourceID`). The prefix `…/news` also matches `…/newsletter`, and
  /// `…/news/` matches only the URIs below it. A URL without a path is the root of its host, so it matches no other host.
  public static func prefix(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .prefix(url)) }

  /// The responses that their origin marked with this tag, in `Cache-Tag` or `Surrogate-Key`. Tags are compared byte by byte.
  public static func tag(_ name: String) -> PurgeSelection { PurgeSelection(kind: .tag(name)) }

  /// All stored responses.
  public static let everything = PurgeSelection(kind: .everything)
}

extension PurgeSelection: CustomStringConvertible {
  /// The selection in Swift notation, such as `tag("news")`.
  public var description: String { "\(kind)" }
}

/// The effect of a purge on the responses that it matches.
public enum PurgeMode: String, Hashable, Codable, Sendable, CaseIterable {
  /// Removes the responses.
  case hard
  /// Marks the responses stale. The next use revalidates them, and the origin may confirm them with a 304. Until then, they are
  /// served where stale responses are allowed: with `stale-while-revalidate` and `stale-if-error`, offline, and by policies that
  /// use any stored response.
  ///
  /// A manager without a validator cannot revalidate, so this mode is the same as ``hard``.
  case soft
}

/// The partitions that a purge affects.
public enum PurgeScope: Hashable, Codable, Sendable {
  /// The responses of this partition (`RequestOptions.partition`). `nil` means the responses without a partition.
  case partition(String?)
  /// The responses of all partitions.
  case all
}
