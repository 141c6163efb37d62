import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A folder in version 1 of the disk format (`Tests/Support/Golden/disk-1`), opened by a manager of this version.
private final class GoldenDisk: Sendable {
  let cache: DiskCache
  let clock = ManualClock(now: Timestamp(seconds: 1_767_225_600) + .seconds(30))
  private let folder: URL

  init() throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    folder = FileManager.default.temporaryDirectory.appending(path: "etagere-golden-\(Revision.random())")
    try FileManager.default.copyItem(at: tests.appending(path: "Support/Golden/disk-1"), to: folder)
    cache = try DiskCache(folder: folder, configuration: .init(clock: clock))
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// Returns a manager over the folder that cannot send requests.
  func manager(_ mode: CacheMode = .private, parts: PartialResponses = .ignored) -> ResourceManager {
    ResourceManager(
      ResourceManager.Configuration {
        $0.store = cache
        $0.memory = MemoryCache(limits: .init(cost: 1 << 20), clock: clock)
        $0.validator = ETagValidator(mode: mode, parts: parts, digestSecret: DigestSecret(high: 1, low: 2))
        $0.clock = clock
      })
  }
}

@Suite("Responses that an earlier version stored")
struct GoldenResponseTests {
  private func send(
    _ manager: ResourceManager, _ path: String, _ fields: HTTPFields = [:], _ options: RequestOptions = RequestOptions()
  ) async throws -> (response: CachedResponse, text: String) {
    let response = try await manager.respond(
      to: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: path, headerFields: fields),
      options: options)
    return (response, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  @Test("stored responses are used within their lifetime, and satisfy conditions by their entity tags")
  func plain() async throws {
    let disk = try GoldenDisk()
    let manager = disk.manager()

    let whole = try await send(manager, "/plain")
    #expect(whole.text == "plain text\n" && whole.response.head.headerFields[.age] == "31")
    #expect(whole.response.status.description == "Etagere;hit;ttl=29")
    #expect(try await send(manager, "/plain", [.ifNoneMatch: "\"1\""]).response.head.status == .notModified)
    #expect(try await send(manager, "/plain", [.range: "bytes=6-9"]).text == "text")
  }

  @Test("stored responses are found by their selecting fields, including credentials, with the stored secret")
  func variant() async throws {
    let disk = try GoldenDisk()
    let manager = disk.manager()
    let fields: HTTPFields = [.acceptLanguage: "de", .authorization: "Bearer token"]

    #expect(try await send(manager, "/varying", fields).text == "Guten Tag\n")
    for other: HTTPFields in [
      [.acceptLanguage: "de"], [.acceptLanguage: "nl", .authorization: "Bearer token"],
      [.acceptLanguage: "de", .authorization: "Bearer other"],
    ] {
      await #expect(throws: CacheError.self) { try await send(manager, "/varying", other) }
    }
  }

  @Test("a new response replaces the old one under the same name")
  func names() async throws {
    let disk = try GoldenDisk()
    let network = ScriptedDownloader(clock: disk.clock)
    let options = RequestOptions { $0.downloader = .use(network) }
    for (path, response) in [
      ("/varying", ScriptedResponse.ok("new", cacheControl: "max-age=60", fields: [.vary: "Accept-Language, Authorization"])),
      (
        "/part",
        .response(
          .partialContent, fields: [.contentRange: "bytes 0-4/10", .eTag: "\"8\"", .cacheControl: "max-age=60"],
          body: Data("56789".utf8))
      ),
    ] {
      let url = try #require(URL(string: "https://example.com\(path)"))
      network.respond(to: url, with: response)
      let fields: HTTPFields = path == "/part" ? [.range: "bytes=0-4"] : [.acceptLanguage: "de", .authorization: "Bearer token"]
      let before = try await disk.cache.variants(of: url.absoluteString)
      disk.clock.advance(by: .seconds(60))
      let manager = path == "/part" ? disk.manager(.shared, parts: .reused) : disk.manager()
      _ = try await send(manager, path, fields, options)
      let after = try await disk.cache.variants(of: url.absoluteString)
      #expect(after.map(\.key) == before.map(\.key) && after.count == 1)
      #expect(after.first?.metadata.revision != before.first?.metadata.revision)
    }
  }

  @Test("stored responses are confirmed by their entity tags, including weak ones")
  func weak() async throws {
    let disk = try GoldenDisk()
    let network = ScriptedDownloader(clock: disk.clock)
    let url = try #require(URL(string: "https://example.com/weak"))
    network.respond(to: url, with: .notModified(etag: "W/\"7\""))

    let confirmed = try await send(disk.manager(), "/weak", [:], RequestOptions { $0.downloader = .use(network) })

    #expect(confirmed.text == "weak\n" && confirmed.response.status.description.contains("fwd-status=304"))
    #expect(network.requests.map { $0.headerFields[.ifNoneMatch] } == ["W/\"7\""])
  }

  @Test("a stored response has the lifetime of its last 304, and is served stale as long as that 304 allows")
  func confirmed() async throws {
    let disk = try GoldenDisk()
    disk.clock.advance(by: .seconds(3_630))

    let fresh = try await send(disk.manager(), "/confirmed")

    #expect(fresh.text == "confirmed\n" && fresh.response.head.headerFields[.server] == "another")
    #expect(fresh.response.status.description == "Etagere;hit;ttl=59")
  }

  @Test("parts, errors, keys and partitions are found")
  func others() async throws {
    let disk = try GoldenDisk()

    let part = try await send(disk.manager(.shared, parts: .reused), "/part", [.range: "bytes=1-3"])
    #expect(part.response.head.status == .partialContent && part.text == "123")
    let gone = try await send(disk.manager(), "/gone")
    #expect(gone.response.head.status == .notFound && gone.text == "no such page\n")
    let manager = disk.manager()
    let options = RequestOptions {
      $0.key = "report"
      $0.partition = "tenant-7"
    }
    let url = try #require(URL(string: "https://example.com/report?signature=y"))
    #expect(try await manager.contains(url, options: options))
    disk.clock.advance(by: .seconds(7_200))
    await #expect(throws: CacheError.self) { try await send(disk.manager(), "/gone") }
  }
}
