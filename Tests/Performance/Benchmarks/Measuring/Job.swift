import Foundation

/// A measurement that runs in a separate process, so that no earlier measurement affects it.
protocol Job: Codable, Sendable {
  /// The job's name on the command line.
  static var name: String { get }
  /// Measures. Records wrong counts and contents as failures of the measurement, and throws if nothing can be measured.
  func run() async throws -> Measurement
}

/// The table of jobs in which a child process finds its job by name.
enum Jobs {
  private static var all: [any Job.Type] {
    var all: [any Job.Type] = [ColdJob.self, DecidingJob.self, DiskJob.self, DiskFolderJob.self, FacadeJob.self, MemoryJob.self]
    #if Metrics
    all.append(TelemetryJob.self)
    #endif
    #if VIPS && os(Linux)
    all += [ThumbnailJob.self, ThumbnailsJob.self, VariantsJob.self]
    #endif
    #if Origin
    all += [SmallJob.self, LargeJob.self, WaitersJob.self, StormJob.self, LinkJob.self, CancelledJob.self, RangesJob.self]
    #endif
    #if Redis
    all.append(RedisJob.self)
    #endif
    #if Redis && Origin && AsyncHTTP
    all.append(FleetJob.self)
    #endif
    #if Server
    all.append(ParsingJob.self)
    #endif
    #if AsyncHTTP
    all += [StaleJob.self, ScreenJob.self] as [any Job.Type]
    #endif
    #if VIPS && Origin && os(Linux)
    all.append(ImagesStormJob.self)
    #endif
    return all
  }

  /// Runs the job that the arguments after `measure` describe: a name, and the job's properties as JSON.
  static func run(_ arguments: [String]) async throws -> Measurement {
    guard arguments.count >= 2, let type = all.first(where: { $0.name == arguments[0] }) else {
      throw BenchmarkFailure("measure needs the name of a job and its properties as JSON")
    }
    return try await JSONDecoder().decode(type, from: Data(arguments[1].utf8)).run()
  }
}

/// The reason why nothing could be measured.
struct BenchmarkFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
