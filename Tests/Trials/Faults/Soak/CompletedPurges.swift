#if Redis && Origin && Service && SQLite
import CacheCore
import CacheManager
import Foundation
import HTTPTypes

/// The completed purges of the resources in one cache, or in all caches of a fleet. They outlive the processes.
///
/// A purge first changes the resources. After it has returned, no load may return an earlier version. After a soft purge, a load
/// may return one as a stale response.
///
/// A soft purge makes responses stale from its wall-clock time on. A soft purge while the clock is ahead or behind is left out,
/// because its time says nothing about loads with the right clock. A clock that is set back makes the responses of other purges
/// fresh again, so a load before the time of a purge is not checked against it.
struct CompletedPurges: Sendable {
  private let words: SharedWords
  private let versions: SharedVersions
  private let clock: SoakClock
  /// The time without a response of the origin after which a purge has a certain result, or `nil` if it always has.
  private let quietTime: Duration?

  private enum Word: Int, CaseIterable { case hard, soft, softTime }

  /// The counts of all resources.
  private enum Total: Int, CaseIterable { case purges, loads, freshLoads }

  /// - Parameters:
  ///   - clock: The clock of the cache.
  ///   - isFleet: Whether the cache belongs to several processes. One of them can then read a response that another one commits
  ///     at the moment of a purge. The quiet time is longer than all delays of a load and a commit.
  init(path: String, _ versions: SharedVersions, _ clock: SoakClock, isFleet: Bool) throws {
    words = try SharedWords(path: path, count: VersionedResource.count * Word.allCases.count + Total.allCases.count)
    (self.versions, self.clock) = (versions, clock)
    quietTime = isFleet ? .seconds(40) : nil
  }

  private func index(_ word: Word, _ resource: Int) -> Int { resource * Word.allCases.count + word.rawValue }

  private func index(_ total: Total) -> Int { VersionedResource.count * Word.allCases.count + total.rawValue }

  /// The number of purged resources with a certain result so far.
  var purgedResources: Int { Int(words[index(.purges)]) }

  /// The number of loads so far that were checked against a purge.
  var checkedLoads: Int { Int(words[index(.loads)]) }

  /// The number of loads of fresh responses so far whose lifetime was checked.
  var freshLoads: Int { Int(words[index(.freshLoads)]) }

  /// The wall-clock time of the cache, and the number of its jumps so far.
  private var time: (now: Int64, jumps: Int64) { (max(0, clock.now.nanoseconds), clock.jumps) }

  // MARK: Purges

  /// The versions of resources at the start of a purge.
  struct Purge {
    fileprivate var minimums: [(resource: Int, version: UInt64)]
    fileprivate var start: (now: Int64, jumps: Int64)
  }

  /// Starts a purge of resources, after they have changed. A resource whose purge has no certain result is left out.
  func begin(_ resources: [Int]) -> Purge {
    let minimums: [(Int, UInt64)] = resources.compactMap { resource in
      if let quietTime, !versions.isQuiet(resource, for: quietTime) { return nil }
      return (resource, versions.version(resource))
    }
    return Purge(minimums: minimums, start: time)
  }

  /// Ends a purge that has returned without an error.
  func end(_ purge: Purge, _ mode: PurgeMode) {
    let offset = clock.offset
    let time = time
    // The number of jumps is read last, so a jump during the purge is noticed.
    guard mode == .hard || offset == 0 && time.jumps == purge.start.jumps else { return }
    for (resource, version) in purge.minimums {
      switch mode {
      case .hard: words.raise(index(.hard, resource), to: version)
      case .soft:
        words.raise(index(.softTime, resource), to: UInt64(time.now))
        words.raise(index(.soft, resource), to: version)
      }
    }
    words.add(UInt64(purge.minimums.count), at: index(.purges))
  }

  // MARK: Loads

  /// The purges that a load must respect.
  struct Minimum {
    fileprivate let hard, soft: UInt64
    fileprivate let softTime: Int64
    fileprivate let start: (now: Int64, jumps: Int64)
    /// The uptime at which the load starts.
    let uptime: Duration
  }

  /// Returns the purges that a load must respect that starts now.
  func minimum(_ resource: Int) -> Minimum {
    Minimum(
      hard: words[index(.hard, resource)], soft: words[index(.soft, resource)],
      softTime: Int64(words[index(.softTime, resource)]), start: time, uptime: clock.uptime)
  }

  /// The longest time from the start of the load that found a fresh response to the start of a load that shares it.
  private static let longestLoad = Duration.seconds(10)

  /// Checks that a response that was used as fresh had been sent or confirmed by the origin within its lifetime. A response from
  /// before a jump of the clock is not checked.
  func checkFreshness(_ response: HTTPResponse, of resource: VersionedResource, _ minimum: Minimum) throws {
    guard let sent = response.headerFields[.sentAt].flatMap({ Int64($0) }) else {
      throw FailedCheck("\(resource.url): the response does not state when the origin sent it")
    }
    let time = minimum.uptime - .nanoseconds(sent)
    guard clock.lastJump < .nanoseconds(sent) else { return }
    try require(
      time <= .seconds(resource.lifetime) + Self.longestLoad,
      "\(resource.url): fresh \(time) after the origin sent it, with a lifetime of \(resource.lifetime) s")
    if time > .zero { words.add(1, at: index(.freshLoads)) }
  }

  /// Checks the version of a response.
  ///
  /// - Parameter isStale: Whether the response is stale, or was used because the origin failed.
  func check(_ version: UInt64, of resource: VersionedResource, _ minimum: Minimum, isStale: Bool) throws {
    let current = versions.version(resource.number)
    try require(version <= current, "\(resource.url): version \(version), but the latest is \(current)")
    // A process that cannot reach the server of the fleet may have missed the purge. If the origin fails too, it uses a stale
    // response.
    if isStale, quietTime != nil { return }
    let checksSoft = !isStale && clock.jumps == minimum.start.jumps && minimum.start.now >= minimum.softTime
    if minimum.hard > 0 || checksSoft && minimum.soft > 0 { words.add(1, at: index(.loads)) }
    try require(version >= minimum.hard, "\(resource.url): version \(version) after a purge of all before \(minimum.hard)")
    guard checksSoft else { return }
    try require(
      version >= minimum.soft, "\(resource.url): fresh version \(version) after a soft purge of all before \(minimum.soft)")
  }
}
#endif
