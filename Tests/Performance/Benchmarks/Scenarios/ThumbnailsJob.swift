#if VIPS && os(Linux)
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import ImageCodecs

/// The thumbnails of a folder of photographs, made with all cores: by `ResourceManager` and its cache, twice, or by libvips'
/// program.
struct ThumbnailsJob: Job {
  static let name = "thumbnails"

  enum Way: String, Codable, Hashable, Sendable, CaseIterable {
    case loader = "ResourceManager"
    case program = "vipsthumbnail"
  }

  let way: Way
  let photographs: URL
  /// The folder for the cache and the thumbnails, which must not exist.
  let folder: URL

  func run() async throws -> Measurement {
    let names = try FileManager.default.contentsOfDirectory(atPath: photographs.path).sorted()
    let output = folder.appending(path: "thumbnails", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var measurement = Measurement()
    switch way {
    case .program:
      let before = ProcessUsage.childrensProcessorTime
      let watch = Stopwatch()
      try runProgram(names, into: output)
      measurement.add(watch.wall, to: .wall)
      measurement.add(ProcessUsage.childrensProcessorTime - before + watch.processor, to: .processor)
    case .loader:
      let watch = Stopwatch()
      let first = try await load(names, into: output)
      watch.stop(&measurement)
      measurement.check("created thumbnails", first.made, is: names.count)
      // A new manager, as in a new process.
      let again = Stopwatch()
      let second = try await load(names, into: output)
      measurement.add(again.wall, to: .secondRun)
      measurement.check("unchanged thumbnails", second.confirmed, is: names.count)
    }
    measurement.check("thumbnails", try check(output), is: names.count)
    return measurement
  }

  /// Runs one process per core, each with one thread, which is faster than one process with several threads.
  private func runProgram(_ names: [String], into output: URL) throws {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "VIPS_CONCURRENCY=1", "xargs", "-P", "\(cores)", "-n", "\(max(1, names.count / (cores * 4)))", "vipsthumbnail", "--size",
      "\(ThumbnailJob.side)x\(ThumbnailJob.side)", "-o", "\(output.path)/%s.jpg[Q=75]",
    ]
    let input = Pipe()
    process.standardInput = input
    try process.run()
    let list = names.map { photographs.appending(path: $0).path + "\n" }.joined()
    try input.fileHandleForWriting.write(contentsOf: Data(list.utf8))
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchmarkFailure("vipsthumbnail exited with status \(process.terminationStatus)")
    }
  }

  /// Loads every thumbnail, and writes those that differ from their file.
  private func load(_ names: [String], into output: URL) async throws -> (made: Int, confirmed: Int) {
    let cache = try DiskCache(path: folder.appending(path: "cache").path, configuration: .init(sizeLimit: nil))
    let manager = ResourceManager(
      .init {
        $0.downloader = LocalFileDownloader(folder: photographs)
        $0.store = cache
        $0.validator = ETagValidator()
        $0.executor = ProcessingExecutor()
        $0.storagePolicy = .variants
      })
    let counter = AtomicCounter()
    let transform = ResourceTransform.imageFile(
      .resize(.fit(ThumbnailJob.side, ThumbnailJob.side)), as: ImageEncoder(.jpeg, quality: 75))
    let counts = try await withThrowingTaskGroup(of: (made: Int, confirmed: Int).self) { group in
      for _ in 0..<ProcessInfo.processInfo.activeProcessorCount * 2 {
        group.addTask {
          var counts = (made: 0, confirmed: 0)
          while let name = counter.take(from: names) {
            guard let url = URL(string: "http://photographs/\(name)") else { continue }
            let resource = try await manager.load(url, as: transform)
            if resource.valueOrigin == .transformed { counts.made += 1 }
            let file = output.appending(path: name).path
            if let stored = FileManager.default.contents(atPath: file), stored == resource.value {
              if resource.source == .revalidated { counts.confirmed += 1 }
            } else {
              try RawFile.write(resource.value, file, draft: file + ".draft", flushes: false)
            }
          }
          return counts
        }
      }
      return try await group.reduce((0, 0)) { ($0.0 + $1.made, $0.1 + $1.confirmed) }
    }
    await manager.close()
    await cache.close()
    return counts
  }

  /// Checks that every file is a JPEG of the right size.
  ///
  /// - Returns: The number of files.
  private func check(_ output: URL) throws -> Int {
    let names = try FileManager.default.contentsOfDirectory(atPath: output.path)
    for name in names {
      let header = try ImageHeader(of: Data(contentsOf: output.appending(path: name)))
      guard header.format == .jpeg, header.size.width == ThumbnailJob.side else {
        throw BenchmarkFailure("\(name) is \(header.format) of \(header.size)")
      }
    }
    return names.count
  }
}
#endif
