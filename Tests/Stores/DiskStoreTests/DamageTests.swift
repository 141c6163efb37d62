import CacheCore
import DiskStore
import HTTPTypes
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: damaged files")
struct DamageTests {
  let folder: TemporaryFolder
  let cache: DiskCache
  /// Has the folder open too. Without it, `cache` would consider itself alone and rely on the counters for the time of a lease.
  let other: DiskCache
  let key = CacheKey(resource: "https://example.com/image")

  init() throws {
    folder = try TemporaryFolder()
    cache = try folder.sharedCache()
    other = try folder.sharedCache()
  }

  private enum Damage: CaseIterable {
    case flip, flips, cut, extend, zero, overwrite, swap

    func apply(to data: Data, _ generator: inout SeededGenerator) -> Data {
      var data = data
      let start = Int.random(in: 0..<data.count, using: &generator)
      let end = min(data.count, start + Int.random(in: 1...700, using: &generator))
      switch self {
      case .flip: data[start] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case .flips:
        for _ in 0..<8 { data[Int.random(in: 0..<data.count, using: &generator)] ^= UInt8.random(in: 1..<255, using: &generator) }
      case .cut: data = data.prefix(start)
      case .extend: data += bytes(Int.random(in: 1..<3000, using: &generator), seed: generator.next())
      case .zero: data.replaceSubrange(start..<end, with: Data(count: end - start))
      case .overwrite: data.replaceSubrange(start..<end, with: bytes(end - start, seed: generator.next()))
      case .swap:
        let half = data.count / 2
        data = data.suffix(data.count - half) + data.prefix(half)
      }
      return data
    }
  }

  #if TSAN
  /// Each case is the work of one task. Under the thread sanitizer, a fifth of them finds as much.
  private static let share = 5
  #else
  private static let share = 1
  #endif

  /// The length of the body and the number of cases, 2,000 in all.
  @Test(
    "damage anywhere in a file causes a miss, an error or correct bytes, but never a wrong byte",
    arguments: [
      (0, 300 / share), (700, 900 / share), (20_000, 500 / share), (200_000, 300 / share),
    ])
  func randomDamage(length: Int, cases: Int) async throws {
    var generator = SeededGenerator(state: UInt64(length) + 42)
    let body = bytes(length, seed: 11)
    let first = try await cache.store(body, for: key, metadata: metadata())
    var known = [first]
    for round in 0..<3 {
      var next = metadata(revision: first.revision, etag: "\"\(round)\"")
      next.bodyLength = Int64(length)
      #expect(try await cache.updateMetadata(of: key, to: next, ifRevision: first.revision))
      known.append(next)
    }
    let entryPath = folder.entryFiles[0]
    let whole = try file(entryPath)
    var misses = 0
    for number in 0..<cases {
      let damage = Damage.allCases[number % Damage.allCases.count]
      let damaged = damage.apply(to: whole, &generator)
      try folder.place(damaged, entryPath)
      let range = number % 3 == 0 ? Int64(length / 3)..<Int64(length / 2) : 0..<Int64(length)
      guard let entry = try await cache.entry(for: key, range: range) else {
        misses += 1
        #expect(!fileExists(entryPath), "case \(number) \(damage): the damaged file is removed")
        continue
      }
      #expect(known.contains(entry.metadata), "case \(number) \(damage)")
      do {
        let read = try await entry.body.collect()
        #expect(read == body[Int(range.lowerBound)..<Int(range.upperBound)], "case \(number) \(damage)")
      } catch {
        #expect(error.code == .damagedEntry)
        misses += 1
        #expect(!fileExists(entryPath), "case \(number) \(damage): the damaged file is removed")
      }
    }
    #expect(misses > cases / 4)
    #expect(cache.counters.damaged == misses)
    // A store replaces the damaged entry.
    try await cache.store(body, for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == body)
  }

