#if Tool
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("etagere-cli cache", .timeLimit(.minutes(30)))
struct CacheCommandTests {
  private struct Stats: Decodable {
    var folder: String
    var entries: Int
    var bytes: Int64
    var limit: Int64?
    var fresh: Int
    var stale: Int
  }

  private struct Row: Decodable {
    var url: String
    var bytes: Int64
    var bodyBytes: Int64
    var variant: String?
    var partition: String?
    var status: Int
    var ageSeconds: Double
    var isFresh: Bool
    var etag: String?
    var lastModified: String?
  }

  private struct Verdict: Decodable {
    var good: Int
    var bodyBytes: Int64
    var damaged: [String]
    var removed: Int
  }

  /// Runs a test with a cache that has a fresh entry of 1,000 bytes and a stale one of 200.
  private func withCache(_ body: (ToolFixture, OriginServer, _ fresh: String, _ stale: String) async throws -> Void) async throws
  {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      let date = Date(timeIntervalSince1970: 784_111_777)
      origin.setRoute("/fresh", Route(bytes(1_000), etag: "one", lastModified: date, fields: [.cacheControl: "max-age=3600"]))
      origin.setRoute("/stale", Route(bytes(200), etag: .weak("two"), fields: [.cacheControl: "max-age=0"]))
      let (fresh, stale) = (origin.url("/fresh").absoluteString, origin.url("/stale").absoluteString)
      #expect(try await fixture.etagere("get", fresh, stale).status == 0)
      try await body(fixture, origin, fresh, stale)
    }
  }

  @Test("every spelling of an international host finds and removes the same entry")
  func internationalHost() async throws {
    // Given: an entry in the cache folder. The test does not depend on a name server.
    let fixture = try ToolFixture()
    let store = try DiskCache(folder: URL(filePath: fixture.cache, directoryHint: .isDirectory))
    let network = ScriptedDownloader()
    let url = try #require(URL(string: "http://bücher.example/a"))
    network.serve(url) { _ in .ok("x", cacheControl: "max-age=3600") }
    let manager = ResourceManager(
      .init {
        $0.downloader = network
        $0.store = store
        $0.validator = ETagValidator()
      })
    _ = try await manager.load(url)
    await manager.close()

    // When
    let found = try await fixture.etagere("get", "--policy", "cache-only", "http://xn--bcher-kva.example/a")
    let removed = try await fixture.etagere("cache", "remove", "http://BÜCHER.example/a")

    // Then
    #expect(found.status == 0 && found.lines.first?.hasPrefix("disk") == true)
    #expect(removed.status == 0)
    #expect(fixture.entryFiles.isEmpty)
  }

  @Test("stats shows the number of fresh and stale entries, and their size")
  func stats() async throws {
    try await withCache { fixture, _, _, _ in
      let plain = try await fixture.etagere("cache", "stats")
      #expect(plain.status == 0)
      #expect(plain.lines.count == 3)
      #expect(plain.lines[0].hasPrefix("folder   /"))
      #expect(plain.lines[0].hasSuffix("/cache"))
      #expect(plain.lines[1] == "entries  2 (1 fresh, 1 stale)")
      #expect(plain.lines[2].wholeMatch(of: /size     [0-9.]+ KiB of 512 MiB/) != nil)

      let json = try await fixture.etagere("cache", "stats", "--json")
      #expect(json.lines.count == 1)
      let stats = try #require(try json.documents(Stats.self).first)
      #expect(stats.entries == 2 && stats.fresh == 1 && stats.stale == 1)
      // Each file occupies whole blocks of 4 KiB.
      let onDisk = try fixture.entryFiles.reduce(0) { sum, path in
        try sum + (Data(contentsOf: URL(filePath: path)).count + 4_095) / 4_096 * 4_096
      }
      #expect(stats.bytes == Int64(onDisk))
      #expect(try #require(stats.limit) > stats.bytes)
      #expect(plain.lines[0] == "folder   \(stats.folder)")
    }
  }

  @Test("list shows size, state, entity tag and URL of each entry, in the words and sizes of stats")
  func list() async throws {
    try await withCache { fixture, _, fresh, stale in
      let plain = try await fixture.etagere("cache", "list")
      #expect(plain.status == 0)
      #expect(plain.lines.count == 3)
      #expect(plain.lines[0].split(separator: " ") == ["size", "age", "state", "etag", "URL"])
      #expect(plain.lines[1].contains(" KiB"))
      #expect(plain.lines[1].contains("  fresh  \"one\" "))
      #expect(plain.lines[1].hasSuffix(fresh))
      #expect(plain.lines[2].contains("  stale  W/\"two\" "))
      #expect(plain.lines[2].hasSuffix(stale))
      #expect(try await fixture.etagere("cache", "list", "--quiet").lines.count == 2)

      let rows = try await fixture.etagere("cache", "list", "--json").documents(Row.self)
      #expect(rows.map(\.url) == [fresh, stale])
      #expect(rows.map(\.bodyBytes) == [1_000, 200])
      let stats = try #require(try await fixture.etagere("cache", "stats", "--json").documents(Stats.self).first)
      #expect(rows.reduce(0) { $0 + $1.bytes } == stats.bytes)
      #expect(rows.map(\.status) == [200, 200])
      #expect(rows.map(\.isFresh) == [true, false])
      #expect(rows.map(\.etag) == ["\"one\"", "W/\"two\""])
      #expect(rows.map(\.lastModified) == ["Sun, 06 Nov 1994 08:49:37 GMT", nil])
      #expect(rows.allSatisfy { $0.ageSeconds >= 0 && $0.ageSeconds < 600 })
    }
  }

  @Test("list shows partitions and variants, and no digest of a credential")
  func names() async throws {
    // Given
    let fixture = try ToolFixture()
    let store = try DiskCache(folder: URL(filePath: fixture.cache, directoryHint: .isDirectory))
    let network = ScriptedDownloader()
    let url = try #require(URL(string: "http://example.com/a"))
    network.serve(url) { _ in .ok("x", fields: [.vary: "Accept-Language", .cacheControl: "max-age=3600"]) }
    let manager = ResourceManager(
      .init {
        $0.downloader = network
        $0.store = store
        $0.validator = ETagValidator()
      })
    let fields: HTTPFields = [.acceptLanguage: "de", .authorization: "Basic c2VjcmV0"]
    _ = try await manager.load(ResourceRequest(url, headerFields: fields, options: .init { $0.partition = "tenant-7" }))
    _ = try await manager.load(url)
    await manager.close()

    // When
    let plain = try await fixture.etagere("cache", "list", "--quiet")
    let rows = try await fixture.etagere("cache", "list", "--json").documents(Row.self)

    // Then
    let details = "without Accept-Language"
    let secret = "Accept-Language: de, Authorization: (hidden)"
    #expect(rows.allSatisfy { $0.url == "http://example.com/a" })
    #expect(Set(rows.map(\.partition)) == [nil, "tenant-7"])
    #expect(Set(rows.map(\.variant)) == [details, secret])
    #expect(plain.lines.contains { $0.hasSuffix("http://example.com/a  (\(details))") })
    #expect(plain.lines.contains { $0.hasSuffix("http://example.com/a  (partition tenant-7; \(secret))") })
  }

  @Test("remove removes the entries of a URL, and has the status 1 if there are none", arguments: [false, true])
  func remove(asJSON: Bool) async throws {
    try await withCache { fixture, _, fresh, stale in
      func remove() async throws -> ToolRun {
        asJSON
          ? try await fixture.etagere("cache", "remove", fresh, "--json") : try await fixture.etagere("cache", "remove", fresh)
      }
      let first = try await remove()
      let second = try await remove()

      #expect(first.status == 0)
      #expect(first.errors.isEmpty)
      #expect(first.lines == [asJSON ? #"{"removed":1}"# : "removed \(fresh)"])
      #expect(second.status == 1)
      #expect(second.errors == ["etagere-cli: \(fresh): not in the cache"])
      #expect(second.lines == (asJSON ? [#"{"removed":0}"#] : []))
      #expect(try await fixture.etagere("cache", "list", "--json").documents(Row.self).map(\.url) == [stale])
    }
  }

  @Test("remove --json counts every variant, as clear does")
  func removedVariants() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(10), fields: [.cacheControl: "max-age=3600", .vary: "Accept-Language"]))
      let url = origin.url("/a").absoluteString
      for language in ["de", "fr"] {
        #expect(try await fixture.etagere("get", "--header", "Accept-Language: \(language)", url).status == 0)
      }

      // When
      let run = try await fixture.etagere("cache", "remove", url, "--json")

      // Then
      #expect(run.lines == [#"{"removed":2}"#])
      #expect(fixture.entryFiles.isEmpty)
    }
  }

  @Test("clear removes all entries", arguments: [false, true])
  func clear(asJSON: Bool) async throws {
    try await withCache { fixture, _, _, _ in
      let run = asJSON ? try await fixture.etagere("cache", "clear", "--json") : try await fixture.etagere("cache", "clear")
      #expect(run.status == 0)
      #expect(run.lines.count == 1)
      #expect(asJSON ? run.lines == [#"{"removed":2}"#] : run.lines.first?.hasPrefix("removed 2 entries from /") == true)
      #expect(fixture.entryFiles.isEmpty)
      #expect(try await fixture.etagere("cache", "list").lines.isEmpty)
    }
  }

  @Test("a command that looks at a cache does not create it", arguments: ["stats", "list", "verify", "clear"])
  func absent(_ command: String) async throws {
    let fixture = try ToolFixture()
    #expect(try await fixture.etagere("cache", command).status == 0)
    #expect(!FileManager.default.fileExists(atPath: fixture.cache))
  }

  @Test("verify finds no damage in an intact cache")
  func verifyGood() async throws {
    try await withCache { fixture, _, _, _ in
      let plain = try await fixture.etagere("cache", "verify")
      #expect(plain.status == 0)
      #expect(plain.errors.isEmpty)
      #expect(plain.lines == ["2 entries: 2 good, 0 damaged, 0 removed"])
      let verdict = try #require(try await fixture.etagere("cache", "verify", "--json").documents(Verdict.self).first)
      #expect(verdict.good == 2)
      #expect(verdict.bodyBytes == 1_200)
      #expect(verdict.damaged.isEmpty)
    }
  }

  @Test("verify names each damaged file with the status 65, and removes it only with --repair")
  func verifyDamaged() async throws {
    try await withCache { fixture, _, _, _ in
      // Given
      let files = fixture.entryFiles
      #expect(files.count == 2)
      for file in files { try damage(file) }

      // When
      let plain = try await fixture.etagere("cache", "verify")
      let json = try await fixture.etagere("cache", "verify", "--json")
      let repair = try await fixture.etagere("cache", "verify", "--repair")
      let after = try await fixture.etagere("cache", "verify")

      // Then
      #expect(plain.status == 65)
      #expect(plain.lines == ["2 entries: 0 good, 2 damaged, 0 removed"])
      #expect(plain.errors.count == 2)
      for file in files {
        let name = URL(filePath: file).lastPathComponent
        #expect(plain.errors.contains { $0.hasPrefix("etagere-cli: /") && $0.contains("/\(name): ") })
      }
      #expect(json.status == 65)
      let verdict = try #require(try json.documents(Verdict.self).first)
      #expect(verdict.damaged.map { "etagere-cli: \($0)" } == plain.errors)
      #expect(repair.status == 0)
      #expect(repair.lines == ["2 entries: 0 good, 2 damaged, 2 removed"])
      #expect(repair.errors == plain.errors)
      #expect(after.status == 0)
      #expect(after.lines == ["0 entries: 0 good, 0 damaged, 0 removed"])
      #expect(fixture.entryFiles.isEmpty)
    }
  }

  @Test("get replaces a damaged entry and never returns damaged bytes")
  func healing() async throws {
    try await withCache { fixture, origin, fresh, _ in
      // Given
      for file in fixture.entryFiles { try damage(file) }

      // When
      let healed = try await fixture.etagere("get", fresh, "-o", "-")
      let again = try await fixture.etagere("get", fresh)

      // Then
      #expect(healed.status == 0)
      #expect(healed.output == bytes(1_000))
      #expect(healed.errors.count == 1)
      #expect(healed.errors.first?.hasPrefix("network         200 ") == true)
      #expect(again.lines.first?.hasPrefix("disk            200 ") == true)
      #expect(origin.counters(for: "/fresh").requests == 2)
    }
  }

  /// Flips a byte in the middle of the body, which is found by its bytes.
  private func damage(_ file: String) throws {
    var data = try Data(contentsOf: URL(filePath: file))
    let body = try #require(data.range(of: bytes(100)))
    data[body.lowerBound + 50] ^= 0xff
    try data.write(to: URL(filePath: file))
  }
}
#endif
