#if SQLite
import CacheCore
import CacheTesting
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("SQLite store: faults of the file system")
struct FaultTests {
  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "https://example.com/\(number)") }

  @Test("a full disk causes an error, leaves the stored entries, and stores work when space is available again")
  func fullDisk() async throws {
    let folder = try TemporaryFolder()
    var configuration = SQLiteCache.Configuration()
    configuration.pageLimit = 60
    let cache = try SQLiteCache(path: folder.path, configuration: configuration)
    var stored = 0
    var error: CacheError?
    while error == nil, stored < 1_000 {
      error = await failure { try await cache.store(bytes(20_000, seed: UInt64(stored)), for: key(stored), metadata: metadata()) }
      if error == nil { stored += 1 }
    }
    #expect(error?.code == .diskFull)
    #expect(error?.path == folder.database)
    #expect((5..<60).contains(stored))
    #expect(cache.counters.failedWrites == 1)
    #expect(cache.counters.resets == 0)
    // A body that goes into the database in chunks fails in the middle.
    #expect(await failure { try await cache.store(bytes(900_000), for: key(-1), metadata: metadata()) }?.code == .diskFull)
    for number in 0..<stored { #expect(try await cache.bytes(key(number)) == bytes(20_000, seed: UInt64(number))) }
    #expect(try await cache.entryCount == stored)
    try await cache.remove(key(0), ifRevision: nil)
    await cache.close()
    let roomy = try SQLiteCache(path: folder.path)
    try await roomy.store(bytes(900_000), for: key(-1), metadata: metadata())
    #expect(try await roomy.bytes(key(-1)) == bytes(900_000))
    #expect(try await roomy.entryCount == stored)
    await roomy.close()
  }

  @Test("a read-only database causes an error and is not changed")
  func readOnly() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(1_000), for: key(1), metadata: metadata())
    await cache.close()
    chmod(folder.database, 0o444)
    chmod(folder.path, 0o555)
    defer { chmod(folder.path, 0o755) }
    let before = try Data(contentsOf: URL(filePath: folder.database))
    // Root ignores permissions.
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      if getuid() == 0 { #expect(setuid(65_534) == 0) }
      let error = #expect(throws: CacheError.self) { try SQLiteCache(path: path) }
      #expect(error?.code == .readOnly || error?.code == .fileSystem)
      #expect(error?.path?.hasPrefix(path) == true)
    }
    #expect(try Data(contentsOf: URL(filePath: folder.database)) == before)
  }

  @Test(
    "a process killed while writing has lost no acknowledged entry and leaves no partial one",
    arguments: 0..<3)
  func killed(round: Int) async throws {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String, round = round as Int] in
      try await Self.writeUntilKilled(in: path, after: 20 + 3 * round)
    }
    let lines = try String(contentsOfFile: folder.path + "/acknowledged", encoding: .utf8).split(separator: "\n")
    #expect(lines.count > 20)
    let cache = try SQLiteCache(path: folder.path)
    for line in lines {
      let parts = line.split(separator: " ").compactMap { Int($0) }
      #expect(try await cache.bytes(key(parts[0])) == bytes(parts[1], seed: UInt64(parts[0])))
    }
    let listed = try await cache.entries { _, _ in true }
    for entry in listed {
      let body = try #require(try await cache.bytes(entry.key))
      let name = try #require(UInt64(entry.key.resource.split(separator: "/").last ?? ""))
      #expect(body == bytes(body.count, seed: name))
      #expect(Int64(body.count) == entry.metadata.bodyLength)
    }
    // At most four stores were in progress.
    #expect((lines.count...(lines.count + 4)).contains(listed.count))
    #expect(cache.counters.damaged == 0 && cache.counters.resets == 0)
    await cache.close()
  }

  /// Runs four writers that record acknowledged entries. The process kills itself after this many entries of the first writer.
  private static func writeUntilKilled(in path: String, after limit: Int) async throws {
    let cache = try SQLiteCache(path: path)
    let list = open(path + "/acknowledged", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for number in 0..<100_000 {
            let name = writer * 100_000 + number
            let size = number % 5 == 4 ? 700_000 : 3_000 + number
            let key = CacheKey(resource: "https://example.com/\(name)")
            try await cache.store(bytes(size, seed: UInt64(name)), for: key, metadata: metadata())
            let line = Array("\(name) \(size)\n".utf8)
            _ = write(list, line, line.count)
            if writer == 0, number == limit { kill(getpid(), SIGKILL) }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
#endif
