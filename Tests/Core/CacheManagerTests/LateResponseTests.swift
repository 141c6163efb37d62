import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Older responses do not replace later ones")
struct LateResponseTests {
  @Test("a late 304 does not bring back the replaced response", arguments: [false, true])
  func lateConfirmation(onDisk: Bool) async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture { if onDisk { $0.store = disk.cache } }
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600"),
      .notModified(cacheControl: "max-age=600").held(by: gate),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()

    let late = Task { try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).text }
    await gate.arrived()
    fixture.clock.advance(by: .seconds(1))
    _ = try await fixture.manager.load(fixture.url, options: .policy(.reload))
    gate.open()
    _ = await late.result

    #expect(try await fixture.manager.load(fixture.url).text == "new")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("a response that was cleared during its revalidation stays cleared")
  func clearedMeanwhile() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("secret", etag: "\"1\"", cacheControl: "max-age=600"),
      .notModified(cacheControl: "max-age=600").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    let load = Task { try await fixture.manager.load(fixture.url, options: .policy(.revalidate())).text }
    await gate.arrived()

    try await fixture.manager.clear()
    gate.open()
    _ = await load.result

    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }

  @Test("a layer that refuses the new response stops serving the old one", arguments: ["memory", "disk", "unwritten memory"])
  func refusingLayer(_ layer: String) async throws {
    let fixture = try ManagerFixture {
      if layer == "memory" { $0.memory = MemoryCache(limits: .init(cost: 1 << 20, entryCost: 5_000)) }
    }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600"),
      .ok(Data(count: 10_000), etag: "\"2\"", cacheControl: "max-age=600"), .ok("newest", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(1))
    let isDisk = layer == "disk"
    fixture.disk.refusesWrites = isDisk

    let options = RequestOptions {
      $0.policy = .reload
      if layer == "unwritten memory" { $0.writes = .disk }
    }
    #expect(try await fixture.manager.load(fixture.url, options: options).data.count == 10_000)
    fixture.disk.refusesWrites = false
    if isDisk { fixture.restart() }

    #expect(try await fixture.manager.load(fixture.url).text != "old")
  }

  @Test("memory does not hide the variants that are on disk")
  func variantsOnDisk() async throws {
    let fixture = try ManagerFixture()
    for language in ["de", "fr"] {
      fixture.network.respond(
        to: fixture.url, with: .ok(language, cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]))
      _ = try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language]))
    }
    fixture.restart()
    func load(_ language: String) async throws -> Resource<Data> {
      try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language]))
    }

    #expect(try await load("de").source == .disk)
    #expect(try await load("fr").source == .disk)
    #expect(try await load("de").source == .memory)
    try fixture.network.verify()
  }

  @Test("a stored response that exceeds the limit of a load is not removed")
  func limitedRead() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 10_000), etag: "\"1\""), .notModified(), .notModified())
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()

    let error = try await fixture.failure(fixture.url, RequestOptions { $0.maximumBodySize = 100 })

    #expect(error.code == .bodyTooLarge)
    #expect(try await fixture.manager.load(fixture.url).source == .revalidated)
  }

  @Test("a redirect in memory is followed like one from the network")
  func redirectInMemory() async throws {
    let fixture = try ManagerFixture { $0.acceptedStatuses = AcceptedStatuses(200..<400) }
    fixture.network.respond(
      to: fixture.url, with: .response(.movedPermanently, fields: [.location: "/final", .cacheControl: "max-age=600"]))
    fixture.network.respond(to: try fixture.url("/final"), with: .ok("final", cacheControl: "max-age=600"))

    #expect(try await fixture.manager.load(fixture.url).text == "final")
    #expect(try await fixture.manager.load(fixture.url).text == "final")
    try fixture.network.verify()
  }

  @Test("a chain with a private hop is for its leader alone")
  func privateRedirect() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let serial = Counter()
    fixture.network.serve(fixture.url) { _ in
      serial.increment()
      return .response(.found, fields: [.location: "/own/\(serial.value)", .cacheControl: "no-store"]).held(by: gate)
    }
    for number in 1...2 {
      fixture.network.serve(try fixture.url("/own/\(number)")) { _ in .ok("own \(number)", cacheControl: "max-age=60") }
    }

    async let one = fixture.manager.load(fixture.url)
    async let two = fixture.manager.load(fixture.url)
    try await Polling.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(try await Set([one.text, two.text]) == ["own 1", "own 2"])
  }

  @Test("a 304 does not extend the expiration that the validator set for an error")
  func expiringError() async throws {
    let fixture = try ManagerFixture { $0.acceptedStatuses = AcceptedStatuses(200..<500) }
    let missing = ScriptedResponse.response(
      .notFound, fields: [.cacheControl: "max-age=60", .eTag: "\"1\""], body: Data("no".utf8))
    fixture.network.respond(to: fixture.url, with: missing, .notModified(cacheControl: "max-age=60"))
    let options = RequestOptions { $0.expiration = .after(.seconds(86_400)) }
    _ = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(30))
    _ = try await fixture.manager.load(
      fixture.url,
      options: RequestOptions {
        $0.expiration = .after(.seconds(86_400))
        $0.policy = .revalidate()
      })
    fixture.clock.advance(by: .seconds(3_600))

    #expect(try await fixture.failure(fixture.url, .policy(.cacheOnly)).code == .notCached)
  }

  @Test("errors and events contain no password")
  func passwords() async throws {
    let fixture = try ManagerFixture()
    let url = try #require(URL(string: "https://user:hunter2@example.com/x"))
    fixture.network.respond(to: try fixture.url("/x"), with: .failure(.connectionRefused))

    let error = try await fixture.failure(url)

    #expect(error.url == "https://example.com/x")
    #expect(!fixture.observer.events.map { "\($0)" }.joined().contains("hunter2"))
  }

  @Test("without a downloader, a stored response is served as one that could not be revalidated")
  func noDownloader() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url)

    #expect(
      try await fixture.manager.load(fixture.url, options: RequestOptions { $0.downloader = .disabled }).validation == .failed)
  }
}

