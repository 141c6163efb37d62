import CacheCore
import DiskStore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: round trips")
struct RoundTripTests {
  let folder: TemporaryFolder
  let cache: DiskCache

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path)
  }

  @Test(
    "a body is read back byte for byte by this cache and another one",
    arguments: [0, 1, 4095, 65_535, 65_536, 65_537, 120_000, 131_072, 200_000, 262_144, 400_001])
  func wholeBodies(length: Int) async throws {
    let key = CacheKey(resource: "https://example.com/\(length)")
    let body = bytes(length, seed: UInt64(length))
    let stored = try await cache.store(body, for: key, metadata: metadata())
    #expect(stored.bodyLength == Int64(length))
    for reader in [cache, try folder.sharedCache()] {
      let entry = try #require(try await reader.entry(for: key))
      #expect(entry.metadata == stored)
      #expect(entry.body.length == Int64(length))
      let read = try await entry.body.collect()
      #expect(read == body)
      #expect(read.startIndex == 0)
    }
  }

  @Test("a body written in odd chunks is read back byte for byte", arguments: [7919, 65_536, 99_991, 1_000_003])
  func oddChunks(size: Int) async throws {
    let key = CacheKey(resource: "odd")
    let body = bytes(5_000_000, seed: 5)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    for start in stride(from: 0, to: body.count, by: size) { try await writer.write(body[start..<min(start + size, body.count)]) }
    _ = try await writer.commit(trailers: nil)
    #expect(try await cache.bytes(key) == body)
    #expect(try await cache.verify().isClean)
  }

  @Test("a body of 100 MB is written and read in chunks", .timeLimit(.minutes(30)))
  func hugeBody() async throws {
    let key = CacheKey(resource: "huge")
    let chunk = bytes(1_048_576 + 13, seed: 9)
    let count = 100
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    for _ in 0..<count { try await writer.write(chunk) }
    _ = try await writer.commit(trailers: nil)
    let entry = try #require(try await cache.entry(for: key))
    var offset = 0
    var largest = 0
    for try await read in entry.body {
      largest = max(largest, read.count)
      // Each chunk is compared with the matching part of the repeated chunk.
      var done = 0
      while done < read.count {
        let start = (offset + done) % chunk.count
        let step = min(read.count - done, chunk.count - start)
        let isEqual = read[done..<done + step] == chunk[start..<start + step]
        try #require(isEqual, "at \(offset + done)")
        done += step
      }
      offset += read.count
    }
    #expect(offset == count * chunk.count)
    #expect(largest <= 262_144)
  }

  @Test(
    "a range is exact and clamped to the body",
    arguments: [
      (0..<1, 0..<1), (0..<65_536, 0..<65_536), (1..<65_537, 1..<65_537), (65_535..<65_537, 65_535..<65_537),
      (299_999..<300_000, 299_999..<300_000), (100_000..<290_000, 100_000..<290_000), (5..<5, 5..<5),
      (299_000..<400_000, 299_000..<300_000), (500_000..<600_000, 300_000..<300_000), (-5..<3, 0..<3),
    ] as [(Range<Int64>, Range<Int64>)])
  func ranges(asked: Range<Int64>, given: Range<Int64>) async throws {
    let key = CacheKey(resource: "range")
    let body = bytes(300_000)
    try await cache.store(body, for: key, metadata: metadata())
    let entry = try #require(try await cache.entry(for: key, range: asked))
    #expect(entry.body.length == Int64(given.count))
    #expect(try await entry.body.collect() == body[Int(given.lowerBound)..<Int(given.upperBound)])
  }

  @Test("a range of a small body is exact")
  func smallRange() async throws {
    let key = CacheKey(resource: "range")
    let body = bytes(20_000)
    try await cache.store(body, for: key, metadata: metadata())
    #expect(try await cache.entry(for: key, range: 100..<9000)?.body.collect() == body[100..<9000])
  }

  @Test("metadata is read back with trailers, unusual header bytes and large header sections")
  func metadataRoundTrip() async throws {
    var written = metadata(expiration: .after(.seconds(86_400 * 36_500)), padding: 100_000)
    written.response.headerFields[HTTPField.Name("X-Odd")!] = "caf\u{E9} \u{1F600}"
    written.freshness.staleWhileRevalidateUntil = Timestamp(seconds: 5)
    let writer = try await cache.makeWriter(for: CacheKey(resource: "m"), metadata: written)
    try await writer.write(bytes(10))
    let stored = try await writer.commit(trailers: [.contentLanguage: "x"])
    #expect(stored.trailers == [.contentLanguage: "x"])
    let entry = try #require(try await DiskCache(path: folder.path).entry(for: CacheKey(resource: "m")))
    #expect(entry.metadata == stored)
    var expected = written
    expected.trailers = [.contentLanguage: "x"]
    expected.bodyLength = 10
    #expect(entry.metadata == expected)
  }

  @Test("a store replaces the earlier entry, and a miss is nil")
  func replacement() async throws {
    let key = CacheKey(resource: "r")
    #expect(try await cache.bytes(key) == nil)
    try await cache.store(bytes(100, seed: 1), for: key, metadata: metadata())
    try await cache.store(bytes(70, seed: 2), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(70, seed: 2))
    #expect(folder.entryFiles.count == 1)
    #expect(cache.counters.writes == 2)
    #expect(cache.counters.hits == 1)
    #expect(cache.counters.misses == 1)
  }

  @Test("a reader that has opened an entry keeps reading the old bytes while a writer replaces it")
  func oldBytes() async throws {
    let key = CacheKey(resource: "r")
    let old = bytes(1_000_000, seed: 1)
    try await cache.store(old, for: key, metadata: metadata())
    let entry = try #require(try await cache.entry(for: key))
    var iterator = entry.body.makeAsyncIterator()
    var read = try #require(try await iterator.next())
    try await cache.store(bytes(1_000_000, seed: 2), for: key, metadata: metadata())
    try await cache.removeAll()
    while let chunk = try await iterator.next() { read += chunk }
    #expect(read == old)
  }

  @Test("a cancelled body throws a cancellation")
  func cancelledBody() async throws {
    let key = CacheKey(resource: "r")
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata())
    let entry = try #require(try await cache.entry(for: key))
    entry.body.source.cancel()
    #expect(await failure { _ = try await entry.body.collect() }?.code == .cancelled)
  }
}
