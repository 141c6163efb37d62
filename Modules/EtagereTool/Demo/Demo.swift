#if Tool
import Etagere
import Foundation
import LoopbackOrigin

/// The demo's passes, in order.
struct Demo {
  let folder: URL
  let parallel: Int
  /// The recorder of every load, or `nil` if no page shows them.
  let session: SessionRecorder?
  let say: (String) -> Void

  private let clock: DemoClock

  init(
    folder: URL, parallel: Int, clock: DemoClock = DemoClock(), session: SessionRecorder? = nil,
    say: @escaping (String) -> Void
  ) {
    self.clock = clock
    self.folder = folder
    self.parallel = parallel
    self.session = session
    self.say = say
  }

  func run() async throws -> DemoReport {
    let clock = clock
    let origin = try await OriginServer.start(now: { Date(timeIntervalSince1970: Double(clock.now.nanoseconds) / 1e9) })
    var report = DemoReport()
    do {
      try await warmUp(origin)
      await origin.setLink(DemoLink.link)
      say("56 resources of 0.5 to 1.2 KB on a link of 2 Mbit/s and 5 ms each way")
      for parallel in Set([1, parallel]).sorted() { try await passes(origin, parallel, &report) }
      try await photographs(origin, &report)
      try await sharedLoad(origin, &report)
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
    return report
  }

  /// What a process does for the first time costs it extra (libraries, threads, tables): neither the passes with a cache nor the
  /// one without are to pay for that.
  private func warmUp(_ origin: OriginServer) async throws {
    origin.setRoute("/warm-up", Route(Data("warm".utf8), fields: [.cacheControl: "max-age=60"]))
    for _ in 0..<2 {
      let manager = try manager(downloader: Engine.make(), caching: true)
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<parallel { group.addTask { _ = try? await manager.load(origin.url("/warm-up?\(index)")) } }
      }
      await manager.close()
    }
    try await manager(downloader: Engine.make(), caching: true).clear()
  }

  private func manager(
    downloader: any Downloader, caching: Bool = false
  ) throws -> ResourceManager {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = downloader
    configuration.clock = clock
    configuration.observer = session?.telemetry
    if caching {
      configuration.memory = MemoryCache(clock: clock)
      configuration.store = try DiskCache(folder: folder, configuration: .init(clock: clock))
      configuration.validator = ETagValidator()
      // What is to be stored is shown to be, on a slow disk too.
      configuration.storeWriteTimeout = nil
    }
    return ResourceManager(configuration)
  }

  // MARK: 56 small resources

  private func passes(_ origin: OriginServer, _ parallel: Int, _ report: inout DemoReport) async throws {
    var content = DemoContent()
    content.publish(on: origin)
    try await manager(downloader: Engine.make(), caching: true).clear()
    var table = DemoReport.Table(parallel: parallel)
    let bytes = content.sprites.reduce(0) { $0 + $1.body.count }
    let count = content.sprites.count
    say(
      parallel == 1
        ? "\nOne at a time: what a single load takes"
        : "\n\(parallel) at a time: what a screenful takes; the single loads overlap, so their sum is more than the wall time")
    say(DemoReport.header)
    var passes: [DemoPass] = []
    func pass(_ name: String, _ manager: ResourceManager, _ expect: (inout DemoPass) -> Void) async {
      session?.begin("\(name), \(parallel) at a time")
      var pass = await DemoPass.run(name, content.sprites, with: manager, from: origin, parallel: parallel)
      expect(&pass)
      passes.append(pass)
      report.wrong += pass.wrong
      say(DemoReport.line(table.add(pass, against: passes[0])))
    }
    let beyondLifetime = DemoContent.lifetime + .seconds(1)

    await pass("no cache", try manager(downloader: Engine.make())) {
      $0.expect(requests: count, notModified: 0, bodyBytes: bytes, source: .network, validation: .notAttempted)
    }
    let downloader = Engine.make()
    let first = try manager(downloader: downloader, caching: true)
    await pass("cold", first) {
      $0.expect(requests: count, notModified: 0, bodyBytes: bytes, source: .network, validation: .notAttempted)
    }
    await pass("memory", first) {
      $0.expect(requests: 0, notModified: 0, bodyBytes: 0, source: .memory, validation: .notAttempted)
    }
    await first.close()
    let restarted = try manager(downloader: downloader, caching: true)
    await pass("disk, as after a restart", restarted) {
      $0.expect(requests: 0, notModified: 0, bodyBytes: 0, source: .disk, validation: .notAttempted)
    }
    clock.advance(by: beyondLifetime)
    await pass("stale, unchanged (304)", restarted) {
      $0.expect(requests: count, notModified: count, bodyBytes: 0, source: .revalidated, validation: .notModified)
    }
    let revalidated = passes[4]
    clock.advance(by: beyondLifetime)
    content.change()
    content.publish(on: origin)
    await pass("stale, changed (200)", restarted) {
      $0.expect(requests: count, notModified: 0, bodyBytes: bytes, source: .network, validation: .modified)
    }
    clock.advance(by: beyondLifetime)
    await origin.setLink(.offline)
    await pass("stale, offline", restarted) {
      $0.expect(requests: 0, notModified: 0, bodyBytes: 0, source: .memory, validation: .failed)
    }
    await origin.setLink(DemoLink.link)
    await restarted.close()

    let together = (passes[1].sum + revalidated.sum) / (passes[1].times.count + revalidated.times.count)
    table.coldAndRevalidatedMilliseconds = Text.milliseconds(together)
    table.coldAndRevalidatedFactor = passes[0].mean / together
    say(
      "A cold and a revalidated pass together: \(Text.time(table.coldAndRevalidatedMilliseconds)) ms a load, "
        + "\(Text.decimal(table.coldAndRevalidatedFactor, 2)) × as fast as without a cache.")
    let head = revalidated.bytesSent / max(1, revalidated.requests)
    let limit = DemoReport.Limit(
      "A revalidated load (a round trip, \(head) bytes)", revalidated.mean,
      allowed: DemoLink.roundTrip + DemoLink.transmission(head))
    table.revalidated = limit
    say(limit.line)
    report.tables.append(table)
  }

