#if Redis && Origin && Service && SQLite
import CacheCore
import CacheManager
import Foundation

/// The completed purges of the resources in one cache, or in all caches of a fleet. They outlive the processes.
///
/// A purge first changes the resources. After it has returned, no load may return an earlier version. After a soft purge, a load
/// may return one as a stale response.
struct SoakFloors: Sendable {
  private let words: SharedWords
  private let versions: SharedVersions
  /// The time without a response of the origin after which a purge has a certain result, or `nil` if it always has.
  private let quietTime: Duration?

  /// - Parameter isFleet: Whether the cache belongs to several processes. One of them can then read a response that another one
  ///   commits at the moment of a purge. The time is longer than all delays of a load and a commit.
  init(path: String, _ versions: SharedVersions, isFleet: Bool) throws {
    words = try SharedWords(path: path, count: VersionedResource.count * 2)
    self.versions = versions
    quietTime = isFleet ? .seconds(40) : nil
  }

  /// The versions of resources at the start of a purge.
  struct Purge {
    fileprivate var floors: [(resource: Int, version: UInt64)]
  }

  /// Starts a purge of resources, after they have changed. A resource whose purge has no certain result is left out.
  func begin(_ resources: [Int]) -> Purge {
    Purge(
      floors: resources.compactMap { resource in
        if let quietTime, !versions.isQuiet(resource, for: quietTime) { return nil }
        return (resource, versions.version(resource))
      })
  }

  /// Ends a purge that has returned without an error.
  func end(_ purge: Purge, _ mode: PurgeMode) {
    for (resource, version) in purge.floors {
      words.raise(resource * 2 + 1, to: version)
      if mode == .hard { words.raise(resource * 2, to: version) }
    }
  }

  /// The lowest versions that a load may return.
  struct Floor {
    /// The lowest version of a stale response.
    let stale: UInt64
    /// The lowest version of a response that is fresh or confirmed.
    let fresh: UInt64
  }

  /// Returns the lowest versions for a load that starts now.
  func floor(_ resource: Int) -> Floor { Floor(stale: words[resource * 2], fresh: words[resource * 2 + 1]) }

  /// Checks the version of a response.
  ///
  /// - Parameter isStale: Whether the response is stale, or was used because the origin failed.
  func check(_ version: UInt64, of resource: VersionedResource, _ floor: Floor, isStale: Bool) throws {
    let current = versions.version(resource.number)
    try require(version <= current, "\(resource.url): version \(version), but the latest is \(current)")
    // A process that cannot reach the server of the fleet may have missed the purge. If the origin fails too, it uses a stale
    // response.
    if isStale, quietTime != nil { return }
    let lowest = isStale ? floor.stale : floor.fresh
    try require(version >= lowest, "\(resource.url): version \(version) after a purge of all before \(lowest)")
  }
}
#endif
