#if Demo
import Etagere
import Foundation
import LoopbackOrigin

/// The passes of the demo, in order.
struct Demo {
  let folder: URL
  let parallel: Int
  /// The recorder of every load, or `nil` if no page shows them.
  let session: SessionRecorder?
  let reporting: ReportingOptions

  private let clock: DemoClock
  private let currentPass = DemoProgress("starting")

  init(
    folder: URL, parallel: Int, reporting: ReportingOptions, clock: DemoClock = DemoClock(), session: SessionRecorder? = nil
  ) {
    self.clock = clock
    self.folder = folder
    self.parallel = parallel
    self.reporting = reporting
    self.session = session
  }

  /// The numbers of loads at a time, one for each table.
  private var tables: [Int] { Set([1, parallel]).sorted() }

  /// The number of passes: seven for each table, two of the photographs, and the shared load.
  private var passCount: Int { 7 * tables.count + 3 }

  /// The line of the progress bar.
  @Sendable func progress(_ time: Duration) -> String {
    let share = Double(currentPass.finished) / Double(passCount)
    return "\(ProgressBar.bar(share)) \(currentPass.current)"
  }

  func run() async throws -> DemoReport {
    var report = DemoReport()
    try await clock.withOrigin { origin in
      try await warmUp(origin)
      await origin.setLink(DemoLink.link)
      reporting.heading("56 resources of 500 to 1,200 bytes on a link of 2 Mbit/s and 5 ms each way")
      for parallel in tables { try await passes(origin, parallel, &report) }
      try await photographs(origin, &report)
      try await sharedLoad(origin, &report)
    }
    return report
  }

