import CacheCore
import CacheManager
import CacheTesting
import Foundation
import Testing

/// Code of the app that calls the prefetcher while that calls it.
@Suite("Calls of a prefetcher from the code that it calls")
struct PrefetchReentranceTests {
  private let urls: [URL]
  private let fixture: ManagerFixture

  init() throws {
    let fixture = try ManagerFixture()
    self.fixture = fixture
    urls = try (0..<8).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok("bytes", cacheControl: "max-age=60") } }
  }

  /// An object of an app that calls a closure when it is released.
  private final class Owner: Sendable {
    private let released: @Sendable () -> Void

    init(_ released: @escaping @Sendable () -> Void) { self.released = released }

    deinit { released() }
  }

  /// Returns a request that holds the only reference to an object.
  private func request(_ url: URL, _ released: @escaping @Sendable () -> Void) -> ResourceRequest {
    let owner = Owner(released)
    let interceptor = RequestInterceptor(willLookUp: { _ throws(CacheError) in withExtendedLifetime(owner) {} })
    return ResourceRequest(url, options: RequestOptions { $0.interceptor = .use(interceptor) })
  }

  @Test("an object that is released with a cancelled request may use the prefetcher")
  func cancelled() {
    let prefetcher = fixture.manager.prefetcher()
    let failures = Lock<[Int]>([])
    prefetcher.pause()
    for url in urls {
      prefetcher.append([
        request(url) {
          prefetcher.cancel()
          failures.withLock { $0.append(prefetcher.progress.failed) }
        }
      ])
    }
    prefetcher.cancel()
    #expect(failures.withLock { $0 } == urls.map { _ in urls.count })
  }

  @Test("an object that is released with a loaded request may use the prefetcher", arguments: [PrefetchDestination.cache, .disk])
  func loaded(destination: PrefetchDestination) async throws {
    let prefetcher = fixture.manager.prefetcher(into: destination, concurrency: 1)
    let released = Counter()
    for url in urls {
      prefetcher.append([
        request(url) {
          prefetcher.resume()
          released.increment()
        }
      ])
    }
    #expect(await prefetcher.report().loaded == urls.count)
    try await Polling.until { released.value == urls.count }
  }

  /// An observer that calls a closure at the start of each load.
  private final class StartObserver: LoadObserver {
    let id = ComponentID.unique(StartObserver.self)
    let started = Lock<(@Sendable () -> Void)?>(nil)

    func observe(_ event: CacheEvent, of load: LoadID) {
      if case .started = event { started.withLock { $0 }?() }
    }
  }

  /// Returns a prefetcher of a manager with an observer that calls a closure at the start of each load.
  private func prefetcher(concurrency: Int, _ started: @escaping @Sendable (Prefetcher) -> Void) throws -> Prefetcher {
    let observer = StartObserver()
    let fixture = try ManagerFixture { $0.observer = observer }
    for url in urls { fixture.network.serve(url) { _ in .ok("bytes", cacheControl: "max-age=60") } }
    let prefetcher = fixture.manager.prefetcher(concurrency: concurrency)
    observer.started.withLock { $0 = { [weak prefetcher] in if let prefetcher { started(prefetcher) } } }
    return prefetcher
  }

  @Test("an observer of the first load may cancel all of them", arguments: [1, 4])
  func cancelAtStart(concurrency: Int) async throws {
    let prefetcher = try prefetcher(concurrency: concurrency) { $0.cancel() }
    prefetcher.append(urls)
    let report = await prefetcher.report()
    #expect(report.loaded == 0 && report.failed.count == urls.count && report.failed.allSatisfy { $0.error.isCancellation })
  }

  @Test("an observer of the first load may pause the prefetcher, and add requests to it", arguments: [1, 4])
  func appendAtStart(concurrency: Int) async throws {
    let (first, last, starts) = (urls[0], urls[7], Counter())
    let prefetcher = try prefetcher(concurrency: concurrency) { prefetcher in
      starts.increment()
      guard starts.value == 1 else { return }
      prefetcher.pause()
      prefetcher.append([first, last])
      #expect(prefetcher.progress.running == 1 && prefetcher.progress.total == 5)
    }
    prefetcher.append(Array(urls[..<4]))
    try await Polling.until { prefetcher.progress.loaded == 1 }
    #expect(prefetcher.isPaused && prefetcher.progress.running == 0)
    prefetcher.resume()
    let report = await prefetcher.report()
    #expect(report.loaded == 5 && report.duplicates == 1 && report.failed.isEmpty)
  }
}
