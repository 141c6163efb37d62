import CacheCore
import DiskStore
import Foundation

/// One kind of call for entries of one size: the bare system calls, the store's synchronous work, and the asynchronous call.
struct DiskJob: Job {
  static let name = "disk"

  enum Call: String, Codable, Hashable, Sendable, CaseIterable {
    case read, miss, write
    case uncheckedRead = "read, unchecked"
    /// Writes with durability `file`, compared with `fsync`.
    case flushedWrite = "write, flushed"
    case remove
    /// Appends new metadata, as after a 304.
    case refresh
  }

  let call: Call
  /// The size of a body in bytes.
  let size: Int
  /// The number of entries. Each batch uses every entry once.
  let entries: Int
  let batches: Int

  func run() async throws -> Measurement {
    let folder = try DiskEntries.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let fixture = try DiskFixture(self, folder)
    var measurement = Measurement()
    // The first batch is the warm-up.
    for batch in 0...batches {
      try fixture.prepare()
      let raw = try Self.time { try fixture.raw() }
      try fixture.prepare()
      let own = try Self.time { try fixture.own() }
      try fixture.prepare()
      let clock = SystemClock()
      let start = clock.uptime
      try await fixture.called()
      let called = clock.uptime - start
      guard batch > 0 else { continue }
      for (time, quantity) in [(raw, Measurement.Quantity.raw), (own, .own), (called, .called)] {
        measurement.add(time / .seconds(1) / Double(entries), to: quantity)
      }
    }
    measurement.check("damaged files", fixture.cache.counters.damaged, is: 0)
    await fixture.cache.close()
    return measurement
  }

  private static func time(_ work: () throws -> Void) rethrows -> Duration {
    let clock = SystemClock()
    let start = clock.uptime
    try work()
    return clock.uptime - start
  }
}

/// A cache, and as many bare files of the same size.
private struct DiskFixture {
  let job: DiskJob
  let cache: DiskCache
  private let work: DiskWork
  private let body: Data
  private let keys: [CacheKey]
  private let metadata: [StoredMetadata]
  private let paths: [String]
  private let draft: String

  init(_ job: DiskJob, _ folder: String) throws {
    self.job = job
    let durability: DiskCache.Durability = job.call == .flushedWrite ? .file : .none
    cache = try DiskCache(
      path: folder + "/cache",
      configuration: .init(sizeLimit: nil, durability: durability, checksBodies: job.call != .uncheckedRead))
    work = DiskWork(cache)
    body = Pattern.bytes(job.size)
    keys = (0..<job.entries).map(DiskEntries.key)
    metadata = keys.map { _ in DiskEntries.metadata() }
    let files = folder + "/files"
    for shard in 0..<256 {
      try FileManager.default.createDirectory(atPath: "\(files)/\(shard)", withIntermediateDirectories: true)
    }
    paths = (0..<job.entries).map { "\(files)/\($0 % 256)/0123456789abcdef0123456789ab\(100_000 + $0)" }
    draft = files + "/draft"
    try prepare(always: true)
    _ = try work.list()
  }

  /// Creates or removes the files and entries as the next batch needs them.
  func prepare() throws { try prepare(always: false) }

  private func prepare(always: Bool) throws {
    switch job.call {
    // Some file systems flush a file that replaces another, so only new files are written.
    case .write, .flushedWrite: return try clear()
    case .remove: break
    case .read, .uncheckedRead, .miss, .refresh: guard always else { return }
    }
    for index in keys.indices where job.call != .miss {
      try work.store(body, for: keys[index], metadata: metadata[index])
      try RawFile.write(body, paths[index], draft: draft, flushes: false)
    }
  }

  private func clear() throws {
    for index in keys.indices {
      try work.remove(keys[index])
      if RawFile.exists(paths[index]) { try RawFile.remove(paths[index]) }
    }
  }

  func raw() throws {
    for path in paths {
      switch job.call {
      case .read, .uncheckedRead: try expect(RawFile.read(path) == job.size)
      case .miss: try expect(!RawFile.exists(path))
      case .write: try RawFile.write(body, path, draft: draft, flushes: false)
      case .flushedWrite: try RawFile.write(body, path, draft: draft, flushes: true)
      case .remove: try RawFile.remove(path)
      case .refresh: try RawFile.append(body.prefix(512), path, at: job.size)
      }
    }
  }

  func own() throws {
    for (key, metadata) in zip(keys, metadata) {
      switch job.call {
      case .read, .uncheckedRead: try expect(work.read(key) == job.size)
      case .miss: try expect(work.read(key) == nil)
      case .write, .flushedWrite: try work.store(body, for: key, metadata: metadata)
      case .remove: try work.remove(key)
      case .refresh: try expect(work.updateMetadata(key, metadata))
      }
    }
  }

  func called() async throws {
    for (key, metadata) in zip(keys, metadata) {
      switch job.call {
      case .read, .uncheckedRead:
        guard let entry = try await cache.entry(for: key) else { throw BenchmarkFailure("an entry is missing") }
        var count = 0
        for try await chunk in entry.body { count += chunk.count }
        try expect(count == job.size)
      case .miss: try expect(try await cache.entry(for: key) == nil)
      case .write, .flushedWrite: try await cache.store(body, for: key, metadata: metadata)
      case .remove: try await cache.remove(key, ifRevision: nil)
      case .refresh: try expect(try await cache.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision))
      }
    }
  }

  private func expect(_ isRight: Bool) throws {
    guard isRight else { throw BenchmarkFailure("\(job.call.rawValue): an unexpected result") }
  }
}
