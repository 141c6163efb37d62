#if Redis && Origin && Service && SQLite
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import ImageService
import LoopbackOrigin

/// Managers on all stores, a gateway and an image service that run for hours under a seeded mix of loads and disturbances.
final class SoakSuite {
  static let defaultTime = 600

  let trial: Trial
  let counts: SharedCounts
  let versions: SharedVersions
  let clock = SystemClock()
  let isOver = SoakSwitch()
  let origin: SoakOrigin
  var server: DisturbedServer
  private var processes: [SoakMember: SoakProcess] = [:]
  private let ports: [SoakMember: SoakPort]
  private let services: [SoakMember: RunningService]
  private let serviceKey: String
  private var report: SoakReport
  private var nextSample = Duration.zero
  private var nextRow: Duration
  private let lines = SoakLines()
  var generator: SplitMix
  var disturbances: [String: Int] = [:]
  /// The conditions of disks and clocks that last for some time.
  var endings: [Ending] = []
  /// The disturbances of processes in this minute.
  var ofMinute = (stops: 0, kills: 0, restarts: 0)

  init(_ trial: Trial) async throws {
    self.trial = trial
    counts = try SharedCounts(path: "\(trial.folder)/counts")
    versions = try SharedVersions(path: "\(trial.folder)/versions")
    generator = SplitMix(state: trial.seed)
    serviceKey = (0..<32).map { _ in String(UInt8.random(in: 0x10...0xFF), radix: 16) }.joined()
    server = try await DisturbedServer(seed: trial.seed)
    origin = try await SoakOrigin.start(versions, counts, seed: trial.seed)
    ports = Dictionary(uniqueKeysWithValues: SoakMember.allCases.map { ($0, SoakPort()) })
    services = [.service: RunningService(), .restartedService: RunningService()]
    report = try SoakReport(counts, csv: trial.csv)
    nextRow = SystemClock().uptime + .seconds(60)
  }

  func run() async throws -> [String] {
    defer { server.stop() }
    for member in SoakMember.allCases { try await start(member) }
    nextRow = clock.uptime + .seconds(60)
    let (time, end) = (RunningTime(), clock.uptime + .seconds(trial.seconds ?? (trial.isQuick ? 60 : Self.defaultTime)))
    let clients = try clients(time)
    SoakLog.watch(clients.logs, time)
    let work = Task { await clients.run() }
    while clock.uptime < end {
      try await wait(min(end - clock.uptime, .milliseconds(Int64.random(in: 300...2_500, using: &generator))))
      guard clock.uptime < end else { break }
      try await disturb()
    }
    endConditions(all: true)
    isOver.turnOn()
    try await finish(work, clients.logs)
    return try findings()
  }

  // MARK: Processes

  /// Starts a process, and waits until it is ready.
  func start(_ member: SoakMember) async throws {
    let folder = "\(trial.folder)/\(member.name)"
    try FileManager.default.createDirectory(atPath: "\(folder)/sources", withIntermediateDirectories: true)
    if let running = services[member] {
      running.value = try await ZooService(
        Self.tool, in: folder, key: serviceKey, arguments: serviceArguments(folder), idleTimeout: SoakLog.timeout)
      return
    }
    let arguments =
      switch member {
      case .node, .restartedNode:
        [
          "soak-node", "\(member.rawValue)", "\(generator.next() >> 8)", "\(try server.url)", "\(origin.server.port)",
          trial.folder,
        ]
      default: ["soak-gateway", "\(member.rawValue)", "\(origin.server.port)", trial.folder]
      }
    let process = SoakProcess(try Child(["child"] + arguments), ports[member] ?? SoakPort())
    processes[member] = process
    let limit = clock.uptime + .seconds(60)
    while !process.isReady {
      try require(clock.uptime < limit, "\(member.name) does not start within 60 s")
      try await wait(.milliseconds(20))
    }
  }

  /// The tool, which is built into the folder of this program.
  private static var tool: String {
    URL(filePath: Child.program).deletingLastPathComponent().appending(path: "etagere-cli").path
  }

  // The caches are full within the first ten minutes, so the memory of the service is not expected to grow after them. The
  // timeout is also the idle time of transfers from the origin, so it stays below the limit of an operation.
  private func serviceArguments(_ folder: String) -> [String] {
    [
      "--origin", "\(origin.server.baseURL)/image", "--private-addresses", "true", "--cache-folder", "\(folder)/cache",
      "--cache-size", "4M", "--memory", "2M", "--memory-budget", "64M", "--timeout", "10", "--workers", "\(trial.workers ?? 1)",
    ]
  }

  /// The process of a member that runs, or `nil`.
  func pid(_ member: SoakMember) -> pid_t? { services[member]?.value?.pid ?? processes[member]?.child.process }

