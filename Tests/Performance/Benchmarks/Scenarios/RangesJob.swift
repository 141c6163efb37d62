#if Origin
import CacheCore
import CacheManager
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin

/// Ranges of a stored body, and the completion of a stored part over a slow link.
struct RangesJob: Job {
  static let name = "ranges"

  enum Way: String, Codable, Hashable, Sendable, CaseIterable {
    case disk = "64 KiB of 200 MB on disk"
    case pageCache = "64 KiB of 200 MB in the page cache"
    case completion = "the second half of 1 MB"

    #if os(Linux)
    static let measured = allCases
    #else
    /// Only Linux can drop the pages of a file.
    static let measured: [Way] = [.pageCache, .completion]
    #endif
  }

  static let bodyBytes = 200_000_000
  static let rangeBytes = 64 << 10
  static let completedBytes = 1_000_000

  /// The time that the link needs for the missing bytes: their transfer, and the latency of the request and of the response.
  static var allowed: Duration {
    .seconds(1) * (Double(completedBytes / 2) * 8 / Double(LinkJob.bitsPerSecond)) + LinkJob.latency * 2
  }

  let way: Way
  let engine: Engine
  let batches: Int

  func run() async throws -> Measurement {
    let folder = try DiskEntries.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let cache = try DiskCache(path: folder, configuration: .init(sizeLimit: nil))
    let origin = try await OriginServer.start()
    let open = try engine.makeDownloader()
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.store = cache
        $0.validator = ETagValidator(parts: .completed)
      })
    let measurement =
      switch way {
      case .disk, .pageCache: try await hits(origin, manager, folder)
      case .completion: try await completion(origin, manager)
      }
    await manager.close()
    await open.close()
    await origin.stop()
    await cache.close()
    return measurement
  }

  private func serve(_ origin: OriginServer, _ path: String, _ bytes: Int) throws -> HTTPRequest {
    origin.setRoute(
      path,
      Route(
        OriginResponse(
          Pattern.bytes(bytes), contentType: "video/mp4", etag: .strong(path), fields: [.cacheControl: "max-age=3600"],
          acceptsRanges: true)))
    return try HTTPRequest(resource: origin.url(path))
  }

  // MARK: Hits

  private func hits(_ origin: OriginServer, _ manager: ResourceManager, _ folder: String) async throws -> Measurement {
    let request = try serve(origin, "/film", Self.bodyBytes)
    var stored = 0
    for try await chunk in try await manager.respond(to: request).body { stored += chunk.count }
    var measurement = Measurement()
    measurement.check("stored bytes", stored, is: Self.bodyBytes)
    let file = try Self.largestFile(below: folder)
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BenchmarkFailure("cannot open \(file)") }
    defer { close(descriptor) }
    var dice = Dice(seed: 7)
    // The first batch initializes tables and caches.
    for batch in 0...batches {
      let offsets = (0..<200).map { _ in Int(dice.next() % UInt64(Self.bodyBytes - Self.rangeBytes)) }
      if way == .disk { try Self.dropPages(of: descriptor) }
      let bare = Stopwatch()
      var read = 0
      for offset in offsets {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.rangeBytes, alignment: 16)
        read += pread(descriptor, memory, Self.rangeBytes, off_t(offset))
        memory.deallocate()
      }
      let raw = bare.wall
      if way == .disk { try Self.dropPages(of: descriptor) }
      let whole = Stopwatch()
      let right = try await ranges(of: request, at: offsets, from: manager)
      let facade = whole.wall
      measurement.check("bytes of pread", read, is: offsets.count * Self.rangeBytes)
      measurement.check("ranges", right, is: offsets.count)
      guard batch > 0 else { continue }
      measurement.add(raw / Double(offsets.count), to: .raw)
      measurement.add(facade / Double(offsets.count), to: .facade)
    }
    measurement.check("requests", origin.counters.requests, is: 1)
    return measurement
  }

  /// - Returns: The number of responses with the right status and the right bytes. The bytes are compared only at both ends,
  ///   because that takes no time.
  @concurrent private func ranges(
    of request: HTTPRequest, at offsets: [Int], from manager: ResourceManager
  ) async throws -> Int {
    var right = 0
    for offset in offsets {
      var part = request
      part.headerFields[.range] = "bytes=\(offset)-\(offset + Self.rangeBytes - 1)"
      let response = try await manager.respond(to: part)
      let data = try await response.body.collect()
      let isRight = data.withUnsafeBytes { bytes in
        Pattern.matches(UnsafeRawBufferPointer(rebasing: bytes.prefix(64)), at: offset)
          && Pattern.matches(UnsafeRawBufferPointer(rebasing: bytes.suffix(64)), at: offset + bytes.count - 64)
      }
      if response.head.status == .partialContent, data.count == Self.rangeBytes, isRight { right += 1 }
    }
    return right
  }

  /// Makes the next reads of a file go to the disk. A file system in memory keeps its pages.
  private static func dropPages(of descriptor: CInt) throws {
    #if os(Linux)
    guard fsync(descriptor) == 0, posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 else {
      throw BenchmarkFailure("cannot drop the pages of the file")
    }
    #endif
  }

  private static func largestFile(below folder: String) throws -> String {
    let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    func size(_ file: String) -> Int {
      (try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(file)")[.size] as? Int) ?? 0
    }
    guard let largest = files.max(by: { size($0) < size($1) }) else { throw BenchmarkFailure("nothing is stored") }
    return "\(folder)/\(largest)"
  }

  // MARK: Completion

  private func completion(_ origin: OriginServer, _ manager: ResourceManager) async throws -> Measurement {
    var measurement = Measurement()
    // The first pass has no link, so that libraries, threads and connections are initialized.
    for (index, path) in ["/warm-up", "/film"].enumerated() {
      let request = try serve(origin, path, Self.completedBytes)
      var part = request
      part.headerFields[.range] = "bytes=0-\(Self.completedBytes / 2 - 1)"
      measurement.check(
        "bytes of the part", try await manager.respond(to: part).body.collect().count, is: Self.completedBytes / 2)
      if index > 0 {
        await origin.setLink(NetworkLink(bitsPerSecond: LinkJob.bitsPerSecond, latency: LinkJob.latency))
        origin.resetCounters()
      }
      let stopwatch = Stopwatch()
      let body = try await manager.respond(to: request).body.collect()
      let wall = stopwatch.wall
      measurement.check("bytes", body == Pattern.bytes(Self.completedBytes) ? body.count : 0, is: Self.completedBytes)
      guard index > 0 else { continue }
      measurement.add(wall, to: .wall)
      measurement.add(origin.counters.requests, to: .requests)
      measurement.check("requests", origin.counters.requests, is: 1)
    }
    return measurement
  }
}
#endif
