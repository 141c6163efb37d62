import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("No older word over a later one")
struct HonestyTests {
  @Test("a late 304 does not bring the replaced answer back", arguments: [false, true])
  func lateConfirmation(onDisk: Bool) async throws {
    let disk = try TemporaryDisk()
    let house = try House { if onDisk { $0.store = disk.cache } }
    let gate = Gate()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=600"), .notModified(cacheControl: "max-age=600").held(by: gate),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=600"))
    _ = try await house.manager.load(house.url)
    house.restart()

    let late = Task { try await house.manager.load(house.url, options: .policy(.revalidate())).text }
    await gate.arrived()
    house.clock.advance(by: .seconds(1))
    _ = try await house.manager.load(house.url, options: .policy(.reload))
    gate.open()
    _ = await late.result

    #expect(try await house.manager.load(house.url).text == "new")
    house.restart()
    #expect(try await house.manager.load(house.url).text == "new")
  }

  @Test("what was cleared while a revalidation was out stays cleared")
  func clearedMeanwhile() async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(
      house.url, .ok("secret", etag: "\"1\"", cacheControl: "max-age=600"),
      .notModified(cacheControl: "max-age=600").held(by: gate))
    _ = try await house.manager.load(house.url)
    let load = Task { try await house.manager.load(house.url, options: .policy(.revalidate())).text }
    await gate.arrived()

    try await house.manager.clear()
    gate.open()
    _ = await load.result

    #expect(try await house.manager.lookup(house.url) == .miss)
    #expect(house.memory.count == 0 && house.disk.keys.isEmpty)
  }

  @Test("a layer that does not take the new answer stops serving the old one", arguments: ["memory", "disk", "unwritten memory"])
  func refusingLayer(_ layer: String) async throws {
    let house = try House {
      if layer == "memory" { $0.memory = MemoryCache(limits: .init(cost: 1 << 20, entryCost: 5_000)) }
    }
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=600"),
      .ok(Data(count: 10_000), etag: "\"2\"", cacheControl: "max-age=600"), .ok("newest", cacheControl: "max-age=600"))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(1))
    let isDisk = layer == "disk"
    house.disk.refusesWrites = isDisk

    let options = RequestOptions {
      $0.policy = .reload
      if layer == "unwritten memory" { $0.writes = .disk }
    }
    #expect(try await house.manager.load(house.url, options: options).data.count == 10_000)
    house.disk.refusesWrites = false
    if isDisk { house.restart() }

    #expect(try await house.manager.load(house.url).text != "old")
  }

  @Test("memory does not hide the variants that are on disk")
  func variantsOnDisk() async throws {
    let house = try House()
    for language in ["de", "fr"] {
      house.network.answer(house.url, .ok(language, cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]))
      _ = try await house.manager.load(ResourceRequest(house.url, headerFields: [.acceptLanguage: language]))
    }
    house.restart()
    func load(_ language: String) async throws -> Resource<Data> {
      try await house.manager.load(ResourceRequest(house.url, headerFields: [.acceptLanguage: language]))
    }

    #expect(try await load("de").source == .disk)
    #expect(try await load("fr").source == .disk)
    #expect(try await load("de").source == .memory)
    try house.network.verify()
  }

  @Test("a stored answer that is larger than a load takes is no reason to remove it")
  func limitedRead() async throws {
    let house = try House()
    house.network.answer(house.url, .ok(Data(count: 10_000), etag: "\"1\""), .notModified(), .notModified())
    _ = try await house.manager.load(house.url)
    house.restart()

    let error = try await house.failure(house.url, RequestOptions { $0.maximumBodySize = 100 })

    #expect(error.code == .bodyTooLarge)
    #expect(try await house.manager.load(house.url).source == .revalidated)
  }

  @Test("a redirect in memory is followed as one from the network is")
  func redirectInMemory() async throws {
    let house = try House { $0.acceptedStatuses = AcceptedStatuses(200..<400) }
    house.network.answer(
      house.url, .response(.movedPermanently, fields: [.location: "/final", .cacheControl: "max-age=600"]))
    house.network.answer(try house.url("/final"), .ok("final", cacheControl: "max-age=600"))

    #expect(try await house.manager.load(house.url).text == "final")
    #expect(try await house.manager.load(house.url).text == "final")
    try house.network.verify()
  }

  @Test("a chain with a private hop goes to its leader alone")
  func privateRedirect() async throws {
    let house = try House()
    let gate = Gate()
    let serial = Counter()
    house.network.serve(house.url) { _ in
      serial.increment()
      return .response(.found, fields: [.location: "/own/\(serial.value)", .cacheControl: "no-store"]).held(by: gate)
    }
    for number in 1...2 {
      house.network.serve(try house.url("/own/\(number)")) { _ in .ok("own \(number)", cacheControl: "max-age=60") }
    }

    async let one = house.manager.load(house.url)
    async let two = house.manager.load(house.url)
    try await Turns.until { house.observer.joins >= 1 }
    gate.open()

    #expect(try await Set([one.text, two.text]) == ["own 1", "own 2"])
  }

  @Test("a 304 does not put off the end that the validator has set for an error")
  func expiringError() async throws {
    let house = try House { $0.acceptedStatuses = AcceptedStatuses(200..<500) }
    let missing = ScriptedAnswer.response(
      .notFound, fields: [.cacheControl: "max-age=60", .eTag: "\"1\""], body: Data("no".utf8))
    house.network.answer(house.url, missing, .notModified(cacheControl: "max-age=60"))
    let options = RequestOptions { $0.expiration = .after(.seconds(86_400)) }
    _ = try await house.manager.load(house.url, options: options)
    house.clock.advance(by: .seconds(30))
    _ = try await house.manager.load(
      house.url,
      options: RequestOptions {
        $0.expiration = .after(.seconds(86_400))
        $0.policy = .revalidate()
      })
    house.clock.advance(by: .seconds(3_600))

    #expect(try await house.failure(house.url, .policy(.cacheOnly)).code == .notCached)
  }

  @Test("errors and events name no password")
  func passwords() async throws {
    let house = try House()
    let url = try #require(URL(string: "https://user:hunter2@example.com/x"))
    house.network.answer(try house.url("/x"), .failure(.connectionRefused))

    let error = try await house.failure(url)

    #expect(error.url == "https://example.com/x")
    #expect(!house.observer.events.map { "\($0)" }.joined().contains("hunter2"))
  }

  @Test("nobody to ask: a stored answer is shown as one that could not be validated")
  func noDownloader() async throws {
    let house = try House()
    house.network.answer(house.url, .ok("bytes", etag: "\"1\""))
    _ = try await house.manager.load(house.url)

    #expect(try await house.manager.load(house.url, options: RequestOptions { $0.downloader = .disabled }).validation == .failed)
  }
}

