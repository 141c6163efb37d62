import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Synchronization
import Testing

@Suite("The prefetcher")
struct PrefetcherTests {
  private let urls: [URL]
  private let fixture: ManagerFixture
  private let gate = Gate()

  init() throws {
    let fixture = try ManagerFixture()
    self.fixture = fixture
    urls = try (0..<8).map { try fixture.url("/\($0)") }
    for (index, url) in urls.enumerated() {
      fixture.network.serve(url) { [gate] _ in .ok("\(index)", cacheControl: "max-age=60").held(by: gate) }
    }
  }

  @Test(
    "the prefetcher stays within its concurrency, in the order of the requests, and reports its results",
    arguments: [
      PrefetchDestination.cache, .memory, .disk,
    ])
  func bound(_ destination: PrefetchDestination) async throws {
    let prefetcher = fixture.manager.prefetcher(into: destination, concurrency: 3)

    prefetcher.append(urls)
    await gate.arrived(3)
    #expect(prefetcher.progress.running == 3 && prefetcher.progress.total == 8)
    #expect(fixture.network.requests.count == 3)
    gate.open()
    let report = await prefetcher.report()

    #expect(report.loaded == 8 && report.failed.isEmpty)
    #expect(Set(fixture.network.requests.prefix(3).map(\.path)) == ["/0", "/1", "/2"])
    #expect(prefetcher.progress.isFinished && prefetcher.progress.fraction == 1)
    #expect(fixture.disk.keys.count == (destination == .memory ? 0 : 8))
    for url in urls {
      #expect(try await fixture.manager.contains(url, in: .memory) == (destination != .disk))
    }
  }

  @Test("the work of a single prefetched load ends while its prefetcher waits for more")
  func workEnds() async throws {
    gate.open()
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([urls[0]])
    _ = await prefetcher.report()
    try await Polling.until { [observer = fixture.observer] in
      observer.events.contains { if case .workEnded = $0 { true } else { false } }
    }
    #expect(prefetcher.progress.isFinished)
  }

  @Test("the prefetcher skips cached resources", arguments: [PrefetchDestination.cache, .disk])
  func skips(_ destination: PrefetchDestination) async throws {
    gate.open()
    _ = try await fixture.manager.load(urls[0])
    fixture.restart()
    let prefetcher = fixture.manager.prefetcher(into: destination)

    prefetcher.append(urls)
    let report = await prefetcher.report()

    #expect(report.skipped == 1 && report.loaded == 7)
    #expect(fixture.network.requests.count == 8)
  }

  @Test("a failure does not stop the other items, and failures are reported in the order of the requests")
  func failures() async throws {
    gate.open()
    let (missing, gone) = (try fixture.url("/missing"), try fixture.url("/gone"))
    fixture.network.respond(to: missing, with: .response(.notFound))
    fixture.network.respond(to: gone, with: .failure(.hostNotFound))
    let relative = try #require(URL(string: "no-scheme"))

    let report = await fixture.manager.prefetch([missing, relative, urls[0], gone, urls[1]], concurrency: 1)

    #expect(report.loaded == 2)
    #expect(report.failed.map(\.url) == [missing, relative, gone])
    #expect(report.failed.map(\.error.code) == [.unacceptableStatus, .invalidURL, .hostNotFound])
  }

