import CacheTesting
import Foundation

/// Simulates fleets of different sizes with one trace, and prints a table for each kind of fleet.
@main
struct Simulation {
  /// The document of `--json`.
  private struct Document: Codable {
    struct Run: Codable {
      let configuration: FleetConfiguration
      let report: FleetReport
    }

    var trace: String?
    var zipf: Workload.Zipf?
    var requests: Int
    var objects: Int
    var runs: [Run] = []
  }

  /// A failure that is not an error in the arguments.
  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static func main() {
    do {
      try run(try Settings(Array(CommandLine.arguments.dropFirst())))
    } catch {
      FileHandle.standardError.write(Data("simulate: \(error)\n".utf8))
      exit(error is Settings.UsageError ? EX_USAGE : EXIT_FAILURE)
    }
  }

  private static func run(_ settings: Settings) throws {
    let workload = try workload(settings)
    for purge in settings.fleet.purges {
      guard case .object(let name) = purge.selection, workload.index(of: name) == nil else { continue }
      throw Failure(description: "no request of the trace names the object '\(name)', which --purge names")
    }
    let output = try settings.json.map(output)
    let distinct = Set(workload.requests.map(\.object))
    let bytes = distinct.reduce(0) { $0 + workload.sizes[$1] }
    say(
      "\(Text.count(workload.requests.count)) requests in \(Text.time(workload.duration)) for \(Text.count(distinct.count)) objects"
        + " of \(Text.bytes(bytes)) in all, \(Text.bytes(settings.fleet.memory)) on each node")
    var document = Document(
      trace: settings.file, zipf: settings.file == nil ? settings.zipf : nil, requests: workload.requests.count,
      objects: distinct.count)
    var rows: [(nodes: Int, report: FleetReport)] = []
    for configuration in settings.runs {
      let report = FleetModel.run(configuration, workload)
      rows.append((configuration.nodes, report))
      document.runs.append(Document.Run(configuration: configuration, report: report))
      guard rows.count == settings.nodes.count else { continue }
      let routing = configuration.routing == .random ? "random routing" : "consistent hashing"
      let shared = configuration.shared.map { "a shared tier of \(Text.bytes($0))" } ?? "no shared tier"
      let leases = configuration.shared != nil && configuration.leaseDuration == nil ? ", no leases" : ""
      say("\n\(routing), \(shared)\(leases)\n\(Table.text(rows))")
      rows = []
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try output?.write(contentsOf: encoder.encode(document) + Data("\n".utf8))
  }

  private static func workload(_ settings: Settings) throws -> Workload {
    guard let file = settings.file else { return Workload(settings.zipf, seed: settings.fleet.seed) }
    let data: Data
    do {
      let handle = file == "-" ? FileHandle.standardInput : try opened(file, O_RDONLY)
      data = try handle.readToEnd() ?? Data()
    } catch let error as NSError {
      throw Failure(description: "cannot read '\(file)': \(reason(error))")
    }
    do {
      return try data.withUnsafeBytes { bytes in try Workload(bytes) }
    } catch let error as Trace.LineError {
      throw Failure(description: "\(file):\(error.line): \(error.reason)")
    }
  }

  /// Opens the file for the results before the runs, so that a wrong name does not cost their time.
  private static func output(_ file: String) throws -> FileHandle {
    do {
      return try opened(file, O_WRONLY | O_CREAT | O_TRUNC)
    } catch let error as NSError {
      throw Failure(description: "cannot write '\(file)': \(reason(error))")
    }
  }

  /// Opens a file. It throws the system's error, which says more than that of Foundation.
  private static func opened(_ file: String, _ flags: Int32) throws -> FileHandle {
    let descriptor = open(file, flags, 0o644)
    guard descriptor >= 0 else { throw NSError(domain: NSPOSIXErrorDomain, code: Int(errno)) }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  private static func reason(_ error: NSError) -> String {
    let system = error.domain == NSPOSIXErrorDomain ? error : error.userInfo[NSUnderlyingErrorKey] as? NSError
    return system.map { String(cString: strerror(Int32($0.code))) } ?? error.localizedDescription
  }

  /// Writes without a buffer, so that each table is shown when it is complete.
  private static func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
}
