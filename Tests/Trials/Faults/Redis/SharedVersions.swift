#if Redis && Origin
import CacheCore
import Foundation

/// The current version of each resource and its completed purges, in memory that the processes of a trial share.
///
/// A purge first advances the versions. After it has returned, no load of any process may return an earlier version. This is the
/// floor of a resource.
struct SharedVersions: Sendable {
  private let words: SharedWords

  /// The words of one resource, followed by the times of its latest versions.
  private enum Word: Int {
    case version, floor, certainFloor, openRequests, lastResponse
    case times
  }

  private static let remembered = 8
  private static let stride = Word.times.rawValue + remembered
  private static let count = 1 + VersionedResource.count * stride

  /// The longest time from a response of the origin to the end of its commit. The server may be paused for most of it, and then
  /// runs the command afterwards.
  private static let longestCommit = Duration.seconds(10)
  /// The longest time that a load of another waiter has been waiting for the same response.
  private static let longestLoad = Duration.seconds(15)

  /// Maps a file, and creates it if it is missing.
  init(path: String) throws { words = try SharedWords(path: path, count: Self.count) }

  private func index(_ word: Word, _ resource: Int) -> Int { 1 + resource * Self.stride + word.rawValue }

  private func load(_ index: Int) -> UInt64 { words[index] }

  private func store(_ value: UInt64, _ index: Int) { words.set(index, to: value) }

  private static var now: UInt64 { SystemClock().uptime.nanoseconds }

  /// The uptime at which the load begins, or zero before it is known.
  var start: Duration {
    get { .nanoseconds(load(0)) }
    nonmutating set { store(newValue.nanoseconds, 0) }
  }

  // MARK: Versions

  func version(_ resource: Int) -> UInt64 { load(index(.version, resource)) }

  /// Changes a resource.
  func advance(_ resource: Int) {
    while true {
      let version = version(resource)
      store(Self.now, index(.times, resource) + Int((version + 1) % UInt64(Self.remembered)))
      if words.exchange(version, for: version + 1, at: index(.version, resource)) { return }
    }
  }

  /// Runs a request to the origin, which responds with the given version.
  func request<Response>(_ resource: Int, _ respond: (UInt64) -> Response) -> Response {
    words.add(1, at: index(.openRequests, resource))
    defer { words.subtract(1, at: index(.openRequests, resource)) }
    let response = respond(version(resource))
    store(Self.now, index(.lastResponse, resource))
    return response
  }

  // MARK: Purges

  /// The versions of resources at the start of a purge.
  struct Purge {
    fileprivate var floors: [(resource: Int, version: UInt64, isCertain: Bool)] = []
  }

  /// Starts a purge of resources, after they have changed.
  func beginPurge(_ resources: [Int]) -> Purge {
    Purge(floors: resources.map { ($0, version($0), isQuiet($0, for: Self.longestCommit)) })
  }

  /// Returns whether the origin has sent a response of a resource, and sends none now, and has sent none for some time.
  ///
  /// A process can read a response that another process commits at the moment of a purge. The documentation states this limit, so
  /// the result of a purge is certain only for a quiet resource.
  func isQuiet(_ resource: Int, for time: Duration) -> Bool {
    load(index(.openRequests, resource)) == 0 && load(index(.lastResponse, resource)) > 0
      && load(index(.lastResponse, resource)) + time.nanoseconds < Self.now
  }

  /// Ends a purge that has returned without an error.
  ///
  /// - Returns: The number of resources whose purge has a certain result.
  func endPurge(_ purge: Purge) -> Int {
    for (resource, version, isCertain) in purge.floors {
      words.raise(index(.floor, resource), to: version)
      if isCertain { words.raise(index(.certainFloor, resource), to: version) }
    }
    return purge.floors.count(where: \.isCertain)
  }

  /// The lowest versions that a load may return.
  struct Floors {
    let start: Duration
    let possible, certain: UInt64
  }

  /// Returns the floors for a load that starts now.
  func floors(_ resource: Int) -> Floors {
    Floors(start: SystemClock().uptime, possible: load(index(.floor, resource)), certain: load(index(.certainFloor, resource)))
  }

  /// Checks the version that a load returned.
  ///
  /// - Returns: Whether the version was purged while it was committed.
  func check(_ version: UInt64, of resource: Int, _ floors: Floors) throws -> Bool {
    let current = self.version(resource)
    try require(version <= current, "/\(resource): version \(version), but the latest is \(current)")
    try require(version >= floors.certain, "/\(resource): version \(version) after a purge of all before \(floors.certain)")
    if version < current {
      // The origin has not sent or confirmed this version since then.
      let next = max(version + 1, current + 1 - min(UInt64(Self.remembered), current))
      let changed = Duration.nanoseconds(load(index(.times, resource) + Int(next % UInt64(Self.remembered))))
      let limit = changed + .seconds(VersionedResource(resource).lifetime) + Self.longestLoad
      try require(
        floors.start < limit,
        "/\(resource): version \(version) is fresh \(floors.start - changed) after a change, with a lifetime of "
          + "\(VersionedResource(resource).lifetime) s")
    }
    return version < floors.possible
  }
}

extension Duration {
  fileprivate static func nanoseconds(_ count: UInt64) -> Duration { .nanoseconds(Int64(clamping: count)) }

  fileprivate var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000)
  }
}
#endif
