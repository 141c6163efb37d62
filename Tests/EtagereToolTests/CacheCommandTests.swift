#if Tool
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere cache", .timeLimit(.minutes(30)))
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

  /// A cache with a fresh entry of 1,000 bytes and one of 200 to be validated.
  private func withCache(_ body: (Workplace, OriginServer, _ fresh: String, _ stale: String) async throws -> Void) async throws {
    try await withOrigin { origin in
      let place = try Workplace()
      let date = Date(timeIntervalSince1970: 784_111_777)
      origin.setRoute("/fresh", Route(bytes(1_000), etag: "one", lastModified: date, fields: [.cacheControl: "max-age=3600"]))
      origin.setRoute("/stale", Route(bytes(200), etag: .weak("two"), fields: [.cacheControl: "max-age=0"]))
      let (fresh, stale) = (origin.url("/fresh").absoluteString, origin.url("/stale").absoluteString)
      #expect(try await place.etagere("get", fresh, stale).status == 0)
      try await body(place, origin, fresh, stale)
    }
  }

  @Test("a URL is found and removed by every spelling of an international host")
  func internationalHost() async throws {
    // Given: an entry of the cache folder, since no name can be resolved here.
    let place = try Workplace()
    let store = try DiskCache(folder: URL(filePath: place.cache, directoryHint: .isDirectory))
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
    let found = try await place.etagere("get", "--policy", "cache-only", "http://xn--bcher-kva.example/a")
    let removed = try await place.etagere("cache", "remove", "http://BÜCHER.example/a")

    // Then
    #expect(found.status == 0 && found.lines.first?.hasPrefix("disk") == true)
    #expect(removed.status == 0)
    #expect(place.entryFiles.isEmpty)
  }

  @Test("stats counts entries, bytes and freshness")
  func stats() async throws {
    try await withCache { place, _, _, _ in
      let plain = try await place.etagere("cache", "stats")
      #expect(plain.status == 0)
      #expect(plain.lines.count == 3)
      #expect(plain.lines[0].hasPrefix("folder   /"))
      #expect(plain.lines[0].hasSuffix("/cache"))
      #expect(plain.lines[1] == "entries  2 (1 fresh, 1 to be validated)")
      #expect(plain.lines[2].hasPrefix("size     "))

      let json = try await place.etagere("cache", "stats", "--json")
      #expect(json.lines.count == 1)
      let stats = try #require(try json.documents(Stats.self).first)
      #expect(stats.entries == 2 && stats.fresh == 1 && stats.stale == 1)
      let onDisk = try place.entryFiles.reduce(0) { try $0 + Data(contentsOf: URL(filePath: $1)).count }
      #expect(stats.bytes == Int64(onDisk))
      #expect(try #require(stats.limit) > stats.bytes)
      #expect(plain.lines[0] == "folder   \(stats.folder)")
    }
  }

  @Test("list shows every entry with size, freshness, entity tag and URL")
  func list() async throws {
    try await withCache { place, _, fresh, stale in
      let plain = try await place.etagere("cache", "list")
      #expect(plain.status == 0)
      #expect(plain.lines.count == 2)
      #expect(plain.lines[0].contains("1.0 kB"))
      #expect(plain.lines[0].contains("  fresh  \"one\" "))
      #expect(plain.lines[0].contains(fresh))
      #expect(plain.lines[1].contains("200 B"))
      #expect(plain.lines[1].contains("  stale  W/\"two\" "))
      #expect(plain.lines[1].contains(stale))

      let rows = try await place.etagere("cache", "list", "--json").documents(Row.self)
      #expect(rows.map(\.url) == [fresh, stale])
      #expect(rows.map(\.bytes) == [1_000, 200])
      #expect(rows.map(\.status) == [200, 200])
      #expect(rows.map(\.isFresh) == [true, false])
      #expect(rows.map(\.etag) == ["\"one\"", "W/\"two\""])
      #expect(rows.map(\.lastModified) == ["Sun, 06 Nov 1994 08:49:37 GMT", nil])
      #expect(rows.allSatisfy { $0.ageSeconds >= 0 && $0.ageSeconds < 600 })
    }
  }

  @Test("remove takes one URL out, and says when it was not there", arguments: [false, true])
  func remove(asJSON: Bool) async throws {
    try await withCache { place, _, fresh, stale in
      func remove() async throws -> ToolRun {
        asJSON ? try await place.etagere("cache", "remove", fresh, "--json") : try await place.etagere("cache", "remove", fresh)
      }
      let first = try await remove()
      let second = try await remove()

      #expect(first.status == 0)
      #expect(first.complaints.isEmpty)
      #expect(first.lines == [asJSON ? #"{"removed":1}"# : "removed \(fresh)"])
      #expect(second.status == 80)
      #expect(second.complaints == ["etagere: \(fresh): not in the cache"])
      #expect(second.lines == (asJSON ? [#"{"removed":0}"#] : []))
      #expect(try await place.etagere("cache", "list", "--json").documents(Row.self).map(\.url) == [stale])
    }
  }

  @Test("clear takes everything out", arguments: [false, true])
  func clear(asJSON: Bool) async throws {
    try await withCache { place, _, _, _ in
      let run = asJSON ? try await place.etagere("cache", "clear", "--json") : try await place.etagere("cache", "clear")
      #expect(run.status == 0)
      #expect(run.lines.count == 1)
      #expect(asJSON ? run.lines == [#"{"removed":2}"#] : run.lines.first?.hasPrefix("removed 2 entries from /") == true)
      #expect(place.entryFiles.isEmpty)
      #expect(try await place.etagere("cache", "list").lines.isEmpty)
    }
  }

  @Test("verify finds a whole cache good")
  func verifyGood() async throws {
    try await withCache { place, _, _, _ in
      let plain = try await place.etagere("cache", "verify")
      #expect(plain.status == 0)
      #expect(plain.complaints.isEmpty)
      #expect(plain.lines == ["2 good (1.2 kB), 0 damaged, 0 removed"])
      let verdict = try #require(try await place.etagere("cache", "verify", "--json").documents(Verdict.self).first)
      #expect(verdict.good == 2)
      #expect(verdict.bodyBytes == 1_200)
      #expect(verdict.damaged.isEmpty)
    }
  }

  @Test("verify names each damaged file, with the status 82, and removes nothing unless told to")
  func verifyDamaged() async throws {
    try await withCache { place, _, _, _ in
      // Given
      let files = place.entryFiles
      #expect(files.count == 2)
      for file in files { try damage(file) }

      // When
      let plain = try await place.etagere("cache", "verify")
      let json = try await place.etagere("cache", "verify", "--json")
      let repair = try await place.etagere("cache", "verify", "--repair")
      let after = try await place.etagere("cache", "verify")

      // Then
      #expect(plain.status == 82)
      #expect(plain.lines == ["0 good (0 B), 2 damaged, 0 removed"])
      #expect(plain.complaints.count == 2)
      for file in files {
        let name = URL(filePath: file).lastPathComponent
        #expect(plain.complaints.contains { $0.hasPrefix("etagere: /") && $0.contains("/\(name): ") })
      }
      #expect(json.status == 82)
      let verdict = try #require(try json.documents(Verdict.self).first)
      #expect(verdict.damaged.map { "etagere: \($0)" } == plain.complaints)
      #expect(repair.status == 0)
      #expect(repair.lines == ["0 good (0 B), 2 damaged, 2 removed"])
      #expect(repair.complaints == plain.complaints)
      #expect(after.status == 0)
      #expect(after.lines == ["0 good (0 B), 0 damaged, 0 removed"])
      #expect(place.entryFiles.isEmpty)
    }
  }

  @Test("get heals a damaged entry: never wrong bytes, and the next process finds it whole")
  func healing() async throws {
    try await withCache { place, origin, fresh, _ in
      // Given
      for file in place.entryFiles { try damage(file) }

      // When
      let healed = try await place.etagere("get", fresh, "-o", "-")
      let again = try await place.etagere("get", fresh)

      // Then
      #expect(healed.status == 0)
      #expect(healed.output == bytes(1_000))
      #expect(healed.complaints.count == 1)
      #expect(healed.complaints.first?.hasPrefix("network        200 ") == true)
      #expect(again.lines.first?.hasPrefix("disk           200 ") == true)
      #expect(origin.counters(for: "/fresh").requests == 2)
    }
  }

  /// Flips a byte in the middle of the body: the pattern's bytes are looked for, so that it is the body and nothing else.
  private func damage(_ file: String) throws {
    var data = try Data(contentsOf: URL(filePath: file))
    let body = try #require(data.range(of: bytes(100)))
    data[body.lowerBound + 50] ^= 0xff
    try data.write(to: URL(filePath: file))
  }
}
#endif
