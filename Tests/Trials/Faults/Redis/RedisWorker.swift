#if Redis && Origin
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import MemoryStore
import RedisStore
import StoreComposition

/// One of the processes of a fleet, with clients that load and purge for some time.
struct RedisWorker: Sendable {
  private let number: UInt64
  private let seed: UInt64
  private let versions: SharedVersions
  private let phases: Int
  private let phase: Duration
  private let loader: VersionedLoader
  private let disk: DiskCache
  private let shared: RedisCache
  private let clock = SystemClock()

  private var log: LoadLog { loader.log }

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 6, let number = UInt64(words[0]), let seed = UInt64(words[1]), let server = URL(string: words[2]),
      let phases = Int(words[4]), let phase = Int64(words[5])
    else { throw FailedCheck("'redis' needs a number, a seed, a URL, a folder, a number of phases and their milliseconds") }
    let folder = words[3]
    (self.number, self.seed, self.phases, self.phase) = (number, seed &* 1_000 &+ number, phases, .milliseconds(phase))
    versions = try SharedVersions(path: folder + "/versions")
    shared = try RedisCache(url: server)
    // The limit is much smaller than all bodies, so that many of them are read from the server.
    disk = try DiskCache(path: "\(folder)/\(number)", configuration: .init(sizeLimit: 16_000_000))
    let store = try LayeredStore([disk, shared])
    var configuration = ResourceManager.Configuration()
    let log = LoadLog(phases: phases, notes: "\(folder)/\(number).log")
    configuration.downloader = VersionedOrigin(versions, log, seed: self.seed)
    configuration.memory = MemoryCache(limits: .init(cost: 6_000_000))
    configuration.store = store
    configuration.fleet = RedisFleet(shared, member: "process-\(number)")
    configuration.validator = ETagValidator()
    configuration.callbackQueue = .immediate
    loader = VersionedLoader(
      ResourceManager(configuration), store, [("disk", disk), ("server", shared)], versions, log)
  }

  func run() async throws {
    watch()
    Children.tell("ready")
    while versions.start == .zero { try await clock.sleep(for: .milliseconds(5)) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await hit() }
      for client in 1...4 { group.addTask { await load(SplitMix(state: seed &* 16 &+ UInt64(client))) } }
      group.addTask { await purge(SplitMix(state: seed &* 16)) }
    }
    do {
      try await end()
      Children.tell("done")
    } catch {
      log.fail("\(error)")
    }
  }

  /// Reports an operation that takes too long, from a thread that does not depend on the tasks. Ends with the parent process.
  private func watch() {
    let (log, parent) = (log, getppid())
    Thread.detachNewThread {
      while getppid() == parent {
        if let name = log.overdue { log.fail("a hang: \(name) has been running for more than \(LoadLog.limit)") }
        usleep(200_000)
      }
      exit(1)
    }
  }

  private var isOver: Bool { clock.uptime >= versions.start + phase * phases }

  private func sleep(_ milliseconds: ClosedRange<Int64>, _ generator: inout SplitMix) async {
    try? await clock.sleep(for: .milliseconds(Int64.random(in: milliseconds, using: &generator)))
  }

  // MARK: Clients

  /// Loads hot resources and measures those that are in memory. The first fifth of a phase is not measured, because the fleet
  /// recovers in it.
  private func hit() async {
    var generator = SplitMix(state: seed &* 16 &+ 5)
    while !isOver {
      for _ in 0..<10 {
        let resource = VersionedResource(VersionedResource.hot.randomElement(using: &generator) ?? 0)
        let start = clock.uptime
        guard let time = await loader.hit(resource) else { continue }
        let (elapsed, length) = (start - versions.start, phase)
        let index = Int(elapsed / length)
        if elapsed - length * index >= length / 5 { log.add(time, to: index) }
      }
      await sleep(5...15, &generator)
    }
  }

  private func load(_ generator: SplitMix) async {
    var generator = generator
    while !isOver {
      let resource = VersionedResource(number(&generator))
      let choice = Int.random(in: 0..<100, using: &generator)
      let call = VersionedLoader.Call.allCases.randomElement(using: &generator) ?? .async
      let language = VersionedResource.languages.randomElement(using: &generator)
      switch choice {
      case 0..<4:
        // The waiters of one request. Some of them leave.
        await withTaskGroup(of: Void.self) { group in
          for index in 0..<Int.random(in: 10...40, using: &generator) {
            let patience: Duration? = index % 8 == 7 ? .milliseconds(Int64.random(in: 0...30, using: &generator)) : nil
            group.addTask { await loader.load(resource, language, by: call, cancelledAfter: patience) }
          }
        }
      case 4..<16:
        let patience = Duration.microseconds(Int64.random(in: 0...20_000, using: &generator))
        await loader.load(resource, language, by: call, cancelledAfter: patience)
      default: await loader.load(resource, language, by: call)
      }
      // Without a purge, the change is seen when the responses are no longer fresh.
      if resource.lifetime < 60, choice % 20 == 0 { versions.advance(resource.number) }
      await sleep(0...80, &generator)
    }
  }

  private func number(_ generator: inout SplitMix) -> Int {
    let numbers =
      switch Int.random(in: 0..<1_000, using: &generator) {
      case 0..<5: VersionedResource.large
      case 5..<300: VersionedResource.hot
      case 300..<650: VersionedResource.items.prefix(64)
      default: VersionedResource.items
      }
    return numbers.randomElement(using: &generator) ?? 0
  }

  private func purge(_ generator: SplitMix) async {
    var generator = generator
    while true {
      await sleep(1_000...6_000, &generator)
      guard !isOver else { return }
      let (selection, resources) = VersionedResource.purge(&generator)
      // Without a change, a 304 confirms the responses after a soft purge.
      if Int.random(in: 0..<4, using: &generator) > 0 { for resource in resources { versions.advance(resource) } }
      await loader.purge(selection, Bool.random(using: &generator) ? .hard : .soft, resources)
    }
  }

  // MARK: The end

  private func end() async throws {
    // An operation that does not end is reported as a hang.
    while !log.running.isEmpty { try await clock.sleep(for: .milliseconds(5)) }
    try await recover()
    let closing = log.begin("the end of the manager")
    await loader.close()
    await shared.close()
    log.end(closing)
    let report = try await disk.verify()
    try require(report.isClean, "the disk of a process: \(report)")
    await disk.close()
    for (name, count) in log.counts { Children.tell("count \(count) \(name)") }
    let counters = shared.counters
    for (name, count) in [
      ("hits", counters.hits), ("misses", counters.misses), ("damaged", counters.damaged), ("writes", counters.writes),
      ("failed writes", counters.failedWrites), ("failed calls", counters.failedCalls),
      ("lost connections", counters.lostConnections),
    ] { Children.tell("count \(count) server: \(name)") }
    for (index, time) in log.percentiles.enumerated() { if let time { Children.tell("time \(index) \(time)") } }
  }

  /// Waits until the process uses its memory again without asking the origin.
  private func recover() async throws {
    let start = clock.uptime
    while await loader.hit(VersionedResource(0)) == nil {
      try require(clock.uptime - start < .seconds(30), "no hit in memory within 30 s after the last disturbance")
      try await clock.sleep(for: .milliseconds(20))
    }
  }
}
#endif
