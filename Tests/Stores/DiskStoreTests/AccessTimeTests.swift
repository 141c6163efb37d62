#if os(Linux)
import CacheCore
import CacheTesting
import DiskStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Disk store: access times")
struct AccessTimeTests {
  @Test("reads of an entry do not change its access time, because that would write to the disk")
  func unchanged() async throws {
    let folder = try TemporaryFolder()
    let cache = try folder.sharedCache(clock: ManualClock(now: Timestamp(seconds: 1_767_225_600)))
    let key = CacheKey(resource: "https://example.com/a")
    try await cache.store(bytes(1_000), for: key, metadata: metadata())
    let entry = try #require(folder.entryFiles.first)
    let other = folder.path + "/other"
    try put(bytes(1_000), other)
    for path in [entry, other] { try setOldAccessTime(path) }
    // On a file system without access times, the test cannot see a change.
    _ = try file(other)
    guard try accessTime(other) != 1_000 else { return }
    #expect(try await cache.entry(for: key)?.body.collect() == bytes(1_000))
    #expect(try await cache.variants(of: key.resource).count == 1)
    #expect(try await cache.entries().count == 1)
    _ = cache.variantsWithoutWaiting(of: key.resource)
    #expect(try accessTime(entry) == 1_000)
  }

  /// Sets an access time before that of the change, so that the next read would update it on most file systems.
  private func setOldAccessTime(_ path: String) throws {
    let times = [timespec(tv_sec: 1_000, tv_nsec: 0), try status(path).st_mtim]
    try #require(utimensat(AT_FDCWD, path, times, 0) == 0)
  }

  private func accessTime(_ path: String) throws -> Int { try status(path).st_atim.tv_sec }

  private func status(_ path: String) throws -> stat {
    var status = stat()
    try #require(stat(path, &status) == 0)
    return status
  }
}
#endif
