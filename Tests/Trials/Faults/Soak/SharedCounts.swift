#if Redis && Origin && Service && SQLite
import CacheCore
import Foundation

/// The processes of a soak. The first process of each kind runs from the beginning to the end, and is only stopped for a time.
/// The second one is also killed and restarted.
enum SoakMember: Int, CaseIterable {
  case node, restartedNode, gateway, restartedGateway, service, restartedService

  /// The members that run from the beginning to the end.
  static let lasting: [SoakMember] = [.node, .gateway, .service]

  var isLasting: Bool { Self.lasting.contains(self) }

  var name: String {
    switch self {
    case .node: "node"
    case .restartedNode: "node2"
    case .gateway: "gateway"
    case .restartedGateway: "gateway2"
    case .service: "service"
    case .restartedService: "service2"
    }
  }
}

/// The counts, the times of hits and the conditions of all processes of a soak, in memory that they share.
struct SharedCounts: Sendable {
  /// The counts of one member.
  enum Count: Int, CaseIterable {
    /// All loads and requests, and those by the source of the response.
    case loads, memory, disk, revalidated, network, stale
    case cancelled, purges, failedPurges
    /// The loads that failed with an error that a disturbance explains, by the kind of the error.
    case timedOut, connection, body, status, storage
    /// Responses with bytes that no version has, from before a purge, or that are used as fresh beyond their lifetime, and errors
    /// that no disturbance can cause.
    case wrong
    /// Errors that a disturbance can cause, without such a disturbance during the operation.
    case unexplained
    /// Operations that do not end.
    case hung
    /// Waiters whose completion was not called, or was called twice.
    case lost
  }

  /// The conditions of one member, which it applies itself.
  enum Condition: Int, CaseIterable {
    /// The seconds that the wall clock is ahead.
    case clock
    /// The same for the responses that all nodes share. The clocks of a fleet must agree.
    case fleetClock
    /// The number of jumps of all clocks.
    case jumps
    /// The uptime in nanoseconds of the last jump of the clock, and of that of the fleet.
    case clockJump, fleetClockJump
    /// The error number of writes, or zero.
    case writeFailure
    /// The delay of a write in microseconds.
    case writeDelay
    /// The largest file in bytes, or zero for no limit.
    case fileSize
    /// The uptime in nanoseconds at which the origin was last offline, and the maximum while it is.
    case originOffline
    /// The same for a process that is stopped, or ends and starts again.
    case interrupted
    /// The uptime in nanoseconds at which writes last failed, or files were last limited.
    case diskFailure
  }

  /// The number of buckets for the times of hits.
  private static let buckets = 640
  private static let stride = Count.allCases.count + Condition.allCases.count + buckets

  /// The index of the first time of a fault by resource, after the words of the members.
  static let firstFault = SoakMember.allCases.count * stride

  let words: SharedWords

  init(path: String) throws { words = try SharedWords(path: path, count: Self.firstFault + Source.count * 2) }

  private func index(_ member: SoakMember, _ offset: Int) -> Int { member.rawValue * Self.stride + offset }

  // MARK: Counts

  func add(_ count: Count, _ number: Int = 1, _ member: SoakMember) {
    words.add(UInt64(number), at: index(member, count.rawValue))
  }

  func total(_ count: Count, _ member: SoakMember) -> Int { Int(words[index(member, count.rawValue)]) }

  /// The sum of a count over all members.
  func total(_ count: Count) -> Int { SoakMember.allCases.reduce(0) { $0 + total(count, $1) } }

  // MARK: Conditions

  func condition(_ condition: Condition, _ member: SoakMember) -> Int64 {
    Int64(bitPattern: words[index(member, Count.allCases.count + condition.rawValue)])
  }

  func set(_ condition: Condition, _ member: SoakMember, to value: Int64) {
    words.set(index(member, Count.allCases.count + condition.rawValue), to: UInt64(bitPattern: value))
  }

  /// Applies the conditions of the disk to this process.
  func apply(to faulty: Faulty, _ member: SoakMember) {
    let (failure, delay) = (condition(.writeFailure, member), condition(.writeDelay, member))
    faulty.set { ($0.failure, $0.delay) = (failure == 0 ? nil : Int32(failure), UInt32(delay)) }
    let size = condition(.fileSize, member)
    if failure != 0 || size != 0 { end(.diskFailure, member) }
    // The limit applies to all files of the process, also to those of SQLite.
    try? TrialFolder.limit(.fileSize, to: size == 0 ? nil : UInt64(size))
  }

  /// Records a jump of a clock, before and after it, so that a load notices one that it overlaps.
  func addJump(_ clock: Condition, _ member: SoakMember) {
    end(clock == .clock ? .clockJump : .fleetClockJump, member)
    words.add(1, at: index(.node, Count.allCases.count + Condition.jumps.rawValue))
  }

  // MARK: Times of hits

  /// Adds the time of a hit in memory to its bucket. Each power of two has 16 buckets, so a time is known within 6 %.
  func addHit(_ time: Duration, _ member: SoakMember) {
    let nanoseconds = UInt64(max(0, time.saturatedNanoseconds))
    let bucket: Int
    if nanoseconds < 16 {
      bucket = Int(nanoseconds)
    } else {
      let power = 63 - nanoseconds.leadingZeroBitCount
      bucket = (power - 3) * 16 + Int(nanoseconds >> UInt64(power - 4) & 15)
    }
    words.add(1, at: index(member, Self.stride - Self.buckets + min(bucket, Self.buckets - 1)))
  }

  /// The number of hits by bucket, of all members.
  var hits: [UInt64] {
    (0..<Self.buckets).map { bucket in
      SoakMember.allCases.reduce(0) { $0 + words[index($1, Self.stride - Self.buckets + bucket)] }
    }
  }

  /// Returns a percentile in microseconds, or `nil` if there are no hits.
  static func percentile(_ share: Double, of hits: [UInt64]) -> Double? {
    let total = hits.reduce(0, +)
    guard total > 0 else { return nil }
    var left = UInt64((Double(total) * share).rounded(.up))
    for (bucket, count) in hits.enumerated() {
      guard left > count else { return Self.time(bucket) }
      left -= count
    }
    return Self.time(hits.count - 1)
  }

  /// The middle of a bucket in microseconds.
  private static func time(_ bucket: Int) -> Double {
    guard bucket >= 16 else { return Double(bucket) / 1_000 }
    let (power, part) = (bucket / 16 + 3, bucket % 16)
    return (Double(16 + part) + 0.5) * Double(UInt64(1) << UInt64(power - 4)) / 1_000
  }
}

/// The clock of a member, which jumps with its condition.
struct SoakClock: CacheClock {
  let counts: SharedCounts
  let member: SoakMember
  var condition = SharedCounts.Condition.clock

  var now: Timestamp { SystemClock().now + .seconds(counts.condition(condition, member)) }

  var uptime: Duration { SystemClock().uptime }

  /// The seconds that the clock is ahead.
  var offset: Int64 { counts.condition(condition, member) }

  /// The uptime of the last jump of this clock.
  var lastJump: Duration { .nanoseconds(counts.condition(condition == .clock ? .clockJump : .fleetClockJump, member)) }

  /// The number of jumps of all clocks so far.
  var jumps: Int64 { counts.condition(.jumps, .node) }

  func sleep(for duration: Duration) async throws(CancellationError) { try await SystemClock().sleep(for: duration) }
}
#endif