  /// Ends a process without notice, and starts it again.
  func kill(_ member: SoakMember) async throws {
    ofMinute.kills += 1
    counts.begin(.interrupted, member)
    defer { counts.end(.interrupted, member) }
    if let running = services[member] {
      let service = running.value
      running.value = nil
      await service?.destroy()
    } else if let process = processes.removeValue(forKey: member) {
      process.port.value = nil
      process.child.end(kills: true)
    }
    try await start(member)
  }

  /// Ends a process with SIGTERM, and starts it again.
  func restart(_ member: SoakMember) async throws {
    ofMinute.restarts += 1
    counts.begin(.interrupted, member)
    defer { counts.end(.interrupted, member) }
    try await end(member)
    try await start(member)
  }

  /// Ends a process with SIGTERM. It has a limited time to complete its operations.
  private func end(_ member: SoakMember) async throws {
    if let running = services[member], let service = running.value {
      running.value = nil
      do {
        _ = try await service.stop(within: .seconds(40))
      } catch {
        counts.add(.hung, 1, member)
        lines.add("hung: \(member.name): \(error)")
      }
      return
    }
    guard let process = processes[member] else { return }
    Foundation.kill(process.child.process, SIGTERM)
    let limit = clock.uptime + .seconds(100)
    while !process.isDone, clock.uptime < limit { try await wait(.milliseconds(50)) }
    processes[member] = nil
    process.port.value = nil
    if !process.isDone {
      counts.add(.hung, 1, member)
      lines.add("hung: \(member.name) does not end within 100 s after SIGTERM")
    }
    let end = process.child.end(kills: !process.isDone)
    if process.isDone, end != .exited(0) {
      counts.add(.wrong, 1, member)
      lines.add("wrong: \(member.name) has ended: \(end)")
    }
  }

  // MARK: Time

  /// Waits, and meanwhile reads the reports of the processes, samples their memory and prints a row each minute.
  func wait(_ time: Duration) async throws {
    let end = clock.uptime + time
    while true {
      try tick()
      let rest = end - clock.uptime
      guard rest > .zero else { return }
      try await clock.sleep(for: min(rest, .milliseconds(100)))
    }
  }

  private func tick() throws {
    endConditions()
    for (member, process) in processes {
      // The last lines of a process may arrive just before its end is seen.
      let hasEnded = process.child.hasEnded
      for line in process.read(note: trial.report) { lines.add(line) }
      if hasEnded, !process.isDone { throw FailedCheck("\(member.name) has ended: \(process.child.end(kills: false))") }
    }
    for (member, running) in services where running.value?.isRunning == false {
      throw FailedCheck("\(member.name) has ended")
    }
    for line in lines.take() { trial.print(line) }
    if clock.uptime >= nextSample {
      nextSample = clock.uptime + .seconds(5)
      for member in SoakMember.allCases {
        if let pid = pid(member), let use = ProcessUse(of: pid) { report.add(use, member) }
      }
    }
    if clock.uptime >= nextRow {
      nextRow += .seconds(60)
      let disk = Folder.files(trial.folder).reduce(Int64(0)) { $0 + $1.size }
      for line in try report.row(disk: disk, ofMinute) { trial.print(line) }
      ofMinute = (0, 0, 0)
      // The counters by path would grow with the versions of images.
      origin.server.resetCounters()
    }
  }

  // MARK: Clients

  private struct Clients: Sendable {
    var logs: [SoakLog] = []
    var gateways: [(client: SoakGatewayClient, generator: SplitMix)] = []
    var services: [(client: SoakImageClient, generator: SplitMix)] = []

    func run() async {
      await withTaskGroup(of: Void.self) { group in
        for (client, generator) in gateways { group.addTask { await client.run(generator) } }
        for (client, generator) in services { group.addTask { await client.run(generator) } }
      }
    }
  }

  private func clients(_ time: RunningTime) throws -> Clients {
    var clients = Clients()
    let (lines, images) = (lines, SoakImages())
    let key = try SigningKey(hexadecimal: serviceKey)
    let engine = try AsyncHTTPDownloader(
      configuration: .init {
        $0.resendsLostRequests = false
        $0.idleTimeout = SoakLog.timeout
      })
    for member in [SoakMember.gateway, .restartedGateway] {
      let log = SoakLog(counts, member, time, tell: { lines.add($0) }, note: trial.report)
      let purges = try CompletedPurges(
        path: "\(trial.folder)/\(member.name)/purges", versions, SoakClock(counts: counts, member: member), isFleet: false)
      clients.logs.append(log)
      guard let port = ports[member] else { continue }
      for _ in 0..<2 {
        clients.gateways.append(
          (SoakGatewayClient(log, purges, versions, engine, port, isOver), SplitMix(state: generator.next())))
      }
    }
    for member in [SoakMember.service, .restartedService] {
      guard let running = services[member] else { continue }
      let log = SoakLog(counts, member, time, tell: { lines.add($0) }, note: trial.report)
      clients.logs.append(log)
      clients.services.append(
        (
          SoakImageClient(
            log: log, running: running, images: images, key: key, origin: "\(origin.server.baseURL)", isOver: isOver),
          SplitMix(state: generator.next())
        ))
    }
    return clients
  }

