#if Redis && Origin && Service && SQLite
import AsyncHTTPNetworking
import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import DiskStore
import Dispatch
import ETagValidation
import Foundation
import MemoryStore
import RedisStore
import SQLiteStore
import StoreComposition

/// A process with three managers, each with a memory store: one on a disk, one on a database, and one on a disk and a Redis
/// server that the nodes share. Clients load and purge with all of them.
struct SoakNode: Sendable {
  private static let memory = 4_000_000
  private static let disk: Int64 = 16_000_000
  /// The idle time of transfers from the origin. No other timeout ends a load.
  private static let idleTimeout = Duration.seconds(5)

  private let member: SoakMember
  private let seed: UInt64
  private let log: SoakLog
  private let time: RunningTime
  private let versions: SharedVersions
  private let loaders: [SoakLoader]
  private let disks: [DiskCache]
  private let shared: RedisCache
  private let layered: LayeredStore
  private let engine: AsyncHTTPDownloader
  private let faulty: Faulty
  private let isOver = SoakSwitch()
  private let clock = SystemClock()

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 5, let member = Int(words[0]).flatMap({ SoakMember(rawValue: $0) }), let seed = UInt64(words[1]),
      let server = URL(string: words[2]), let port = Int(words[3])
    else { throw FailedCheck("'soak-node' needs a member, a seed, a URL, a port and a folder") }
    let (trial, folder) = (words[4], "\(words[4])/\(member.name)")
    (self.member, self.seed) = (member, seed)
    let counts = try SharedCounts(path: "\(trial)/counts")
    let versions = try SharedVersions(path: "\(trial)/versions")
    let (time, faulty) = (RunningTime(), Faulty())
    let log = SoakLog(
      counts, member, time, tell: { Children.tell("failed \($0)") }, note: { Children.tell("note \($0)") })
    (self.versions, self.time, self.faulty, self.log) = (versions, time, faulty, log)
    let engine = try AsyncHTTPDownloader(
      configuration: .init {
        $0.connectionsPerHost = 8
        $0.idleTimeout = Self.idleTimeout
      })
    self.engine = engine
    func disk(_ name: String, _ size: Int64, _ clock: SoakClock) throws -> DiskCache {
      try DiskCache(path: "\(folder)/\(name)", configuration: .init(sizeLimit: size, clock: clock), calls: faulty.calls)
    }
    func loader(
      _ name: String, _ store: any CacheStore, _ clock: SoakClock, fleet: (any CacheFleet)? = nil
    ) throws -> SoakLoader {
      var configuration = ResourceManager.Configuration()
      configuration.downloader = SoakDownloader(engine: engine, port: port).decoding()
      configuration.memory = MemoryCache(limits: .init(cost: Self.memory), clock: clock)
      configuration.store = store
      configuration.fleet = fleet
      configuration.clock = clock
      configuration.timeout = SoakLog.timeout
      configuration.collapseTimeout = SoakLog.collapseTimeout
      configuration.validator = ETagValidator(parts: .completed)
      configuration.callbackQueue = .immediate
      // Two managers must not write to the same file.
      let files = "\(folder)/files-\(name)"
      try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
      let path = fleet == nil ? "\(folder)/purges-\(name)" : "\(trial)/purges-fleet"
      return SoakLoader(
        manager: ResourceManager(configuration), name: "\(member.name), \(name)",
        purges: try CompletedPurges(path: path, versions, clock, isFleet: fleet != nil), versions: versions, log: log,
        folder: files)
    }
    let own = SoakClock(counts: counts, member: member)
    let common = SoakClock(counts: counts, member: .node, condition: .fleetClock)
    let (first, second) = (try disk("disk", Self.disk, own), try disk("layer", Self.disk / 2, common))
    let database = try SQLiteCache(path: "\(folder)/database", configuration: .init(sizeLimit: Self.disk, clock: own))
    shared = try RedisCache(url: server, configuration: .init { $0.clock = common })
    layered = try LayeredStore([second, shared])
    disks = [first, second]
    loaders = [
      try loader("disk", first, own), try loader("database", database, own),
      try loader("fleet", layered, common, fleet: RedisFleet(shared, member: member.name)),
    ]
  }

  // MARK: The process

  func run() async throws {
    // A file above a limit is an error of the write, and not the end of the process.
    signal(SIGXFSZ, SIG_IGN)
    signal(SIGTERM, SIG_IGN)
    let ending = DispatchSource.makeSignalSource(signal: SIGTERM)
    ending.setEventHandler { [isOver] in isOver.turnOn() }
    ending.resume()
    let (counts, faulty, member) = (log.counts, faulty, member)
    SoakLog.watch([log], time, parent: getppid()) { counts.apply(to: faulty, member) }
    Children.tell("ready")
    await withTaskGroup(of: Void.self) { group in
      for (index, loader) in loaders.enumerated() {
        let number = seed &* 64 &+ UInt64(index) &* 4
        group.addTask { await load(loader, SplitMix(state: number)) }
        group.addTask { await purge(loader, SplitMix(state: number + 1)) }
      }
      group.addTask { await hit(SplitMix(state: seed &* 64 &+ 63)) }
    }
    try await end()
    Children.tell("done")
  }

  /// Closes the caches, and checks the disks.
  private func end() async throws {
    let start = time.value
    // Waiters of a client that has left may still be running. An operation that does not end is reported.
    while !log.isIdle, time.value - start < SoakLog.limit * 2 { try await clock.sleep(for: .milliseconds(5)) }
    let number = log.begin("\(member.name): the end of the managers")
    for loader in loaders { await loader.manager.close() }
    await layered.flush()
    await shared.close()
    await engine.close()
    for disk in disks {
      let report = try await disk.verify()
      if !report.isClean { log.fail(.wrong, "\(member.name): the disk at the end: \(report)") }
      await disk.close()
    }
    log.end(number)
  }

  // MARK: Clients

  private func sleep(_ milliseconds: ClosedRange<Int64>, _ generator: inout SplitMix) async {
    try? await clock.sleep(for: .milliseconds(Int64.random(in: milliseconds, using: &generator)))
  }

  private func hit(_ generator: SplitMix) async {
    var generator = generator
    while !isOver.isOn {
      for loader in loaders {
        for _ in 0..<3 { await loader.hit(VersionedResource(VersionedResource.hot.randomElement(using: &generator) ?? 0)) }
      }
      await sleep(40...120, &generator)
    }
  }

  private func load(_ loader: SoakLoader, _ generator: SplitMix) async {
    var generator = generator
    while !isOver.isOn {
      let resource = VersionedResource(number(&generator))
      let call = SoakLoader.Call.allCases.randomElement(using: &generator) ?? .async
      let language = VersionedResource.languages.randomElement(using: &generator)
      let delay = Duration.microseconds(Int64.random(in: 0...20_000, using: &generator))
      let choice = Int.random(in: 0..<100, using: &generator)
      switch choice {
      case 0..<4:
        // The waiters of one request. Some of them leave.
        await withTaskGroup(of: Void.self) { group in
          for index in 0..<Int.random(in: 5...30, using: &generator) {
            group.addTask { await loader.load(resource, language, by: call, cancelledAfter: index % 8 == 7 ? delay : nil) }
          }
        }
      case 4..<16: await loader.load(resource, language, by: call, cancelledAfter: delay)
      case 16..<24: await loader.loadFile(resource, cancelledAfter: choice < 18 ? delay : nil)
      case 24..<34: await loader.respond(resource, language, nil, leavesAfter: nil)
      case 34..<38:
        await loader.respond(resource, language, nil, leavesAfter: Int.random(in: 1...resource.length(0), using: &generator))
      case 38..<54:
        let range = SoakRange.random(resource.length(0), &generator)
        await loader.respond(resource, language, range, leavesAfter: nil)
      default: await loader.load(resource, language, by: call)
      }
      // Without a purge, the change is seen when the responses are no longer fresh.
      if resource.lifetime < 60, choice % 20 == 0 { versions.advance(resource.number) }
      await sleep(20...180, &generator)
    }
  }

  private func number(_ generator: inout SplitMix) -> Int {
    let numbers =
      switch Int.random(in: 0..<1_000, using: &generator) {
      case 0..<4: VersionedResource.large
      case 4..<250: VersionedResource.hot
      case 250..<600: VersionedResource.items.prefix(64)
      default: VersionedResource.items
      }
    return numbers.randomElement(using: &generator) ?? 0
  }

  private func purge(_ loader: SoakLoader, _ generator: SplitMix) async {
    var generator = generator
    while true {
      await sleep(2_000...10_000, &generator)
      guard !isOver.isOn else { return }
      let (selection, resources) = VersionedResource.purge(&generator)
      // Without a change, a 304 confirms the responses after a soft purge.
      if Int.random(in: 0..<4, using: &generator) > 0 { for resource in resources { versions.advance(resource) } }
      await loader.purge(selection, Bool.random(using: &generator) ? .hard : .soft, resources)
    }
  }
}
#endif
