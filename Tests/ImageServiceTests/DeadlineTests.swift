#if Service
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("The time limit of a result")
struct DeadlineTests {
  @Test("images are made beside the cooperative pool, unless the configuration has an executor")
  func executor() throws {
    #expect(try ServiceFixture().service.manager.configuration.executor is ProcessingExecutor)
    let own = ProcessingExecutor(width: 1)
    let fixture = try ServiceFixture { $0.cache.executor = own }
    #expect(fixture.service.manager.configuration.executor as? ProcessingExecutor === own)
  }

  @Test("a result gets 504 at its limit while codecs run, also if it still waits for a processor")
  func running() async throws {
    // Given a processor that is occupied
    let queue = DispatchQueue(label: "occupied")
    queue.suspend()
    defer { queue.resume() }
    let fixture = try ServiceFixture {
      $0.limits.timeout = .seconds(10)
      $0.cache.executor = ProcessingExecutor(queue: queue)
      $0.cache.maximumConcurrentTransforms = 1
    }
    for name in ["a", "b", "c"] {
      let source = "https://photos.example.com/\(name)"
      try fixture.serve(try DrawnImage.png(8, 8), at: source)
      // When a request reaches its limit
      async let served = fixture.get("width=4", of: source)
      await fixture.clock.sleepers(1)
      fixture.clock.advance(by: .seconds(11))
      // Then it has a response
      #expect(try await served.status == 504)
    }
  }
}

@Suite("Originals of clients that do not read")
struct SlowOriginalTests {
  private final class CountedSource: ResourceBody.Source {
    static let count = 64
    private let state = Lock(0)

    var pulled: Int { state.withLock { $0 } }

    func next() async throws(CacheError) -> Data? {
      let index = state.withLock { pulled in
        pulled += 1
        return pulled
      }
      return index <= Self.count ? Data(repeating: UInt8(index), count: 512 << 10) : nil
    }

    func cancel() {}

    var trailers: HTTPFields? { nil }
  }

  private struct CountedDownloader: Downloader {
    let source: CountedSource

    var id: ComponentID { ComponentID(Self.self) }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      let length = Int64(CountedSource.count) * (512 << 10)
      let fields: HTTPFields = [.contentLength: "\(length)", .cacheControl: "max-age=60"]
      return DownloadResponse(
        head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(length: length, source: source))
    }
  }

  @Test("an original that is not read is not loaded into memory")
  func bound() async throws {
    let source = CountedSource()
    let fixture = try ServiceFixture { $0.cache.downloader = CountedDownloader(source: source) }
    let path = fixture.key.path(for: ServiceFixture.image, operations: "original")
    let request = HTTPRequest(method: .get, scheme: "https", authority: "img.example.com", path: path)
    let response = await fixture.service.respond(to: request)
    #expect(response.head.status == .ok)
    #expect(source.pulled <= 16)
    #expect(try await response.body.collect().count == CountedSource.count * 512 << 10)
  }
}
#endif