  // MARK: The end

  private func finish(_ work: Task<Void, Never>, _ logs: [SoakLog]) async throws {
    let limit = clock.uptime + SoakLog.limit * 2
    while !logs.allSatisfy(\.isIdle), clock.uptime < limit { try await wait(.milliseconds(100)) }
    for member in SoakMember.allCases { try await end(member) }
    try await wait(.milliseconds(200))
    if logs.allSatisfy(\.isIdle) { await origin.server.stop() }
  }

  /// The caches with purges: the file of each one's purges, and whether it belongs to a fleet.
  private func caches() throws -> [(name: String, purges: CompletedPurges, isFleet: Bool)] {
    func purges(_ name: String, _ file: String, isFleet: Bool = false) throws -> (String, CompletedPurges, Bool) {
      let clock = SoakClock(counts: counts, member: .node)
      return (name, try CompletedPurges(path: "\(trial.folder)/\(file)", versions, clock, isFleet: isFleet), isFleet)
    }
    var caches = [try purges("fleet", "purges-fleet", isFleet: true)]
    for member in [SoakMember.node, .restartedNode] {
      for store in ["disk", "database"] { caches.append(try purges("\(member.name) \(store)", "\(member.name)/purges-\(store)")) }
    }
    for member in [SoakMember.gateway, .restartedGateway] { caches.append(try purges(member.name, "\(member.name)/purges")) }
    return caches
  }

  private func findings() throws -> [String] {
    let caches = try caches()
    let checks = caches.map { cache -> String in
      let numbers = [cache.purges.purgedResources, cache.purges.checkedLoads, cache.purges.freshLoads]
      return "\(cache.name) \(numbers.map { grouped($0) }.joined(separator: "/"))"
    }
    func text(_ count: SharedCounts.Count) -> String { "\(count) \(grouped(counts.total(count)))" }
    func total(_ counts: [SharedCounts.Count]) -> String { counts.map(text).joined(separator: ", ") }
    let findings: [String] =
      [
        "loads \(grouped(counts.total(.loads))): \(total([.memory, .disk, .revalidated, .network, .stale, .cancelled]))",
        "failed with a cause: \(total([.timedOut, .connection, .body, .status, .storage])); \(total([.purges, .failedPurges]))",
        "disturbances: " + disturbances.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "),
        "certain purges/loads checked against them/lifetimes checked: " + checks.joined(separator: ", "),
        total([.wrong, .unexplained, .hung, .lost]),
      ] + report.goals
    try require(
      [SharedCounts.Count.wrong, .unexplained, .hung, .lost].allSatisfy { counts.total($0) == 0 },
      findings.joined(separator: "\n    "))
    for count in [SharedCounts.Count.memory, .disk, .revalidated, .network, .purges] {
      try require(counts.total(count) > 0, "the trial did not reach what it tests: \(count) 0")
    }
    // A short run has no purge with a certain result in some caches. In a fleet, it needs a quiet resource.
    let length = trial.seconds ?? (trial.isQuick ? 60 : Self.defaultTime)
    for cache in caches where length >= (cache.isFleet ? Self.defaultTime : 120) {
      try require(cache.purges.purgedResources > 0, "the trial did not reach what it tests: certain purges of \(cache.name) 0")
      try require(cache.purges.checkedLoads > 0, "the trial did not reach what it tests: loads after purges of \(cache.name) 0")
      try require(cache.purges.freshLoads > 0, "the trial did not reach what it tests: lifetimes checked of \(cache.name) 0")
    }
    return findings
  }
}

/// Lines that several tasks print.
final class SoakLines: Sendable {
  private let lines = Lock<[String]>([])

  func add(_ line: String) { lines.withLock { $0.append(line) } }

  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

/// A node or a gateway, as its parent sees it.
final class SoakProcess {
  let child: Child
  /// The port of a gateway.
  let port: SoakPort
  private(set) var isReady = false
  private(set) var isDone = false

  init(_ child: Child, _ port: SoakPort) { (self.child, self.port) = (child, port) }

  /// Returns the failures that the process has reported.
  ///
  /// - Parameter note: Called with each line that is no failure.
  func read(note: (String) -> Void) -> [String] {
    var failures: [String] = []
    while let line = child.line(within: 0) {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      switch words.first {
      case "ready":
        isReady = true
        if words.count == 2 { port.value = Int(words[1]) }
      case "done": isDone = true
      case "note" where words.count == 2: note(words[1])
      case "failed" where words.count == 2: failures.append(words[1])
      default: failures.append(line)
      }
    }
    return failures
  }
}
#endif
