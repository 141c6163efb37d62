import CAllocationCount
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore

/// The heap allocations of a load that misses the cache, without those of its downloader.
///
/// The downloader responds at once, so the remaining allocations are the manager's.
struct ColdJob: Job {
  static let name = "cold"

  /// The size of a body in bytes.
  let size: Int
  let loads: Int

  func run() async throws -> Measurement {
    let downloader = ImmediateDownloader(size: size)
    let manager = ResourceManager(
      .init {
        $0.downloader = downloader
        $0.memory = MemoryCache(limits: .init(cost: 1 << 30))
        $0.validator = ETagValidator()
      })
    var measurement = Measurement()
    // The first round is the warm-up.
    for round in 0...2 {
      let urls = (0..<loads).compactMap { URL(string: "https://images.example.com/photographs/\(round)/\(1_000_000 + $0)") }
      let heads = try urls.map { try HTTPRequest(resource: $0) }
      var bytes = 0
      etagere_count_allocations_of_all_threads()
      for head in heads {
        let request = DownloadRequest(head: head, collectUpTo: size)
        bytes += try await downloader.download(request).body.collect().count
      }
      let own = etagere_allocations_of_all_threads()
      etagere_count_allocations_of_all_threads()
      for url in urls { bytes += try await manager.load(url).data.count }
      let whole = etagere_allocations_of_all_threads()
      measurement.check("bytes", bytes, is: 2 * loads * size)
      if round > 0, whole > 0 { measurement.add((Double(whole) - Double(own)) / Double(loads), to: .allocations) }
    }
    await manager.close()
    return measurement
  }
}

/// A downloader that responds at once, with a body in one piece.
private struct ImmediateDownloader: Downloader {
  let id = ComponentID.unique(ImmediateDownloader.self)
  private let head: HTTPResponse
  private let bytes: Data

  init(size: Int) {
    bytes = Pattern.bytes(size)
    head = HTTPResponse(
      status: .ok,
      headerFields: [
        .contentType: "image/webp", .contentLength: "\(size)", .cacheControl: "public, max-age=86400",
        .eTag: "\"65a-1f2e3d4c\"", .date: "Mon, 23 Nov 2026 10:00:00 GMT",
      ])
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if bytes.count <= request.collectUpTo { return DownloadResponse(head: head, body: ResourceBody(bytes)) }
    return DownloadResponse(head: head, body: ResourceBody(length: Int64(bytes.count), source: OneChunk(bytes)))
  }

  private final class OneChunk: ResourceBody.Source {
    private let left: Lock<Data?>

    init(_ bytes: Data) { left = Lock(bytes) }

    func next() async throws(CacheError) -> Data? {
      left.withLock { left in
        defer { left = nil }
        return left
      }
    }

    var trailers: HTTPFields? { nil }

    func cancel() {}
  }
}
