#if Redis && Origin
import CacheCore
import CacheTesting
import Foundation
import LocalRedis

/// A disturbance of a Redis server.
enum Disturbance: String, CaseIterable {
  /// The server is killed, and returns without its data.
  case loss
  /// The server is killed, and returns with its data.
  case crash
  /// The process of the server is stopped for a time (`SIGSTOP`).
  case pause
  /// The server holds all commands for a time.
  case hold
  /// The memory limit of the server is below its data.
  case full
  /// Data of another program fills the memory of the server.
  case foreign
  /// All data is removed.
  case flush
  /// All connections are closed.
  case disconnection
  /// All scripts are removed.
  case scripts
}

/// A server that is disturbed at random, and works again after each disturbance.
struct DisturbedServer {
  private static let unlimited = "4gb"

  private var generator: SplitMix
  private let clock = SystemClock()
  private var evicts = false
  private let server: RedisServer
  private(set) var counts: [Disturbance: Int] = [:]

  var url: URL { get throws { try server.url } }

  /// Starts a server that appends each change to a file, so that it can return with its data.
  init(seed: UInt64) async throws {
    generator = SplitMix(state: seed)
    server = try await RedisServer(
      // Scripts/faults ends a server that was left behind, by its process identifier.
      ["--appendonly", "yes", "--appendfsync", "no", "--pidfile", "pid", "--maxmemory", Self.unlimited], hasPort: true)
  }

  func stop() { server.kill() }

  /// Returns a random disturbance and the time that it takes.
  mutating func next() -> (Disturbance, Duration) {
    let disturbance = Disturbance.allCases.randomElement(using: &generator) ?? .pause
    let longest: Int64 =
      switch disturbance {
      case .loss, .crash, .pause: 5_000
      case .hold, .full, .foreign: 3_000
      case .flush, .disconnection, .scripts: 0
      }
    // Short disturbances are as interesting as those that exceed the timeouts.
    let share = Double.random(in: 0...1, using: &generator)
    return (disturbance, .milliseconds(Int64(Double(longest) * share * share)))
  }

  /// Returns the time until the next disturbance.
  mutating func interval() -> Duration { .milliseconds(Int64.random(in: 100...2_500, using: &generator)) }

  mutating func run(_ disturbance: Disturbance, for time: Duration) async throws {
    counts[disturbance, default: 0] += 1
    switch disturbance {
    case .loss:
      server.kill()
      for name in ["appendonlydir", "appendonly.aof"] {
        try? FileManager.default.removeItem(atPath: "\(server.folder)/\(name)")
      }
      try await clock.sleep(for: time)
      // A purge by tag depends on the policy, which may only change together with the data.
      evicts = Int.random(in: 0..<3, using: &generator) == 0
      try await start()
    case .crash:
      server.kill()
      try await clock.sleep(for: time)
      try await start()
    case .pause:
      server.pause()
      try await clock.sleep(for: time)
      server.resume()
    case .hold:
      // The connection that sent the command is held, too.
      let milliseconds = Int64(time / .milliseconds(1))
      if milliseconds > 0 { try server.require(["CLIENT", "PAUSE", "\(milliseconds)"]) }
    case .full:
      try limitMemory(used() / 2)
      try await clock.sleep(for: time)
      try limitMemory(nil)
    case .foreign:
      let names = (0..<16).map { "foreign:\($0)" }
      try limitMemory(used() + 4_000_000)
      // A full server may refuse some of them.
      for name in names { try server.run(["SET", name, String(repeating: "x", count: 1_000_000)]) }
      try await clock.sleep(for: time)
      try limitMemory(nil)
      try server.require(["UNLINK"] + names)
    case .flush: try server.require(["FLUSHALL"])
    case .disconnection: try server.require(["CLIENT", "KILL", "TYPE", "normal"])
    case .scripts: try server.require(["SCRIPT", "FLUSH"])
    }
  }

  private func start() async throws {
    try await server.start(["--maxmemory-policy", evicts ? "allkeys-random" : "noeviction"])
  }

  /// Returns the memory that the server uses, in bytes.
  private func used() throws -> Int {
    let lines = try server.run(["INFO", "memory"]).split(separator: "\r\n")
    guard let line = lines.first(where: { $0.hasPrefix("used_memory:") }), let count = Int(line.dropFirst(12)) else {
      throw FailedCheck("the server does not state its memory: \(lines)")
    }
    return count
  }

  private func limitMemory(_ bytes: Int?) throws {
    try server.require(["CONFIG", "SET", "maxmemory", bytes.map { "\($0)" } ?? Self.unlimited])
  }
}
#endif
