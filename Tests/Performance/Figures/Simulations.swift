import Foundation

/// A file that `Scripts/simulate --json` writes, as far as the pages use it.
struct SimulationFile: Decodable {
  struct Configuration: Decodable {
    let nodes: Int
    let routing: String
    let shared: Int?
    let leaseDuration: Double?
  }

  struct Share: Decodable {
    let requests: Int
    let bytes: Int
  }

  struct Report: Decodable {
    let memoryHits, sharedHits, sharedAfterWait, coalesced, fetched, revalidated, failed: Share
    let originRequests, revalidations, bytesToShared, bytesFromShared: Int
    let sharedLookups, sharedStores, sharedUpdates, leaseCalls, leaseWaits: Int
    let leaseWaitTime, longestLeaseWait: Double
    let requestsOfNodes: [Int]

    var requests: Int {
      [memoryHits, sharedHits, sharedAfterWait, coalesced, fetched, revalidated, failed].map(\.requests).reduce(0, +)
    }
    var sharedHitRequests: Int { sharedHits.requests + sharedAfterWait.requests }
    var sharedCalls: Int { sharedLookups + sharedStores + sharedUpdates + leaseCalls }
    var imbalance: Double {
      Double(requestsOfNodes.max() ?? 0) * Double(requestsOfNodes.count) / Double(max(1, requestsOfNodes.reduce(0, +)))
    }
  }

  struct Run: Decodable {
    let configuration: Configuration
    let report: Report

    /// The kind of fleet, without its number of nodes.
    var kind: String {
      let routing = configuration.routing == "hash" ? "hashing" : "random"
      guard let shared = configuration.shared else { return "\(routing), no shared tier" }
      return "\(routing), \(shared / 1_000_000_000) GB" + (configuration.leaseDuration == nil ? ", no leases" : "")
    }
  }

  let runs: [Run]
}

/// The committed results of simulations, by the names of their files.
struct Simulations {
  let files: [String: SimulationFile]

  static func read(_ folder: URL) throws -> Self {
    var files: [String: SimulationFile] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".json") {
      do {
        files[String(name.dropLast(5))] = try JSONDecoder().decode(
          SimulationFile.self, from: Data(contentsOf: folder.appending(path: name)))
      } catch {
        throw PlotError("cannot read '\(folder.path)/\(name)': \(error)")
      }
    }
    return Self(files: files)
  }

  private func runs(_ name: String) throws -> [SimulationFile.Run] {
    guard let file = files[name] else { throw PlotError("there is no simulation '\(name)'") }
    return file.runs
  }

  /// The requests to the origin for each number of nodes, with a line for each kind of fleet.
  var originChart: LineChart {
    get throws {
      let runs = try runs("curves")
      return LineChart(
        title: "Requests to the origin per 1,000 requests of clients",
        subtitle: "Complete and conditional requests, by the number of nodes; simulated",
        axis: .init(label: "nodes", isLogarithmic: true),
        lines: Self.kinds(runs).map { kind in
          LineChart.Line(
            label: kind,
            points: runs.filter { $0.kind == kind }.map { run in
              let sent = run.report.originRequests + run.report.revalidations
              return (Double(run.configuration.nodes), Double(sent) * 1_000 / Double(run.report.requests))
            })
        })
    }
  }

  /// The kinds of fleets in the order of the runs.
  private static func kinds(_ runs: [SimulationFile.Run]) -> [String] {
    runs.map(\.kind).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// Returns a block: `FILE runs [NODES]`, `FILE origin`, `FILE hits`, `FILE shared`, or `FILE cost NODES`.
  func text(_ words: [String], _ results: Results) throws -> String {
    guard words.count >= 2 else { throw PlotError("a simulation needs a file and a part") }
    let nodes = words.count > 2 ? Int(words[2]) : nil
    let runs = try runs(words[0]).filter { nodes == nil || $0.configuration.nodes == nodes }
    switch words[1] {
    case "runs": return Self.table(runs)
    case "origin":
      return Self.pivot(runs) { report in
        Format.number(Double(report.originRequests), 0) + " + " + Format.number(Double(report.revalidations), 0)
      }
    case "hits":
      return Self.pivot(runs) { report in
        Self.percent(report.memoryHits.requests, report) + " + " + Self.percent(report.sharedHitRequests, report)
      }
    case "shared":
      return Self.pivot(runs.filter { $0.configuration.shared != nil }) { report in
        Format.number(Double(report.sharedCalls), 0) + "; " + Self.gigabytes(report.bytesFromShared + report.bytesToShared)
      }
    case "waits":
      return Self.pivot(runs.filter { $0.configuration.shared != nil && $0.configuration.routing == "random" }) { report in
        guard report.leaseWaits > 0 else { return "0" }
        return Format.number(Double(report.leaseWaits), 0) + "; "
          + Format.value(report.leaseWaitTime / Double(report.leaseWaits), "s") + ", "
          + Format.value(report.longestLeaseWait, "s")
      }
    case "busiest":
      return Self.pivot(runs.filter { $0.configuration.shared == nil }) { Format.decimal($0.imbalance, 2) + " ×" }
    case "cost": return try SimulatedCost(results).table(runs)
    default: throw PlotError("there is no part '\(words[1])' of a simulation")
    }
  }

  private static func percent(_ count: Int, _ report: SimulationFile.Report) -> String {
    Format.decimal(Double(count) * 100 / Double(max(1, report.requests)), 1) + " %"
  }

  static func gigabytes(_ bytes: Int) -> String { Format.decimal(Double(bytes) / 1e9, 2) + " GB" }

  /// Returns a table with a row for each number of nodes, and a column for each kind of fleet.
  private static func pivot(_ runs: [SimulationFile.Run], _ cell: (SimulationFile.Report) -> String) -> String {
    let kinds = kinds(runs)
    var lines = [
      "| nodes | " + kinds.joined(separator: " | ") + " |", "| --- |" + String(repeating: " --- |", count: kinds.count),
    ]
    for nodes in Set(runs.map(\.configuration.nodes)).sorted() {
      let cells = kinds.map { kind in
        runs.first { $0.kind == kind && $0.configuration.nodes == nodes }.map { cell($0.report) } ?? ""
      }
      lines.append("| \(nodes) | " + cells.joined(separator: " | ") + " |")
    }
    return lines.joined(separator: "\n")
  }

  /// Returns a table with a row for each run.
  private static func table(_ runs: [SimulationFile.Run]) -> String {
    var lines = [
      "| fleet | nodes | complete requests | conditional requests | hits memory | hits shared | from origin | shared calls "
        + "| to and from shared | lease waits | longest wait | failed |",
      "|" + String(repeating: " --- |", count: 12),
    ]
    for run in runs {
      let report = run.report
      let counts = [report.originRequests, report.revalidations].map { Format.number(Double($0), 0) }
      let cells =
        [run.kind, "\(run.configuration.nodes)"] + counts + [
          percent(report.memoryHits.requests, report), percent(report.sharedHitRequests, report),
          gigabytes(report.fetched.bytes), Format.number(Double(report.sharedCalls), 0),
          gigabytes(report.bytesToShared + report.bytesFromShared), Format.number(Double(report.leaseWaits), 0),
          report.leaseWaits > 0 ? Format.value(report.longestLeaseWait, "s") : "–", "\(report.failed.requests)",
        ]
      lines.append("| " + cells.joined(separator: " | ") + " |")
    }
    return lines.joined(separator: "\n")
  }
}