  @Test("a truncated file is a miss, or intact if only padding is missing")
  func everyLength() async throws {
    let body = bytes(300)
    let stored = try await cache.store(body, for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    let whole = try file(entryPath)
    for length in stride(from: 0, to: whole.count, by: Self.share) {
      try folder.place(whole.prefix(length), entryPath)
      if let entry = try await cache.entry(for: key) {
        #expect(whole[length...].allSatisfy { $0 == 0 }, "cut at \(length)")
        #expect(entry.metadata == stored)
        #expect(try await entry.body.collect() == body)
      } else {
        #expect(!fileExists(entryPath))
      }
    }
  }

  @Test(
    "without body checks, a damaged body is returned but found by verify, and damage before the body is a miss",
    arguments: [5_000, 300_000])
  func unchecked(length: Int) async throws {
    let body = bytes(length)
    try await cache.store(body, for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    let whole = try file(entryPath)
    let unchecked = try DiskCache(path: folder.path, configuration: .init(checksBodies: false))
    var damaged = whole
    damaged[3000] ^= 1
    try put(damaged, entryPath)
    let read = try await unchecked.bytes(key)
    #expect(read?.count == length && read != body)
    #expect(try await unchecked.verify().damaged.keys.sorted() == [entryPath])
    for offset in [20, 140, whole.count - 500] {
      damaged = whole
      damaged[offset] ^= 1
      try folder.place(damaged, entryPath)
      #expect(try await unchecked.bytes(key) == nil, "byte \(offset)")
    }
    #expect(try await cache.bytes(key) == nil)
  }

  @Test("damage found while a body streams ends the stream with an error after correct bytes, and removes the file")
  func damagedStream() async throws {
    let body = bytes(1_000_000)
    try await cache.store(body, for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    var damaged = try file(entryPath)
    damaged[700_000] ^= 1
    try put(damaged, entryPath)
    let entry = try #require(try await cache.entry(for: key))
    var read = Data()
    let error = await failure { for try await chunk in entry.body { read += chunk } }
    #expect(error?.code == .damagedEntry)
    #expect(error?.path == entryPath)
    #expect(read == body.prefix(read.count))
    #expect(read.count == 524_288)
    #expect(!fileExists(entryPath))
    #expect(cache.counters.damaged == 1)
    #expect(try await cache.bytes(key) == nil)
  }

  @Test("a range outside the damage is still served")
  func rangeBesideDamage() async throws {
    let body = bytes(1_000_000)
    try await cache.store(body, for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    var damaged = try file(entryPath)
    damaged[700_000] ^= 1
    try put(damaged, entryPath)
    #expect(try await cache.entry(for: key, range: 0..<500_000)?.body.collect() == body.prefix(500_000))
    #expect(try await cache.entry(for: key, range: 900_000..<1_000_000)?.body.collect() == body.suffix(100_000))
  }

  @Test("a good entry that replaced a damaged one is not removed with it")
  func replacementStays() async throws {
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    var damaged = try file(entryPath)
    damaged[700_000] ^= 1
    try put(damaged, entryPath)
    let entry = try #require(try await cache.entry(for: key))
    let good = bytes(500_000, seed: 8)
    try await cache.store(good, for: key, metadata: metadata())
    #expect(await failure { _ = try await entry.body.collect() }?.code == .damagedEntry)
    #expect(try await cache.bytes(key) == good)
  }

  @Test("an empty file, a text file and another program's file are misses and are removed", arguments: ["", "hello\n", "<html>"])
  func foreignFiles(text: String) async throws {
    try await cache.store(bytes(9), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    try put(Data(text.utf8), entryPath)
    #expect(try await cache.bytes(key) == nil)
    #expect(!fileExists(entryPath))
    #expect(cache.counters.damaged == 1)
  }

  /// Writes a version with the matching checksum into an entry's header.
  private func setVersion(_ version: UInt8, _ entryPath: String) throws {
    var data = try file(entryPath)
    data[8] = version
    let checksum = crc(data.prefix(124))
    for index in 0..<4 { data[124 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
    try put(data, entryPath)
  }

  @Test("an entry of a later format is a miss and stays, and one of an earlier format is removed")
  func formats() async throws {
    try await cache.store(bytes(9), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    try setVersion(2, entryPath)
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.variants(of: key.resource).isEmpty)
    #expect(fileExists(entryPath))
    #expect(try await cache.verify(removingDamaged: true).newer == 1)
    #expect(cache.counters.damaged == 0)
    try setVersion(0, entryPath)
    #expect(try await cache.bytes(key) == nil)
    #expect(!fileExists(entryPath))
  }

  @Test("a header with impossible offsets and a matching checksum is damaged and does not trap")
  func impossibleOffsets() async throws {
    var generator = SeededGenerator(state: 77)
    try await cache.store(bytes(5000), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    let whole = try file(entryPath)
    for number in 0..<400 {
      var data = whole
      let field = 40 + 8 * (number % 6)
      let values: [UInt64] = [
        0, 1, .max, .max - 7, UInt64(Int64.max), UInt64(data.count), UInt64(data.count) - 1, generator.next(), 1 << 32, 127,
      ]
      let value = values[(number / 6) % values.count]
      for index in 0..<8 { data[field + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index)) }
      let checksum = crc(data.prefix(124))
      for index in 0..<4 { data[124 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
      try put(data, entryPath)
      #expect(try await cache.bytes(key) == nil, "\(value) at \(field)")
    }
  }

  @Test("a sparse file of a terabyte with a key of that size is damaged and uses no memory")
  func endlessKey() async throws {
    // Without a limit, because the file counts as the largest entry: listed in time, it would be evicted before the lookup.
    let folder = try TemporaryFolder()
    let caches = try (0..<2).map { _ in try folder.sharedCache(configuration: .init(sizeLimit: nil)) }
    let cache = caches[0]
    try await cache.store(bytes(9), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    let size: UInt64 = 1 << 40
    var header = try file(entryPath).prefix(128)
    // The length of the key, and the body, table and metadata behind it.
    for (field, value) in [(48, size - 4096), (56, size - 2048), (64, 0), (72, size - 1024), (80, size - 512)] {
      for index in 0..<8 { header[field + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index)) }
    }
    let checksum = crc(header.prefix(124))
    for index in 0..<4 { header[124 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
    try put(header, entryPath)
    try #require(truncate(entryPath, off_t(size)) == 0)
    #expect(try await cache.bytes(key) == nil)
    #expect(!fileExists(entryPath))
    #expect(cache.counters.damaged == 1)
    for cache in caches { await cache.close() }
  }

  @Test("verify counts good and damaged entries, and removes damaged ones only on request")
  func verification() async throws {
    for number in 0..<6 {
      try await cache.store(bytes(number * 60_000), for: CacheKey(resource: "\(number)"), metadata: metadata())
    }
    let files = folder.entryFiles
    let damagedFile = try #require(files.first { ((try? file($0).count) ?? 0) > 200_000 })
    var damaged = try file(damagedFile)
    damaged[150_000] ^= 4
    try put(damaged, damagedFile)
    let report = try await cache.verify()
    #expect(report.good == 5)
    #expect(Array(report.damaged.keys) == [damagedFile])
    #expect(report.removed == 0)
    #expect(fileExists(damagedFile))
    #expect(!report.isClean)
    let second = try await cache.verify(removingDamaged: true)
    #expect(second.removed == 1)
    #expect(!fileExists(damagedFile))
    #expect(try await cache.verify().isClean)
    #expect(try await cache.entryCount == 5)
  }
}