  @Test("simultaneous duplicates are loaded once, and a later request is loaded again")
  func duplicates() async throws {
    gate.open()
    let prefetcher = fixture.manager.prefetcher(concurrency: 1)
    prefetcher.pause()
    prefetcher.append([urls[0], urls[1], urls[0], urls[0]])
    #expect(prefetcher.progress.total == 2)
    prefetcher.resume()
    _ = await prefetcher.report()

    prefetcher.append([urls[0]])
    let report = await prefetcher.report()

    #expect(report.loaded == 2 && report.skipped == 1 && report.duplicates == 2)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("pausing starts no more loads and lets running loads end, until the prefetcher resumes")
  func pause() async throws {
    let prefetcher = fixture.manager.prefetcher(concurrency: 2)
    prefetcher.append(urls)
    await gate.arrived(2)

    prefetcher.pause()
    gate.open()
    for await progress in prefetcher.updates where progress.running == 0 { break }
    #expect(prefetcher.isPaused && prefetcher.progress.loaded == 2 && fixture.network.requests.count == 2)
    prefetcher.resume()

    #expect(await prefetcher.report().loaded == 8)
  }

  @Test("cancelling ends the waiting and the running items, or only those of some URLs")
  func cancel() async throws {
    let prefetcher = fixture.manager.prefetcher(concurrency: 2)
    prefetcher.append(urls)
    await gate.arrived(2)

    prefetcher.cancel([urls[0], urls[7]])
    await gate.arrived(3)
    #expect(prefetcher.progress.failed == 2)
    prefetcher.cancel()
    let report = await prefetcher.report()
    gate.open()
    await fixture.manager.close()

    #expect(report.loaded == 0 && report.failed.count == 8)
    #expect(report.failed.allSatisfy { $0.error.isCancellation } && report.failed.map(\.url) == urls)
    #expect(fixture.network.requests.count == 3)
  }

  @Test("requests of one URL are cancelled by their fields, key and partition")
  func cancelByRequest() async throws {
    let requests = [
      ResourceRequest(urls[0]), ResourceRequest(urls[0], headerFields: [.acceptLanguage: "de"]),
      ResourceRequest(urls[0], options: RequestOptions { $0.key = "key" }),
      ResourceRequest(urls[0], options: RequestOptions { $0.partition = "alice" }),
    ]
    let prefetcher = fixture.manager.prefetcher(concurrency: 2)
    prefetcher.append(requests)
    await gate.arrived(2)

    prefetcher.cancel([requests[1], requests[3]])
    await gate.arrived(3)
    #expect(prefetcher.progress.failed == 2)
    prefetcher.cancel([urls[0]], options: RequestOptions { $0.key = "key" })
    prefetcher.cancel([ResourceRequest(urls[0], method: .post)])
    gate.open()
    let report = await prefetcher.report()

    #expect(report.loaded == 1 && report.failed.count == 3 && report.failed.allSatisfy { $0.error.isCancellation })
  }

  @Test("requests of one URL are cancelled by their stores, and requests with a key whatever their URL is")
  func cancelByStoreOrKey() async throws {
    func options(_ store: Override<any CacheStore>?) -> RequestOptions { RequestOptions { $0.store = store } }
    let key = RequestOptions { $0.key = "key" }
    let prefetcher = fixture.manager.prefetcher()
    prefetcher.pause()
    prefetcher.append([ResourceRequest(urls[0]), ResourceRequest(urls[0], options: options(.disabled))])
    prefetcher.append([urls[1]], options: key)

    prefetcher.cancel([urls[0]], options: options(.use(VolatileStore())))
    #expect(prefetcher.progress.failed == 0)
    prefetcher.cancel([urls[0]], options: options(.disabled))
    #expect(prefetcher.progress.failed == 1)
    prefetcher.cancel([urls[0]], options: options(.adapted { $0 }))
    #expect(prefetcher.progress.failed == 2)
    prefetcher.cancel([urls[2]], options: key)
    #expect(prefetcher.progress.failed == 3)
  }

  @Test("a request with the manager's key is cancelled whatever its URL is, and a GET with a body by one with a body")
  func cancelByManagerKeyOrBody() throws {
    let fixture = try ManagerFixture { $0.cacheKey = { $0.path?.split(separator: "?").first.map(String.init) } }
    let signed = try (1...3).map { try fixture.url("/photo?signature=\($0)") }
    let prefetcher = fixture.manager.prefetcher()
    prefetcher.pause()
    prefetcher.append([signed[0]])
    prefetcher.append([ResourceRequest(signed[0], body: RequestBody(Data("a".utf8)))])

    prefetcher.cancel([signed[1]])
    #expect(prefetcher.progress.failed == 1)
    prefetcher.cancel([ResourceRequest(signed[2], body: RequestBody(Data("b".utf8)))])
    #expect(prefetcher.progress.failed == 2)
  }

  @Test("an interceptor that rewrites requests does not prevent their cancellation")
  func cancelIntercepted() async throws {
    let counter = Counter()
    let interceptor = RequestInterceptor(willLookUp: { request throws(CacheError) in
      counter.increment()
      request.path = "/1"
      request.headerFields[.authorization] = "token \(counter.value)"
    })
    let fixture = try ManagerFixture { $0.interceptor = interceptor }
    fixture.network.serve(urls[1]) { [gate] _ in .ok("1", cacheControl: "max-age=60").held(by: gate) }
    let prefetcher = fixture.manager.prefetcher(concurrency: 1)
    prefetcher.append([urls[0], urls[2]])
    await gate.arrived()

    prefetcher.cancel([urls[1]])
    #expect(prefetcher.progress.failed == 0)
    prefetcher.cancel([urls[0], urls[2]])

    #expect(await prefetcher.report().failed.count == 2)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a released prefetcher starts no more loads, and its running loads continue to their end")
  func released() async throws {
    var prefetcher: Prefetcher? = fixture.manager.prefetcher(concurrency: 1)
    prefetcher?.append(urls)
    await gate.arrived()

    prefetcher = nil
    gate.open()
    await fixture.manager.close()

    #expect(fixture.network.requests.count == 1 && fixture.disk.keys.count == 1)
  }

  @Test("progress never decreases, and its sequence ends with the last step")
  func updates() async throws {
    gate.open()
    let prefetcher = fixture.manager.prefetcher(concurrency: 2)
    prefetcher.pause()
    prefetcher.append(urls)
    let updates = prefetcher.updates
    prefetcher.resume()

    var finished: [Int] = []
    for await progress in updates { finished.append(progress.finished) }

    #expect(finished == finished.sorted() && finished.last == 8)
    var late: [PrefetchProgress] = []
    for await progress in prefetcher.updates { late.append(progress) }
    #expect(late.map(\.isFinished) == [true])
  }

  @Test("cancelling the wait for the report does not stop the prefetch")
  func reportIsCancelled() async throws {
    let prefetcher = fixture.manager.prefetcher(concurrency: 2)
    prefetcher.append(urls)
    await gate.arrived(2)
    let waiting = Task { await prefetcher.report() }
    waiting.cancel()
    #expect(await waiting.value.loaded == 0)
    gate.open()
    #expect(await prefetcher.report().loaded == 8)
  }

  @Test("a prefetch of a closed manager ends with an error")
  func closed() async throws {
    await fixture.manager.close()
    for destination in [PrefetchDestination.cache, .disk] {
      let report = await fixture.manager.prefetch(urls, into: destination)
      #expect(report.failed.count == 8 && report.failed.allSatisfy { $0.error.code == .closed })
    }
  }

  @Test("10,000 stored resources end without a deep stack")
  func many() async throws {
    gate.open()
    _ = try await fixture.manager.load(urls[0])
    let requests = (0..<10_000).map { ResourceRequest(urls[0], headerFields: [.accept: "\($0)"]) }
    let report = await fixture.manager.prefetch(requests)
    #expect(report.skipped == 10_000)
  }
}

@Suite("The prefetcher and loads of the same resource")
struct PrefetchSharingTests {
  /// A downloader that records the priorities of its requests, and responds when the gate opens.
  private final class Ranking: Downloader {
    let id = ComponentID.unique(Ranking.self)
    let gate = Gate()
    private let asked = Lock<[(path: String, priority: LoadPriority)]>([])
    private let response: ScriptedResponse

    init(_ response: ScriptedResponse) { self.response = response }

    var paths: [String] { asked.withLock { $0.map(\.path) } }

    func level(_ path: String) -> LoadPriority.Level? {
      asked.withLock { $0.first { $0.path == path }?.priority.level }
    }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      asked.withLock { $0.append((request.head.path ?? "", request.priority)) }
      let network = ScriptedDownloader()
      guard let url = URL(string: "https://example.com\(request.head.path ?? "")") else { throw .cancelled }
      network.respond(to: url, with: response.held(by: gate))
      return try await network.download(request)
    }
  }

  @Test(
    "a load joins the running prefetch and raises its priority, and both share one transfer",
    arguments: [PrefetchDestination.cache, .disk])
  func joinsTransfer(_ destination: PrefetchDestination) async throws {
    let network = Ranking(.ok("bytes"))
    let fixture = try ManagerFixture { $0.downloader = network }
    let prefetcher = fixture.manager.prefetcher(into: destination)
    prefetcher.append([fixture.url])
    await network.gate.arrived()
    #expect(network.level("/image.png") == .low)

    let load = Task { try await fixture.manager.load(fixture.url, options: RequestOptions { $0.priority = .high }) }
    try await Polling.until { network.level("/image.png") == .high }
    network.gate.open()

    let resource = try await load.value
    #expect(resource.text == "bytes" && resource.source == .network)
    #expect(await prefetcher.report().loaded == 1)
    #expect(network.paths.count == 1)
    #expect(try await fixture.manager.contains(fixture.url, in: .memory))
  }

  @Test("a load into a file gets its bytes from the running prefetch")
  func fileJoins() async throws {
    let network = Ranking(.ok("bytes"))
    let fixture = try ManagerFixture { $0.downloader = network }
    let folder = try DownloadFolder()
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url])
    await network.gate.arrived()