/// The cost of a million requests, from the counts of a simulation and the measured times of the parts.
struct SimulatedCost {
  /// Seconds of processor time.
  private let memoryHit, sharedHit, originRequest, sharedCall, redisCall: Double

  init(_ results: Results) throws {
    func seconds(_ key: Key) throws -> Double {
      let figure = try results.figure(key)
      return figure.sample.median * Format.scale(of: figure.unit)
    }
    memoryHit = try seconds(Key("facade", "memory, async", "processor time"))
    sharedHit = try seconds(Key("redis", "ResourceManager on RedisCache", "processor time each"))
    originRequest = try seconds(Key("small", "AsyncHTTPNetworking, ResourceManager", "processor time per request"))
    sharedCall = try seconds(Key("redis", "RedisCache", "processor time each"))
    redisCall = 1 / (try results.figure(Key("redis", "redis-benchmark", "requests per second")).sample.median)
  }

  /// Returns a table with a row for each run. The runs have a million requests.
  func table(_ runs: [SimulationFile.Run]) -> String {
    var lines = [
      "| fleet | nodes: hits in memory | nodes: hits in the shared tier | nodes: requests to the origin | nodes: other calls "
        + "| nodes in all | Redis | bytes from the origin | bytes to and from Redis |",
      "|" + String(repeating: " --- |", count: 9),
    ]
    for run in runs {
      let report = run.report
      let scale = 1e6 / Double(report.requests)
      let parts = [
        Double(report.memoryHits.requests) * memoryHit, Double(report.sharedHitRequests) * sharedHit,
        Double(report.originRequests + report.revalidations) * originRequest,
        Double(report.sharedCalls - report.sharedHitRequests) * sharedCall,
      ]
      let times = (parts + [parts.reduce(0, +), Double(report.sharedCalls) * redisCall]).map { $0 * scale }
      let bytes = [report.fetched.bytes, report.bytesToShared + report.bytesFromShared].map { Int(Double($0) * scale) }
      let cells = [run.kind] + times.map { Format.decimal($0, 1) + " s" } + bytes.map(Simulations.gigabytes)
      lines.append("| " + cells.joined(separator: " | ") + " |")
    }
    return lines.joined(separator: "\n")
  }
}
