#if Redis && Origin && AsyncHTTP
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin

/// Processes that share a Redis server: requests to the origin, and purges.
struct FleetScenario {
  let bench: Bench

  private let processes = 4
  private let clients = 1_000
  private let entries = 10_000

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 3
    var report = ScenarioReport(
      "fleet",
      "4 processes with memory and disk in front of one Redis server, 1,000 clients, and a purge of 10,000 entries, "
        + "\(rounds) rounds: median (least–most)")
    for work in [FleetJob.Work.cold, .killed, .purge] {
      var (requests, failed, times, calls): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
      for round in 0..<rounds {
        bench.settings.progress("round \(round + 1) of \(rounds): \(work)")
        let (measured, count) = try await measure(work, round)
        // The killed process prints no measurement.
        let survivors = measured.filter { work != .killed || !$0[.wall].isEmpty || !$0[.failed].isEmpty }
        report.take(failuresOf: survivors, by: "\(work)")
        if work == .killed, survivors.count != processes - 1 {
          report.failures.append("\(work): \(processes - survivors.count) processes ended, and not 1")
        }
        requests.append(Double(count))
        failed.append(survivors.flatMap { $0[work == .purge ? .stored : .failed] }.reduce(0, +))
        calls += survivors.flatMap { $0[.called] }
        times.append(survivors.flatMap { $0[.wall] }.max() ?? .nan)
      }
      let name =
        switch work {
        case .cold: "one cold resource"
        case .killed: "one cold resource, and the requesting process is killed"
        case .purge: "purge by tag until all entries are gone"
        }
      report.rows.append(
        .init(
          name: name,
          figures: [
            work == .purge ? nil : Figure("requests to the origin", .count, requests),
            Figure(work == .purge ? "stale responses" : "failed clients", .count, failed),
            Figure("time of the call", .seconds, calls), Figure("time", .seconds, times),
          ].compactMap(\.self)))
      switch work {
      case .cold: report.goals.append(Goal("\(name): requests to the origin", Sample.median(requests), .atMost(1), .count))
      case .killed: report.goals.append(Goal("\(name): requests to the origin", Sample.median(requests), .atMost(2), .count))
      case .purge: report.goals.append(Goal("\(name), 10,000 entries: time", Sample.median(times), .atMost(1), .seconds))
      }
    }
    return report
  }

  private static func made(_ folder: URL) throws -> URL {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }

  /// Runs the processes once.
  ///
  /// - Returns: Their measurements, and the number of requests for the cold resource.
  private func measure(_ work: FleetJob.Work, _ round: Int) async throws -> ([Measurement], Int) {
    let folder = bench.child.scratch("fleet-\(work)-\(round)")
    let server = try RedisPeer(bench)
    try await server.removeAll()
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = try await OriginServer.start()
    origin.setRoute("/warm", Route(Data("warm".utf8), etag: "1", fields: [.cacheControl: "max-age=3600"]))
    let places = work == .purge ? ["start", "stored", "purged"] : ["start"]
    let gates = places.map { _ in Gate() }
    for (place, gate) in zip(places, gates) {
      origin.setRoute("/\(place)", Route(Data(), etag: "1", delivery: OriginDelivery(gate: gate)))
    }
    // The time of a request, in which every client arrives.
    let delivery = OriginDelivery(headDelay: .milliseconds(500))
    let body = Pattern.bytes(20_000)
    var first = OriginResponse(
      body, etag: "1", fields: [.cacheControl: "max-age=3600"], delivery: delivery)
    let next = OriginResponse(body, etag: "1", fields: [.cacheControl: "max-age=3600"], delivery: delivery)
    if work == .killed, let name = HTTPField.Name(FleetJob.killing) { first.fields[name] = "1" }
    origin.setRoute("/cold", Route(inTurn: [first, next]))
    let measured = try await withThrowingTaskGroup(of: Measurement.self) { group in
      for number in 0..<processes {
        let child = ChildProcess(folder: try Self.made(folder.appending(path: "\(number)-output")))
        let job = FleetJob(
          work: work, number: number, port: server.port, origin: origin.url("/"),
          count: work == .purge ? entries : clients / processes, folder: folder.path)
        group.addTask { try await child.run(job, limit: .seconds(300)) }
      }
      for gate in gates {
        group.addTask { [processes] in
          await gate.arrived(processes)
          gate.open()
          return Measurement()
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let count = origin.counters(for: "/cold").requests
    await origin.stop()
    return (measured, count)
  }
}
#endif