  // MARK: 3 photographs

  private func photographs(_ origin: OriginServer, _ report: inout DemoReport) async throws {
    let content = DemoContent()
    let bytes = content.photographs.reduce(0) { $0 + $1.body.count }
    say("\n3 photographs of 0.12, 0.30 and 1.11 MB, cold")
    for (name, atOnce) in [("Together", 3), ("One by one", 1)] {
      session?.begin("photographs, \(name.lowercased())")
      let manager = try manager(downloader: Engine.make(), caching: true)
      try await manager.clear()
      var pass = await DemoPass.run(
        "photographs, \(name.lowercased())", content.photographs, with: manager, from: origin, parallel: atOnce)
      pass.expect(requests: 3, notModified: 0, bodyBytes: bytes, source: .network, validation: .notAttempted)
      report.wrong += pass.wrong
      // A new connection costs a round trip of its own; loads that run together share theirs.
      let trips = atOnce == 1 ? 1 + content.photographs.count : 2
      let limit = DemoReport.Limit(
        "\(name): \(Text.bytes(Int64(pass.bytesSent))), \(trips) round trips", pass.wall,
        allowed: DemoLink.transmission(pass.bytesSent) + DemoLink.roundTrip * trips)
      report.limits.append(limit)
      say(limit.line)
      if atOnce > 1 {
        report.overlappingSumMilliseconds = Text.milliseconds(pass.sum)
        say(
          "  (the single loads overlap: their sum, \(Text.time(report.overlappingSumMilliseconds)) ms, is no time that anybody waited)"
        )
      }
      await manager.close()
    }
  }

  // MARK: One resource, many waiters

  private func sharedLoad(_ origin: OriginServer, _ report: inout DemoReport) async throws {
    let content = DemoContent()
    content.publish(on: origin)
    let manager = try manager(downloader: Engine.make(), caching: true)
    try await manager.clear()
    let items = Array(repeating: content.sprites[0], count: 100)
    session?.begin("100 loads of one cold URL")
    var pass = await DemoPass.run("100 waiters", items, with: manager, from: origin, parallel: items.count)
    // A load that begins after the one response has arrived finds it in memory. A load that looked into memory just before finds
    // it on disk.
    pass.expect(
      requests: 1, notModified: 0, bodyBytes: content.sprites[0].body.count, source: .network, .memory, .disk,
      validation: .notAttempted)
    report.sharedLoads = items.count
    report.sharedRequests = pass.requests
    report.wrong += pass.wrong
    say("\n100 concurrent loads of one cold URL: \(pass.requests) request")
    await manager.close()
  }
}
#endif
