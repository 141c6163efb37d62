import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// A manager with a scripted network and a manual clock.
struct ManagerFixture {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let memory: MemoryCache
  let disk: VolatileStore
  let observer = RecordingObserver()
  let manager: ResourceManager
  let url: URL

  init(_ change: (inout ResourceManager.Configuration) throws -> Void = { _ in }) throws {
    network = ScriptedDownloader(clock: clock)
    disk = VolatileStore(clock: clock)
    memory = MemoryCache(limits: .init(cost: 10 << 20), clock: clock)
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.memory = memory
    configuration.store = disk
    configuration.validator = ETagValidator()
    configuration.observer = observer
    configuration.clock = clock
    configuration.callbackQueue = .immediate
    try change(&configuration)
    manager = ResourceManager(configuration)
    url = try #require(URL(string: "https://example.com/image.png"))
  }

  func url(_ path: String) throws -> URL { try #require(URL(string: "https://example.com\(path)")) }

  /// Simulates a restart: memory is empty, and the disk is unchanged.
  func restart() { memory.removeAll() }

  /// Returns the error of a load that must fail.
  func failure(_ url: URL, _ options: RequestOptions = RequestOptions()) async throws -> CacheError {
    do {
      let resource = try await manager.load(url, options: options)
      throw ContractViolation("the load ended with \(resource.text) from \(resource.source)")
    } catch let error as CacheError {
      return error
    }
  }
}

extension Resource where Value == Data {
  var text: String { String(decoding: data, as: UTF8.self) }

  /// Everything that a load reports, except for its revision, which differs between fixtures.
  var toldExceptRevision: String {
    "\(text) \(url) \(redirects) \(response) \(source) \(validation) \(age) \(isStale) \(duration) \(metrics) \(key) \(valueOrigin)"
  }
}

extension HTTPFields {
  /// A field with this name, or no field if the name is invalid.
  static func field(_ name: String, _ value: String) -> HTTPFields { HTTPField.Name(name).map { [$0: value] } ?? [:] }
}

extension RequestOptions {
  static func policy(_ policy: LoadPolicy) -> RequestOptions { RequestOptions { $0.policy = policy } }
}

/// The number of conditional requests, which a 304 could satisfy.
extension ScriptedDownloader {
  var conditional: Int { requests.filter { $0.headerFields[.ifNoneMatch] != nil }.count }
}

extension ResourceManager.Configuration {
  /// Lets loads wait for the stores without a limit, for tests that count the sleeping tasks. A limit has a task that sleeps, and
  /// whether it starts depends on the order in which two commits end.
  mutating func waitForStores() { (storeReadTimeout, storeWriteTimeout) = (nil, nil) }
}