  /// Loads libraries and starts threads, so that no pass includes the time for that.
  private func warmUp(_ origin: OriginServer) async throws {
    origin.setRoute("/warm-up", Route(Data("warm".utf8), fields: [.cacheControl: "max-age=60"]))
    for _ in 0..<2 {
      let manager = try manager(downloader: Engine.make(), caching: true)
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<parallel { group.addTask { _ = try? await manager.load(origin.url("/warm-up?\(index)")) } }
      }
      await reporting.close(manager)
    }
    try await manager(downloader: Engine.make(), caching: true).clear()
  }

  private func manager(downloader: any Downloader, caching: Bool = false) throws -> ResourceManager {
    var configuration = try clock.configuration(downloader, folder: caching ? folder : nil, reporting)
    configuration.observer = reporting.tracing(session?.telemetry)
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
    reporting.result(parallel == 1 ? "\nOne load at a time" : "\n\(parallel) loads at a time")
    reporting.result(DemoReport.header)
    var passes: [DemoPass] = []
    func pass(_ name: String, _ manager: ResourceManager, _ expect: (inout DemoPass) -> Void) async {
      begin("\(name), \(parallel) at a time")
      var pass = await DemoPass.run(name, content.sprites, with: manager, from: origin, parallel: parallel)
      expect(&pass)
      passes.append(pass)
      report.wrong += pass.wrong
      reporting.result(DemoReport.line(table.add(pass, against: passes[0])))
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
    await reporting.close(first)
    let restarted = try manager(downloader: downloader, caching: true)
    await pass("disk, after a restart", restarted) {
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
    await reporting.close(restarted)

    let together = (passes[1].sum + revalidated.sum) / (passes[1].times.count + revalidated.times.count)
    table.coldAndRevalidatedMilliseconds = Text.milliseconds(together)
    table.coldAndRevalidatedFactor = passes[0].mean / together
    reporting.heading(
      "Mean of the cold and the revalidated pass: \(Text.time(table.coldAndRevalidatedMilliseconds)) ms, "
        + "\(Text.decimal(table.coldAndRevalidatedFactor, 2)) × as fast as without a cache")
    let head = revalidated.bytesSent / max(1, revalidated.requests)
    let limit = DemoReport.Limit("revalidated load", revalidated.mean, bytes: head, roundTrips: 1)
    table.revalidated = limit
    reporting.heading(limit.line)
    report.tables.append(table)
  }

  /// Begins a pass in the progress bar and in the page of the session.
  private func begin(_ name: String) {
    currentPass.begin(name)
    session?.begin(name)
  }

  // MARK: 3 photographs

  private func photographs(_ origin: OriginServer, _ report: inout DemoReport) async throws {
    let content = DemoContent()
    let bytes = content.photographs.reduce(0) { $0 + $1.body.count }
    reporting.heading("\n3 photographs of 60, 150 and 555 kB, cold")
    for (name, atOnce) in [("together", 3), ("one by one", 1)] {
      begin("photographs, \(name)")
      let manager = try manager(downloader: Engine.make(), caching: true)
      try await manager.clear()
      var pass = await DemoPass.run(
        "photographs, \(name)", content.photographs, with: manager, from: origin, parallel: atOnce)
      pass.expect(requests: 3, notModified: 0, bodyBytes: bytes, source: .network, validation: .notAttempted)
      report.wrong += pass.wrong
      // A new connection costs one more round trip. Loads that run together share theirs.
      let trips = atOnce == 1 ? 1 + content.photographs.count : 2
      let limit = DemoReport.Limit(name, pass.wall, bytes: pass.bytesSent, roundTrips: trips)
      report.limits.append(limit)
      reporting.result(limit.line)
      if atOnce > 1 { report.overlappingSumMilliseconds = Text.milliseconds(pass.sum) }
      await reporting.close(manager)
    }
  }

  // MARK: One resource, many waiters

  private func sharedLoad(_ origin: OriginServer, _ report: inout DemoReport) async throws {
    let content = DemoContent()
    content.publish(on: origin)
    let manager = try manager(downloader: Engine.make(), caching: true)
    try await manager.clear()
    let items = Array(repeating: content.sprites[0], count: 100)
    begin("100 loads of one cold URL")
    var pass = await DemoPass.run("100 waiters", items, with: manager, from: origin, parallel: items.count)
    // A load that begins after the response has arrived finds it in memory. A load that looked into memory just before that
    // finds it on disk.
    pass.expect(
      requests: 1, notModified: 0, bodyBytes: content.sprites[0].body.count, source: .network, .memory, .disk,
      validation: .notAttempted)
    report.sharedLoads = items.count
    report.sharedRequests = pass.requests
    report.wrong += pass.wrong
    reporting.heading("")
    reporting.result(
      "100 concurrent loads of one cold URL: \(Text.count(pass.requests, "request", "requests"))")
    await reporting.close(manager)
  }
}

/// The results of the demo, as a table for people and as JSON for scripts.
struct DemoReport: Encodable {
  struct Row: Encodable {
    var pass: String
    var loads: Int
    var requests: Int
    var notModified: Int
    var bodyBytes: Int
    var meanMilliseconds: Double
    var p50Milliseconds: Double
    var p95Milliseconds: Double
    var maxMilliseconds: Double
    var sumMilliseconds: Double
    var wallMilliseconds: Double
    /// The mean time without a cache, divided by the mean time of this pass.
    var factor: Double

    init(_ pass: DemoPass, against baseline: DemoPass) {
      self.pass = pass.name
      loads = pass.times.count
      requests = pass.requests
      notModified = pass.notModified
      bodyBytes = pass.bodyBytes
      meanMilliseconds = Text.milliseconds(pass.mean)
      p50Milliseconds = Text.milliseconds(pass.times.percentile(0.5))
      p95Milliseconds = Text.milliseconds(pass.times.percentile(0.95))
      maxMilliseconds = Text.milliseconds(pass.times.percentile(1))
      sumMilliseconds = Text.milliseconds(pass.sum)
      wallMilliseconds = Text.milliseconds(pass.wall)
      factor = baseline.mean / pass.mean
    }
  }

  /// A time, and the shortest time that the link permits.
  struct Limit: Encodable {
    var what: String
    var milliseconds: Double
    var allowedMilliseconds: Double
    var ratio: Double
    private let work: String

    private enum CodingKeys: CodingKey {
      case what, milliseconds, allowedMilliseconds, ratio
    }

    init(_ what: String, _ time: Duration, bytes: Int, roundTrips: Int) {
      self.what = what
      let allowed = DemoLink.transmission(bytes) + DemoLink.roundTrip * roundTrips
      milliseconds = Text.milliseconds(time)
      allowedMilliseconds = Text.milliseconds(allowed)
      ratio = time / allowed
      work = "\(Text.count(roundTrips, "round trip", "round trips")), \(Text.bytes(Int64(bytes)))"
    }

    var line: String {
      "\(Text.left(what, 16)) \(Text.right(Text.time(milliseconds), 5)) ms, \(Text.decimal(ratio, 2)) × the link's minimum (\(work))"
    }
  }

  /// All passes with this number of loads at a time.
  struct Table: Encodable {
    var parallel: Int
    var rows: [Row] = []
    /// The mean time of the cold and the revalidated pass together, and its factor against no cache.
    var coldAndRevalidatedMilliseconds = 0.0
    var coldAndRevalidatedFactor = 0.0
    var revalidated: Limit?

    mutating func add(_ pass: DemoPass, against baseline: DemoPass) -> Row {
      let row = Row(pass, against: baseline)
      rows.append(row)
      return row
    }
  }

  var tables: [Table] = []
  var limits: [Limit] = []
  /// The sum of the durations of the photographs that were loaded together. The loads overlap.
  var overlappingSumMilliseconds = 0.0
  var sharedLoads = 0
  var sharedRequests = 0
  var wrong: [String] = []

  /// The heading of the table, which fits into 80 columns.
  static var header: String {
    let columns = ["requests", "304s", "body bytes", "mean ms", "p95 ms", "all ms", "faster"]
    return Text.row("pass", passWidth, columns, widths)
  }

  private static let passWidth = 23
  private static let widths = [9, 5, 11, 8, 8, 8, 8]

  static func line(_ row: Row) -> String {
    let cells = [
      "\(row.requests)", "\(row.notModified)", "\(row.bodyBytes)", Text.time(row.meanMilliseconds),
      Text.time(row.p95Milliseconds),
      Text.time(row.wallMilliseconds), factor(row.factor),
    ]
    return Text.row(row.pass, passWidth, cells, widths)
  }

  private static func factor(_ factor: Double) -> String { Text.decimal(factor, factor < 10 ? 2 : 0) + " ×" }
}
#endif
