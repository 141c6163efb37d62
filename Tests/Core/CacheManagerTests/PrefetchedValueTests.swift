import CacheCore
import CacheManager
import CacheTesting
import Foundation
import Testing

@Suite("Prefetched values")
struct PrefetchedValueTests {
  private let fixture: ManagerFixture
  private let text = TextTransformFixture()
  private let urls: [URL]

  init() throws {
    let fixture = try ManagerFixture()
    self.fixture = fixture
    urls = try (0..<5).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok("a body of some length", cacheControl: "max-age=60") } }
  }

  @Test("prefetched values are in memory when they are shown, and were made once")
  func memory() async throws {
    let report = await fixture.manager.prefetch(urls, as: text.short())

    #expect(report.loaded == 5 && report.failed.isEmpty)
    for url in urls {
      let value = try #require(fixture.manager.cachedInMemory(url, as: text.short()))
      #expect(value.value == "A " && value.valueOrigin == .memory)
    }
    #expect(text.decoded.value == 5)
  }

  @Test(
    "prefetched values are read from disk after a restart, without another step", arguments: [PrefetchDestination.cache, .disk])
  func disk(_ destination: PrefetchDestination) async throws {
    let prefetcher = fixture.manager.prefetcher(as: text.short(), into: destination)
    prefetcher.append(urls)
    #expect(await prefetcher.report().loaded == 5)
    if destination == .disk {
      for url in urls { #expect(fixture.manager.cachedInMemory(url, as: text.short()) == nil) }
    }
    fixture.restart()

    for url in urls {
      let value = try await fixture.manager.load(url, as: text.short())
      #expect(value.value == "A " && value.source == .disk && value.valueOrigin == .disk)
    }
    #expect(text.decoded.value == 5)
    #expect(text.restored.value == 5)
    #expect(fixture.network.requests.count == 5)
  }

  @Test("prefetched values stay in memory alone if that is the destination")
  func memoryAlone() async throws {
    #expect(await fixture.manager.prefetch(urls, as: text.short(), into: .memory).loaded == 5)

    #expect(fixture.disk.keys.isEmpty)
    #expect(fixture.manager.cachedInMemory(urls[0], as: text.short())?.value == "A ")
  }

  @Test(
    "cached values are skipped, and values whose originals are cached are made", arguments: [PrefetchDestination.cache, .disk])
  func skipping(_ destination: PrefetchDestination) async throws {
    _ = try await fixture.manager.load(urls[0], as: text.short())
    _ = try await fixture.manager.load(urls[1])

    let report = await fixture.manager.prefetch(Array(urls[0...2]), as: text.short(), into: destination)

    #expect(report.skipped == 2 && report.loaded == 1)
    // There is one for the load, one for the original, and one for the missing response.
    #expect(text.decoded.value == 3)
    #expect(fixture.network.requests.count == 3)
  }

  @Test("values that cannot be made are failures, and the prefetch continues with the others")
  func failing() async throws {
    let bad = text.whole.map("none") { text throws(CacheError) in
      guard text.hasPrefix("a") else { throw CacheError(.decodingFailed, reason: "no text") }
      return text
    }
    fixture.network.serve(urls[3]) { _ in .ok("no text", cacheControl: "max-age=60") }

    let report = await fixture.manager.prefetch(urls, as: bad)

    #expect(report.loaded == 4)
    #expect(report.failed.map(\.url) == [urls[3]])
    #expect(report.failed.first?.error.code == .decodingFailed)
  }

  @Test("values that are not stored are failures if the disk is the destination")
  func unstorable() async throws {
    fixture.network.serve(urls[0]) { _ in .ok("a body of some length", cacheControl: "no-store") }
    let report = await fixture.manager.prefetch(Array(urls[0...1]), as: text.short(), into: .disk)
    #expect(report.loaded == 1 && report.failed.map(\.error.code) == [.notCached])

    let without = try ManagerFixture { $0.store = nil }
    without.network.serve(without.url) { _ in .ok("body", cacheControl: "max-age=60") }
    let none = await without.manager.prefetch([without.url], as: text.short(), into: .disk)
    #expect(none.failed.map(\.error.code) == [.invalidConfiguration])
  }
}
