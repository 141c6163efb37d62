import CacheCore
import DiskStore
import Foundation

/// Conditions without space on the disk.
extension TrialFolder {
  /// Fills a small file system. Entries that do not fit are not stored, and nothing else may happen.
  func fill() async throws -> [String] {
    let ballast = path + "/ballast"
    try FileManager.default.createDirectory(atPath: ballast, withIntermediateDirectories: true)
    let fixture = ManagerFixture(
      try DiskCache(path: path + "/store", configuration: .init(sizeLimit: nil)), seed: seed, numbers: 0..<600)
    // First, the store alone fills it and makes space by itself.
    for _ in 0..<3 { try await fixture.load() }
    let alone = fixture.disk.counters
    try require(alone.fullDisk > 0 && alone.failedWrites > 0, "the disk was never full: \(alone)")
    try require(alone.evictions[.fullDisk, default: 0] > 0 && alone.writes > 200, "nothing was evicted: \(alone)")
    // Then other files fill it. Removing all entries needs no space, even in a cache that has not written yet.
    try await occupy(ballast)
    let newcomer = try DiskCache(path: path + "/store", configuration: .init(sizeLimit: nil))
    try await newcomer.removeAll()
    await newcomer.close()
    let left = Folder.files(path + "/store/etagere-1/tmp").filter { !$0.path.hasSuffix(".lock") }.map(\.path)
    try require(left.isEmpty, "removed, but still present: \(left)")
    // Then they fill it again, and there is nothing to evict.
    try await occupy(ballast)
    let asked = try await fixture.load(0..<100).asked
    try require(asked == 100, "\(100 - asked) loads were served by a store without space")
    let error = await fixture.storingFails()
    try require(error?.code == .diskFull && error?.path != nil, "a store without space throws \(String(describing: error))")
    try FileManager.default.removeItem(atPath: ballast)
    let some = ManagerFixture(fixture.disk, seed: seed, numbers: 0..<120)
    try await some.recover()
    await fixture.close()
    try await reopen(some: 0..<120)
    return [
      "\(alone.failedWrites) stores failed, \(alone.evictions[.fullDisk, default: 0]) entries evicted, \(grouped(1_800 + 100)) loads, 0 failed; recovered"
    ]
  }

  /// Uses up all bytes or all inodes.
  private func occupy(_ ballast: String) async throws {
    let piece = [UInt8](repeating: 7, count: 1 << 16)
    for _ in 0..<4_000 {
      let file = open("\(ballast)/\(UUID().uuidString)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0 else { return }
      defer { close(file) }
      var count = piece.count
      // Smaller writes fill the disk to the last byte.
      while count > 0 { if write(file, piece, count) <= 0 { count /= 2 } }
    }
  }

  private func reopen(some numbers: Range<Int>) async throws {
    let later = ManagerFixture(
      try DiskCache(path: path + "/store", configuration: .init(sizeLimit: nil)), seed: seed, numbers: numbers)
    let asked = try await later.load().asked
    try require(asked == 0, "\(asked) of \(numbers.count) were missing after reopening")
    await later.close()
  }

  /// Injects write errors where the real condition cannot be created.
  func refuse(_ number: Int32, _ why: String) async throws -> [String] {
    let faulty = Faulty()
    let fixture = ManagerFixture(
      try DiskCache(path: path + "/store-\(number)", configuration: .init(sizeLimit: nil), calls: faulty.calls), seed: seed)
    try await fixture.load(0..<200)
    faulty.set { $0.failure = number }
    try await fixture.load()
    let error = await fixture.storingFails()
    try require(error?.errno == number && error?.path != nil, "a store that cannot write throws \(String(describing: error))")
    faulty.set { $0.failure = nil }
    try await fixture.recover()
    let failed = fixture.disk.counters.failedWrites
    await fixture.close()
    return [
      "\(why): injected, \(failed) stores failed with \(String(cString: strerror(number))), \(grouped(600)) loads, 0 failed; recovered"
    ]
  }

  /// Limits the size of files with the system's own limit.
  func limitFileSize() async throws -> [String] {
    signal(SIGXFSZ, SIG_IGN)
    let fixture = ManagerFixture(try DiskCache(path: path + "/limited", configuration: .init(sizeLimit: nil)), seed: seed)
    try Self.limit(Resource.fileSize, to: 50_000)
    try await fixture.load()
    let error = await fixture.storingFails(120_000)
    try require(error?.errno == EFBIG && error?.path != nil, "a store with limited files throws \(String(describing: error))")
    let failed = fixture.disk.counters.failedWrites
    try require(failed > 1 && fixture.disk.counters.writes > 100, "\(fixture.disk.counters)")
    try Self.limit(Resource.fileSize, to: nil)
    try await fixture.recover()
    await fixture.close()
    return ["files of at most 50,000 bytes (RLIMIT_FSIZE): \(failed) stores failed, 400 loads, 0 failed; recovered"]
  }

  enum Resource { case fileSize, descriptors }

  /// Lowers a limit of this process. With `nil`, raises it to the maximum.
  ///
  /// macOS has no maximum number of descriptors (`RLIM_INFINITY`), and refuses one above `OPEN_MAX` as the limit.
  static func limit(_ resource: Resource, to value: UInt64?) throws {
    #if canImport(Glibc)
    let which = resource == .fileSize ? __rlimit_resource_t(1) : __rlimit_resource_t(7)
    #else
    let which = resource == .fileSize ? RLIMIT_FSIZE : RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    try require(getrlimit(which, &limit) == 0, "getrlimit failed")
    var highest = limit.rlim_max
    #if canImport(Darwin)
    if resource == .descriptors { highest = min(highest, rlim_t(OPEN_MAX)) }
    #endif
    limit.rlim_cur = value.map { min(rlim_t($0), highest) } ?? highest
    try require(setrlimit(which, &limit) == 0, "setrlimit failed")
  }
}