@Suite("Leaving and closing")
struct LeavingTests {
  @Test("leaving a stream after the stale value stops the transfer, unless the stale value was enough")
  func leavingAfterStale() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"),
      .ok(Data(count: 10), etag: "\"2\"").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))

    for try await event in fixture.manager.events(for: fixture.url, options: .policy(.staleWhileRevalidate)) {
      if case .stale = event {
        await gate.arrived()
        break
      }
    }
    gate.open()
    await fixture.manager.close()

    #expect(fixture.network.cancelledBodies == 1)
  }

  @Test("closing stops loads and values that have no waiters, and returns", arguments: 0..<10)
  func closing(_ round: Int) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("new").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))
    let request = ResourceRequest(fixture.url, options: .policy(.staleWhileRevalidate))

    #expect(try await fixture.manager.load(request, as: .counting(Counter())).value == "OLD")
    await gate.arrived()
    await fixture.manager.close()

    #expect(fixture.network.cancelledBodies == 1)
    gate.open()
  }

  @Test("closing waits for requests that have to send their own request")
  func closingFollowers() async throws {
    let fixture = try ManagerFixture()
    let (first, others) = (Gate(), Gate())
    let serial = Counter()
    fixture.network.serve(fixture.url) { _ in
      serial.increment()
      return .ok("\(serial.value)", cacheControl: "no-store").held(by: serial.value == 1 ? first : others)
    }
    let outcomes = Outcomes()
    for _ in 0..<3 { fixture.manager.load(fixture.url) { outcomes.append($0) } }
    await first.arrived()

    async let closed: Void = fixture.manager.close()
    first.open()
    await others.arrived(2)
    others.open()
    await closed

    #expect(outcomes.all.count == 3)
    #expect(Set(outcomes.all.compactMap { try? $0.get().text }).count == 3)
  }

  @Test("a revalidation that fails without waiters is reported", arguments: [false, true])
  func backgroundFailure(asValue: Bool) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))
    let request = ResourceRequest(fixture.url, options: .policy(.staleWhileRevalidate))

    if asValue {
      _ = try await fixture.manager.load(request, as: .counting(Counter()))
    } else {
      _ = try await fixture.manager.load(request)
    }
    await fixture.manager.close()

    #expect(fixture.observer.events.contains { if case .backgroundFailed = $0 { true } else { false } })
  }

  @Test("no progress is reported after the completion, even if a cancellation overtakes queued reports")
  func progressAfterCompletion() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 1_000)).chunked(by: 100).bodyHeld(by: gate))
    let log = EventLog()
    let queue = DispatchQueue(label: "callbacks")
    let options = RequestOptions { $0.callbackQueue = .dispatch(queue) }

    queue.suspend()
    let task = fixture.manager.load(
      fixture.url, options: options, progress: { _ in log.append("progress") }, completion: { _ in log.append("completion") })
    gate.open()
    await fixture.observer.first { if case .finished = $0 { true } else { false } }
    task.cancel()
    queue.resume()
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }

    #expect(log.all.last == "completion")
    #expect(log.all.filter { $0 == "completion" }.count == 1)
  }
}

/// The recorded words, in order.
final class EventLog: Sendable {
  private let words = Lock<[String]>([])

  var all: [String] { words.withLock { $0 } }

  func append(_ word: String) { words.withLock { $0.append(word) } }
}

/// A `DiskCache` in a temporary folder.
final class TemporaryDisk: Sendable {
  let cache: DiskCache
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "etagere-manager-\(Revision.random())")
    cache = try DiskCache(folder: folder)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }
}
