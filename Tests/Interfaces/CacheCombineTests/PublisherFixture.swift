#if canImport(Combine) || OpenCombine
import CacheCombine
import CacheCore
import CacheTesting
import ETagValidation
import Foundation
import MemoryStore
import Testing

/// A manager over a scripted network and a manual clock.
struct PublisherFixture {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let observer = RecordingObserver()
  let manager: ResourceManager
  let url: URL

  init() throws {
    network = ScriptedDownloader(clock: clock)
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.memory = MemoryCache(limits: .init(cost: 10 << 20), clock: clock)
    configuration.validator = ETagValidator()
    configuration.observer = observer
    configuration.clock = clock
    configuration.callbackQueue = .immediate
    manager = ResourceManager(configuration)
    url = try #require(URL(string: "https://example.com/greeting"))
  }

  /// Caches a response and advances the clock by a minute, so that it becomes stale.
  func cacheStale(_ text: String) async throws {
    network.respond(to: url, with: .ok(text, etag: "\"old\"", cacheControl: "max-age=60, stale-while-revalidate=600"))
    _ = try await manager.load(url)
    clock.advance(by: .seconds(61))
  }
}

extension Resource where Value == Data {
  var text: String { String(decoding: data, as: UTF8.self) }
}

extension RequestOptions {
  static func policy(_ policy: LoadPolicy) -> RequestOptions { RequestOptions { $0.policy = policy } }
}

extension ResourceEvent where Value == Data {
  /// A short text for comparisons: the received bytes, or the kind of the event and its text.
  var summary: String {
    switch self {
    case .progress(let progress): "\(progress.received)"
    case .stale(let resource): "stale \(resource.text)"
    case .final(let resource): "final \(resource.text)"
    }
  }
}
#endif
