import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import Testing

@Suite("A manager with a small disk cache")
struct SmallStoreTests {
  /// The disk cache has room for eight of the bodies.
  private static let length = 100_000
  private let folder: DownloadFolder
  private let fixture: ManagerFixture
  private let disk: DiskCache
  private let urls: [URL]

  init() throws {
    let folder = try DownloadFolder()
    let disk = try DiskCache(folder: folder.url, configuration: .init(sizeLimit: 8 * 106_496))
    let fixture = try ManagerFixture {
      $0.memory = nil
      $0.store = disk
    }
    (self.folder, self.disk, self.fixture) = (folder, disk, fixture)
    urls = try (0..<100).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok(Data(count: Self.length), cacheControl: "max-age=60") } }
  }

  /// Returns the URLs whose responses the store has after its evictions.
  private func stored(_ urls: [URL]) async throws -> [URL] {
    _ = try await disk.usage()
    var stored: [URL] = []
    for url in urls where try await fixture.manager.contains(url, in: .disk) { stored.append(url) }
    return stored
  }

  @Test("each of 100 loaded responses is there after its load, and the last ones stay")
  func loads() async throws {
    for (number, url) in urls.enumerated() {
      _ = try await fixture.manager.load(url)
      let last = urls[max(0, number - 2)...number]
      #expect(try await stored(Array(last)) == Array(last))
    }
  }

  @Test("a prefetch into disk that fits is there, whatever was there before", arguments: [0, 50])
  func fits(_ loaded: Int) async throws {
    for url in urls[..<loaded] { _ = try await fixture.manager.load(url) }
    let wanted = Array(urls[50..<56])

    let report = await fixture.manager.prefetch(wanted, into: .disk)

    #expect(report.loaded == 6 && report.failed.isEmpty)
    #expect(try await stored(wanted) == wanted)
  }

  @Test("a prefetch into disk that does not fit reports exactly what is there", arguments: [1, 4])
  func exceeds(_ concurrency: Int) async throws {
    let wanted = Array(urls[..<30])

    let report = await fixture.manager.prefetch(wanted, into: .disk, concurrency: concurrency)

    let there = try await stored(wanted)
    #expect((5...8).contains(there.count) && report.loaded == there.count)
    #expect(report.failed.map(\.url) == wanted.filter { !there.contains($0) })
    #expect(report.failed.allSatisfy { $0.error.code == .notCached && $0.error.reason.contains("too small") })
  }

  @Test("cached responses that a prefetch evicts are not reported as skipped")
  func skipped() async throws {
    for url in urls[..<3] { _ = try await fixture.manager.load(url) }

    let report = await fixture.manager.prefetch(Array(urls[..<20]), into: .disk, concurrency: 1)

    let there = try await stored(Array(urls[..<20]))
    #expect(report.loaded + report.skipped == there.count)
    #expect(report.skipped == there.count { urls[..<3].contains($0) })
    #expect(report.failed.count == 20 - there.count)
  }

  @Test("a response that does not fit alone or must not be stored is a failure with its reason, and evicts nothing")
  func refused() async throws {
    fixture.network.serve(urls[1]) { _ in .ok(Data(count: 900_000), cacheControl: "max-age=60") }
    fixture.network.serve(urls[2]) { _ in .ok(Data(count: 10), cacheControl: "no-store") }

    let report = await fixture.manager.prefetch(Array(urls[..<6]), into: .disk)

    #expect(report.loaded == 4)
    #expect(report.failed.map(\.url) == [urls[1], urls[2]])
    #expect(report.failed.map(\.error.code) == [.entryTooLarge, .notCached])
    #expect(try await stored(Array(urls[..<6])) == [urls[0], urls[3], urls[4], urls[5]])
  }

  @Test("the progress of a prefetcher ends with what is there, in each round")
  func progress() async throws {
    let prefetcher = fixture.manager.prefetcher(into: .disk, concurrency: 2)
    var finished: [Int] = []
    for round in [0..<20, 20..<24] {
      prefetcher.append(Array(urls[round]))
      for await progress in prefetcher.updates { finished.append(progress.finished) }
      let report = await prefetcher.report()
      #expect(prefetcher.progress.isFinished && prefetcher.progress.running == 0)
      #expect(report.loaded == prefetcher.progress.loaded && report.failed.count == prefetcher.progress.failed)
    }
    #expect(finished == finished.sorted() && finished.last == 24)
    #expect(try await stored(Array(urls[20..<24])).count == 4)
    #expect(prefetcher.progress.failed >= 12 && prefetcher.progress.loaded <= 12)
  }

  @Test("the response of a round of one is checked with the next round")
  func single() async throws {
    let prefetcher = fixture.manager.prefetcher(into: .disk, concurrency: 1)
    prefetcher.append([urls[0]])
    #expect(await prefetcher.report().loaded == 1)
    prefetcher.append(Array(urls[1..<20]))

    let report = await prefetcher.report()

    #expect(report.failed.first?.url == urls[0])
    #expect(report.loaded == (try await stored(Array(urls[..<20])).count))
  }

  @Test("a prefetch whose waiting items are cancelled reports what is there", .timeLimit(.minutes(30)))
  func cancelled() async throws {
    let prefetcher = fixture.manager.prefetcher(into: .disk, concurrency: 1)
    prefetcher.append(Array(urls[..<12]))
    for await progress in prefetcher.updates where progress.finished == 12 { break }
    prefetcher.pause()
    prefetcher.append(Array(urls[12..<14]))
    prefetcher.cancel()

    let report = await prefetcher.report()

    #expect(report.loaded == (try await stored(Array(urls[..<12])).count))
    #expect(report.failed.count { $0.error.isCancellation } == 2)
  }

  @Test("prefetched values that were evicted are failures, too")
  func values() async throws {
    let report = await fixture.manager.prefetch(Array(urls[..<20]), as: TextTransformFixture().whole, into: .disk)
    #expect(report.loaded == (try await stored(Array(urls[..<20])).count))
    #expect(report.loaded + report.failed.count == 20)
  }
}
