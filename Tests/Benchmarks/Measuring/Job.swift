import Foundation

/// One measurement, for a process of its own: nothing that another one has warmed up, filled or left behind can help or harm it.
protocol Job: Codable, Sendable {
  /// What it is called on the command line.
  static var name: String { get }
  /// Measures. Throws when there is nothing to measure; a wrong count or content is a failure in the measurement.
  func run() async throws -> Measurement
}

/// Every job, by name: what a started process looks up.
enum Jobs {
  private static var all: [any Job.Type] {
    var all: [any Job.Type] = [ColdJob.self, DecidingJob.self, DiskJob.self, DiskFolderJob.self, FacadeJob.self, MemoryJob.self]
    #if Metrics
    all.append(TelemetryJob.self)
    #endif
    #if VIPS
    all += [ThumbnailJob.self, ThumbnailsJob.self, VariantsJob.self]
    #endif
    #if Origin
    all += [SmallJob.self, LargeJob.self, WaitersJob.self, StormJob.self, LinkJob.self, CancelledJob.self]
    #endif
    #if AsyncHTTP
    all.append(StaleJob.self)
    #endif
    #if VIPS && Origin
    all.append(ImagesStormJob.self)
    #endif
    return all
  }

  /// Does what the arguments after `measure` say: a name, and the job's fields in JSON.
  static func run(_ arguments: [String]) async throws -> Measurement {
    guard arguments.count >= 2, let type = all.first(where: { $0.name == arguments[0] }) else {
      throw BenchmarkFailure("measure takes a job's name and its fields in JSON")
    }
    return try await JSONDecoder().decode(type, from: Data(arguments[1].utf8)).run()
  }
}

/// Why there is nothing to measure.
struct BenchmarkFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
