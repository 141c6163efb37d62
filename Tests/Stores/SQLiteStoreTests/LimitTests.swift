#if SQLite
import CacheCore
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SQLite store: limits")
struct LimitTests {
  @Test("limits and ranges at the ends of the number range work")
  func extremes() async throws {
    // Given
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: .max, entrySizeLimit: .max))
    let key = CacheKey(resource: "r")

    // When
    try await cache.store(bytes(100_000), for: key, metadata: metadata())

    // Then
    for range in [Int64.min..<Int64.max, Int64.min..<(-1), Int64.max - 1..<Int64.max, 99_999..<Int64.max] {
      let wanted = range.clamped(to: 0..<100_000)
      let body = try #require(try await cache.entry(for: key, range: range)).body
      #expect(try await body.collect() == bytes(100_000)[Int(wanted.lowerBound)..<Int(wanted.upperBound)])
    }
    #expect(try await cache.trim(to: .max) == 0)
    #expect(try await cache.trim(to: .min) == 1)
    await cache.close()
  }
}
#endif