@Suite("Leaving and closing")
struct LeavingTests {
  @Test("who leaves a stream after the stale value stops the transfer; who was satisfied by it does not")
  func leavingAfterStale() async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok(Data(count: 10), etag: "\"2\"").bodyHeld(by: gate))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(5))

    for try await event in house.manager.events(for: house.url, options: .policy(.staleWhileRevalidate)) {
      if case .stale = event {
        await gate.arrived()
        break
      }
    }
    gate.open()
    await house.manager.close()

    #expect(house.network.cancelledBodies == 1)
  }

  @Test("closing stops what only survives its waiters, values included, and does not hang", arguments: 0..<10)
  func closing(_ round: Int) async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .ok("new").bodyHeld(by: gate))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(5))
    let request = ResourceRequest(house.url, options: .policy(.staleWhileRevalidate))

    #expect(try await house.manager.load(request, as: .counting(Counter())).value == "OLD")
    await gate.arrived()
    await house.manager.close()

    #expect(house.network.cancelledBodies == 1)
    gate.open()
  }

  @Test("closing waits for those who have to ask for themselves")
  func closingFollowers() async throws {
    let house = try House()
    let (first, others) = (Gate(), Gate())
    let serial = Counter()
    house.network.serve(house.url) { _ in
      serial.increment()
      return .ok("\(serial.value)", cacheControl: "no-store").held(by: serial.value == 1 ? first : others)
    }
    let outcomes = Outcomes()
    for _ in 0..<3 { house.manager.load(house.url) { outcomes.append($0) } }
    await first.arrived()

    async let closed: Void = house.manager.close()
    first.open()
    await others.arrived(2)
    others.open()
    await closed

    #expect(outcomes.all.count == 3)
    #expect(Set(outcomes.all.compactMap { try? $0.get().text }).count == 3)
  }

  @Test("a revalidation that fails with nobody left is reported", arguments: [false, true])
  func backgroundFailure(asValue: Bool) async throws {
    let house = try House()
    house.network.answer(house.url, .ok("old", etag: "\"1\"", cacheControl: "max-age=1"), .failure(.offline))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(5))
    let request = ResourceRequest(house.url, options: .policy(.staleWhileRevalidate))

    if asValue {
      _ = try await house.manager.load(request, as: .counting(Counter()))
    } else {
      _ = try await house.manager.load(request)
    }
    await house.manager.close()

    #expect(house.observer.events.contains { if case .backgroundFailed = $0 { true } else { false } })
  }

  @Test("no progress comes after the completion, also when a cancel overtakes what was queued")
  func progressAfterCompletion() async throws {
    let house = try House()
    let gate = Gate()
    house.network.answer(house.url, .ok(Data(count: 1_000)).chunked(by: 100).bodyHeld(by: gate))
    let log = EventLog()
    let queue = DispatchQueue(label: "callbacks")
    let options = RequestOptions { $0.callbackQueue = .dispatch(queue) }

    queue.suspend()
    let task = house.manager.load(
      house.url, options: options, progress: { _ in log.append("progress") }, completion: { _ in log.append("completion") })
    gate.open()
    await house.observer.first { if case .finished = $0 { true } else { false } }
    task.cancel()
    queue.resume()
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }

    #expect(log.all.last == "completion")
    #expect(log.all.filter { $0 == "completion" }.count == 1)
  }
}

/// Words, in order.
final class EventLog: Sendable {
  private let words = Lock<[String]>([])

  var all: [String] { words.withLock { $0 } }

  func append(_ word: String) { words.withLock { $0.append(word) } }
}

/// A `DiskCache` in a folder of its own.
final class TemporaryDisk: Sendable {
  let cache: DiskCache
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "etagere-manager-\(Revision.random())")
    cache = try DiskCache(folder: folder)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }
}
