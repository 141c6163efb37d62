import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation

/// A manager with a disk store and a network that has every resource. No load may fail, whatever happens to the store.
final class ManagerFixture: Sendable {
  let network = ScriptedDownloader()
  let disk: DiskCache
  let manager: ResourceManager
  private let seed: UInt64
  private let numbers: Range<Int>

  /// - Parameters:
  ///   - numbers: The numbers of the resources that the network has.
  ///   - writeTimeout: The time a load waits for the store. It is long, so that every loaded resource is stored even on a slow
  ///     machine.
  init(
    _ disk: DiskCache, seed: UInt64, clock: any CacheClock = SystemClock(), numbers: Range<Int> = 0..<400,
    writeTimeout: Duration = .seconds(600)
  ) {
    (self.disk, self.seed, self.numbers) = (disk, seed, numbers)
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.store = disk
    configuration.validator = ETagValidator()
    configuration.clock = clock
    configuration.storeWriteTimeout = writeTimeout
    manager = ResourceManager(configuration)
    for number in numbers {
      let body = Self.value(number, seed).bytes
      network.serve(Self.url(number)) { _ in .ok(body, etag: "\"\(number)\"", cacheControl: "max-age=86400") }
    }
  }

  private static func url(_ number: Int) -> URL { URL(string: "https://faults.example/\(number)") ?? URL(filePath: "/") }

  private static func value(_ number: Int, _ seed: UInt64) -> Value {
    var generator = SplitMix(state: seed &+ UInt64(number))
    return Value(number: UInt64(number), length: Value.length(&generator))
  }

  /// Loads resources, eight at a time. Each must return its own bytes.
  ///
  /// - Returns: The number of requests to the network, and the duration of the slowest load.
  @discardableResult
  func load(_ numbers: Range<Int>? = nil) async throws -> (asked: Int, slowest: Duration) {
    let before = network.requests.count
    let slowest = try await withThrowingTaskGroup(of: Duration.self) { group in
      var slowest = Duration.zero
      for (index, number) in (numbers ?? self.numbers).enumerated() {
        if index >= 8 { slowest = max(slowest, try await group.next() ?? .zero) }
        group.addTask { try await self.load(number) }
      }
      for try await time in group { slowest = max(slowest, time) }
      return slowest
    }
    return (network.requests.count - before, slowest)
  }

  private func load(_ number: Int) async throws -> Duration {
    let clock = SystemClock()
    let start = clock.uptime
    do {
      let resource = try await manager.load(Self.url(number))
      try require(resource.value == Self.value(number, seed).bytes, "/\(number): wrong bytes, from \(resource.source)")
    } catch let error as CacheError {
      throw FailedCheck("/\(number) could not be loaded, but the network has it: \(error)")
    }
    return clock.uptime - start
  }

  /// Stores only the first half of the resources, so that later loads must store the others.
  func halve() async throws {
    try await disk.removeAll()
    try await load(numbers.prefix(numbers.count / 2))
  }

  /// Checks that the store works again: resources that are loaded now are served from it afterwards.
  func recover() async throws {
    var asked = 0
    for _ in 0..<50 {
      try await load()
      // Pending stores and an eviction after a full disk may finish only now.
      _ = try await disk.entryCount
      asked = try await load().asked
      if asked == 0 { break }
    }
    try require(asked == 0, "after the recovery, \(asked) loads still went to the network; \(disk.counters)")
    let report = try await disk.verify()
    try require(report.isClean && report.good >= numbers.count, "after the recovery: \(report)")
  }

  /// Returns the error of a store, if any.
  func storingFails(_ length: Int = 300) async -> CacheError? {
    do throws(CacheError) {
      let value = Value(number: 9_999_999, length: length)
      try await disk.store(value.bytes, for: CacheKey(resource: "probe"), metadata: value.metadata)
      return nil
    } catch {
      return error
    }
  }

  func close() async {
    await manager.close()
    await disk.close()
  }
}
