import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("A Vary field with very many names")
struct HostileVaryTests {
  private let line = "Vary: " + (0..<200_000).map { "x\($0)" }.joined(separator: ",")

  @Test("the response is not stored, and a 304 with the field makes the stored response unusable")
  func notStored() {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(.ok(line, "Cache-Control: max-age=60")) }
    #expect(cache.entries.isEmpty)
    _ = cache.load { _ in .success(.ok("ETag: \"a\"")) }
    _ = cache.load { _ in .success(.head(304, line, "ETag: \"a\"", "Cache-Control: max-age=60")) }
    #expect(cache.load { _ in .success(.ok("X-New: 1")) }.source == .network)
    #expect(cache.entries.count == 1)
  }
}
