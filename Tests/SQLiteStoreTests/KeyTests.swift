#if SQLite
import CacheCore
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Keys in a database")
struct KeyTests {
  private static let odd = [
    "", "\0", "a\0b", "..", "../../x", "/", "'; DROP TABLE entry; --", "\u{1F600}", "e\u{301}",
    String(decoding: [0xFF, 0xC3, 0x28] as [UInt8], as: UTF8.self), String(repeating: "k", count: 1_000_000),
  ]

  @Test("keys of any characters and any length are kept apart", arguments: 0..<3)
  func oddKeys(part: Int) async throws {
    // Given
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    let keys = Self.odd.map { text in
      switch part {
      case 0: CacheKey(resource: text)
      case 1: CacheKey(resource: "r", variant: text)
      default: CacheKey(resource: "r", variant: "v", form: text)
      }
    }

    // When
    for (index, key) in keys.enumerated() { try await cache.store(bytes(50, seed: UInt64(index)), for: key, metadata()) }

    // Then
    for (index, key) in keys.enumerated() {
      let entry = try #require(try await cache.open(key))
      #expect(entry.key == key)
      #expect(try await entry.body.collect() == bytes(50, seed: UInt64(index)))
    }
    #expect(try await cache.entryCount == keys.count)
    await cache.close()
  }

  @Test("limits and ranges at the ends of what a number holds are limits and ranges like others")
  func extremes() async throws {
    // Given
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: .max, entrySizeLimit: .max))
    let key = CacheKey(resource: "r")

    // When
    try await cache.store(bytes(100_000), for: key, metadata())

    // Then
    for range in [Int64.min..<Int64.max, Int64.min..<(-1), Int64.max - 1..<Int64.max, 99_999..<Int64.max] {
      let wanted = range.clamped(to: 0..<100_000)
      let body = try #require(try await cache.open(key, range: range)).body
      #expect(try await body.collect() == bytes(100_000)[Int(wanted.lowerBound)..<Int(wanted.upperBound)])
    }
    #expect(try await cache.trim(to: .max) == 0)
    #expect(try await cache.trim(to: .min) == 1)
    await cache.close()
  }
}
#endif
