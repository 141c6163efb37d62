#if Redis && Origin && Service && SQLite
import CacheCore
import CacheTesting
import Foundation
import LoopbackOrigin

/// The disturbances of a soak. Conditions of a disk and a clock end by themselves, so several disturbances can overlap.
extension SoakSuite {
  /// The kinds of disturbances, with their weights.
  private static let kinds: [(name: String, weight: Int)] = [
    ("stop", 20), ("kill", 9), ("restart", 7), ("full disk", 10), ("slow disk", 6), ("file limit", 5), ("origin offline", 6),
    ("origin lies", 10), ("redis", 14), ("clock", 12), ("fleet clock", 5),
  ]

  /// A condition that ends.
  struct Ending {
    var time: Duration
    var member: SoakMember
    var condition: SharedCounts.Condition
  }

  /// Disturbs one process, the origin, the server or a condition at random.
  func disturb() async throws {
    var choice = Int.random(in: 0..<Self.kinds.reduce(0) { $0 + $1.weight }, using: &generator)
    let kind =
      Self.kinds.first { kind in
        choice -= kind.weight
        return choice < 0
      }?.name ?? "stop"
    disturbances[kind, default: 0] += 1
    switch kind {
    case "kill": try await kill(member { !$0.isLasting })
    case "restart": try await restart(member { !$0.isLasting })
    case "full disk":
      let failure = [ENOSPC, EDQUOT, EIO].randomElement(using: &generator) ?? ENOSPC
      set(.writeFailure, member(\.hasConditions), Int64(failure), 500...6_000)
    case "slow disk": set(.writeDelay, member(\.hasConditions), Int64.random(in: 1_000...60_000, using: &generator), 500...6_000)
    case "file limit":
      // Below the size of the database, and of many bodies.
      set(.fileSize, member(\.hasConditions), Int64.random(in: 20_000...500_000, using: &generator), 500...4_000)
    case "origin offline":
      trial.report("the origin is offline")
      counts.begin(.originOffline, .node)
      await origin.server.setLink(.offline)
      try await wait(time(100...3_000))
      await origin.server.setLink(nil)
      counts.end(.originOffline, .node)
    case "origin lies":
      trial.report("the origin lies")
      origin.disturb(Double.random(in: 0.2...0.9, using: &generator))
      try await wait(time(500...5_000))
      origin.disturb(nil)
    case "redis":
      let (disturbance, time) = server.next()
      trial.report("redis: \(disturbance.rawValue) \(time)")
      try await server.run(disturbance, for: time)
    case "clock": set(.clock, member(\.hasConditions), jump(), 500...20_000)
    case "fleet clock": set(.fleetClock, .node, jump(), 500...20_000)
    default: try await stop(member { _ in true })
    }
  }

  private func member(_ isIncluded: (SoakMember) -> Bool) -> SoakMember {
    let member = SoakMember.allCases.filter(isIncluded).randomElement(using: &generator) ?? .node
    trial.report("disturbs \(member.name)")
    return member
  }

  /// Returns a random time. Short disturbances are as interesting as those that exceed the timeouts.
  private func time(_ milliseconds: ClosedRange<Int64>) -> Duration {
    let share = Double.random(in: 0...1, using: &generator)
    let span = Double(milliseconds.upperBound - milliseconds.lowerBound)
    return .milliseconds(milliseconds.lowerBound + Int64(span * share * share))
  }

  /// Returns the seconds of a jump of the wall clock, from a minute to half a day in both directions.
  private func jump() -> Int64 {
    let seconds = [60, 600, 3_600, 43_200].randomElement(using: &generator) ?? 60
    let jump = Int64.random(in: 1...Int64(seconds), using: &generator)
    return Bool.random(using: &generator) ? jump : -jump
  }

  private func set(_ condition: SharedCounts.Condition, _ member: SoakMember, _ value: Int64, _ range: ClosedRange<Int64>) {
    let end = clock.uptime + time(range)
    trial.report("\(member.name): \(condition) \(value) for \(end - clock.uptime)")
    apply(condition, member, value)
    endings.removeAll { $0.member == member && $0.condition == condition }
    endings.append(Ending(time: end, member: member, condition: condition))
  }

  /// Ends the conditions whose time has passed, or all of them.
  func endConditions(all: Bool = false) {
    let now = clock.uptime
    for ending in endings where all || ending.time <= now { apply(ending.condition, ending.member, 0) }
    endings.removeAll { all || $0.time <= now }
  }

  private func apply(_ condition: SharedCounts.Condition, _ member: SoakMember, _ value: Int64) {
    let isJump = condition == .clock || condition == .fleetClock
    if isJump { counts.addJump(condition, member) }
    counts.set(condition, member, to: value)
    if isJump { counts.addJump(condition, member) }
  }

  /// Stops a process for a time.
  private func stop(_ member: SoakMember) async throws {
    guard let pid = pid(member) else { return }
    ofMinute.stops += 1
    counts.begin(.interrupted, member)
    Foundation.kill(pid, SIGSTOP)
    try await wait(time(100...3_000))
    Foundation.kill(pid, SIGCONT)
    counts.end(.interrupted, member)
  }
}

extension SoakMember {
  /// Whether the process applies the shared conditions. The image service knows nothing of the trial.
  fileprivate var hasConditions: Bool { self != .service && self != .restartedService }
}
#endif