    let load = Task { try await fixture.manager.load(fixture.url, to: folder.file()) }
    try await Polling.until { network.level("/image.png") == .normal }
    network.gate.open()

    _ = try await load.value
    #expect(folder.content() == Data("bytes".utf8))
    #expect(network.paths.count == 1)
  }

  @Test("if the prefetch or the load that joined it is cancelled, the other one continues", arguments: [true, false])
  func oneLeaves(isPrefetch: Bool) async throws {
    let network = Ranking(.ok("bytes"))
    let fixture = try ManagerFixture { $0.downloader = network }
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url])
    await network.gate.arrived()
    let load = Task { try await fixture.manager.load(fixture.url) }
    try await Polling.until { network.level("/image.png") == .normal }

    if isPrefetch { prefetcher.cancel() } else { load.cancel() }
    if !isPrefetch { _ = await load.result }
    network.gate.open()

    let (result, report) = (await load.result, await prefetcher.report())
    #expect(result.isCancellation == !isPrefetch)
    #expect(report.failed.count == (isPrefetch ? 1 : 0))
    #expect(network.paths.count == 1 && fixture.disk.keys.count == 1)
  }

  @Test("if the store does not accept the response, the load that waited for it sends its own request")
  func notStored() async throws {
    let network = Ranking(.ok("bytes", cacheControl: "no-store"))
    let fixture = try ManagerFixture { $0.downloader = network }
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url])
    await network.gate.arrived()
    let load = Task { try await fixture.manager.load(fixture.url) }
    try await Polling.until { network.level("/image.png") == .normal }
    network.gate.open()

    #expect(try await load.value.text == "bytes")
    let report = await prefetcher.report()
    #expect(report.failed.map(\.error.code) == [.notCached])
    #expect(network.paths.count == 2)
  }

  @Test("a prefetch to disk waits for the running load")
  func prefetchJoins() async throws {
    let network = Ranking(.ok("bytes"))
    let fixture = try ManagerFixture { $0.downloader = network }
    async let load = fixture.manager.load(fixture.url)
    await network.gate.arrived()
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url])
    network.gate.open()

    #expect(try await load.text == "bytes")
    #expect(await prefetcher.report().failed.isEmpty)
    #expect(network.paths.count <= 2 && fixture.disk.keys.count == 1)
  }

  @Test(
    "a waiting item moves to the front when a load requests it",
    arguments: [PrefetchDestination.cache, .disk])
  func movesUp(_ destination: PrefetchDestination) async throws {
    let network = Ranking(.ok("bytes", cacheControl: "max-age=60"))
    let fixture = try ManagerFixture { $0.downloader = network }
    let urls = try (0..<5).map { try fixture.url("/\($0)") }
    let prefetcher = fixture.manager.prefetcher(into: destination, concurrency: 1)
    prefetcher.append(urls)
    await network.gate.arrived()

    let load = Task { try await fixture.manager.load(urls[4]) }
    await network.gate.arrived(2)
    // The first item ends, and the requested item replaces it.
    network.gate.letThrough()
    for await progress in prefetcher.updates where progress.finished == 1 { break }
    network.gate.open()
    _ = try await load.value
    let report = await prefetcher.report()

    #expect(network.paths == ["/0", "/4", "/1", "/2", "/3"])
    #expect(report.loaded + report.skipped == 5)
  }

  @Test("a prefetch to disk without a writable durable store is an error")
  func noStore() async throws {
    let fixture = try ManagerFixture { $0.store = nil }
    let report = await fixture.manager.prefetch([fixture.url], into: .disk)
    #expect(report.failed.map(\.error.code) == [.invalidConfiguration])
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a full store ends the transfer with the store's error")
  func storeRefuses() async throws {
    let fixture = try ManagerFixture()
    fixture.disk.refusesWrites = true
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 500_000)).chunked(by: 1_000))
    let report = await fixture.manager.prefetch([fixture.url], into: .disk)
    #expect(report.failed.map(\.error.code) == [.diskFull])
    #expect(fixture.network.cancelledBodies == 1)
  }
}
