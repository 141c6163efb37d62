import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Synchronization
import Testing

@Suite("Coalescing and cancellation")
struct SharingTests {
  @Test("100 loads of one URL that is not cached make one request, and all get the bytes")
  func coalescing() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60").held(by: gate))

    let texts = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<100 { group.addTask { try await fixture.manager.load(fixture.url).text } }
      await gate.arrived()
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }

    #expect(texts.count == 100 && texts.allSatisfy { $0 == "bytes" })
    #expect(fixture.network.requests.count == 1)
  }

  @Test("requests that differ in a field or in a component do not share a response")
  func differentRequests() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      .ok(request.headerFields[.acceptLanguage] ?? "-", fields: [.vary: "Accept-Language"]).held(by: gate)
    }
    let other = ScriptedDownloader()
    other.respond(to: fixture.url, with: .ok("other", fields: [.vary: "Accept-Language"]).held(by: gate))

    async let german = fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"]))
    async let french = fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "fr"]))
    async let elsewhere = fixture.manager.load(fixture.url, options: RequestOptions { $0.downloader = .use(other) })
    await gate.arrived(3)
    gate.open()

    #expect(try await [german.text, french.text, elsewhere.text] == ["de", "fr", "other"])
  }

  @Test("keys or partitions that are equal as strings, but not in their bytes, share no request", arguments: [true, false])
  func lookalikes(areKeys: Bool) async throws {
    let fixture = try ManagerFixture { $0.store = nil }
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("bytes", cacheControl: "max-age=1, stale-while-revalidate=600").held(by: gate) }
    // Their lengths are equal too.
    let callers = ["\u{212B}", "A\u{30A}"].map { name in
      RequestOptions { if areKeys { $0.key = name } else { $0.partition = name } }
    }

    let loads = callers.map { options in Task { try await fixture.manager.load(fixture.url, options: options).text } }
    try await Polling.until { fixture.network.requests.count == 2 }
    gate.open()
    for load in loads { #expect(try await load.value == "bytes") }

    gate.close()
    fixture.clock.advance(by: .seconds(5))
    for options in callers { #expect(try await fixture.send(options: options).text == "bytes") }
    try await Polling.until { fixture.network.requests.count == 4 }
    gate.open()
  }

  @Test("a response that may not be stored is for its leader alone, and the followers send their own requests")
  func unshareable() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let serial = Atomic(0)
    fixture.network.serve(fixture.url) { _ in
      .ok("\(serial.wrappingAdd(1, ordering: .relaxed).newValue)", cacheControl: "no-store").held(by: gate)
    }

    let texts = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<5 { group.addTask { try await fixture.manager.load(fixture.url).text } }
      try await Polling.until { fixture.observer.joins >= 4 }
      gate.open()
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }

    #expect(texts == ["1", "2", "3", "4", "5"])
  }

  @Test("cancelling one of two loads does not affect the other, and cancelling the last one stops the transfer")
  func cancelling() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))
    let one = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    let two = Task { try await fixture.manager.load(fixture.url).text }
    await fixture.observer.joined()

    one.cancel()
    let cancelled = await one.result
    gate.open()

    #expect(throws: CacheError.self) { try cancelled.get() }
    #expect(try await two.value == "bytes")
  }

  @Test("if all loads leave, the transfer stops, and a later load starts a new one")
  func lastCancel() async throws {
    let fixture = try ManagerFixture()
    let (first, second) = (Gate(), Gate())
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 10)).bodyHeld(by: first), .ok("again").held(by: second))
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await first.arrived()

    load.cancel()
    #expect((await load.result).isCancellation)
    let again = Task { try await fixture.manager.load(fixture.url).text }
    await second.arrived()
    first.open()
    second.open()

    #expect(try await again.value == "again")
    await fixture.manager.close()
    #expect(fixture.network.cancelledBodies == 1)
  }

  @Test("a load that is cancelled before it starts sends nothing")
  func cancelBefore() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let load = Task {
      await gate.pass()
      return try await fixture.manager.load(fixture.url).text
    }
    load.cancel()
    gate.open()

    #expect((await load.result).isCancellation)
    await fixture.manager.close()
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("cancelling a callback's task at once leads to one outcome, a cancellation")
  func callbackCancel() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let outcomes = Outcomes()

    let task = fixture.manager.load(fixture.url) { outcomes.append($0) }
    task.cancel()
    task.cancel()
    gate.open()
    await fixture.manager.close()

    #expect(task.isCancelled)
    #expect(outcomes.all.map(\.isCancellation) == [true])
  }

  @Test("loads end even if their manager is released in the meantime")
  func releasedManager() async throws {
    let gate = Gate()
    let outcomes = Outcomes()
    let url: URL
    let observer: RecordingObserver
    do {
      let fixture = try ManagerFixture()
      url = fixture.url
      observer = fixture.observer
      fixture.network.respond(to: url, with: .ok("bytes").held(by: gate))
      fixture.manager.load(url) { outcomes.append($0) }
    }
    await gate.arrived()
    gate.open()
    await observer.first { if case .finished = $0 { true } else { false } }
    try await Polling.until { !outcomes.all.isEmpty }

    #expect(outcomes.all.map { try? $0.get().text } == ["bytes"])
  }

  @Test("a closed manager accepts no loads, and its running loads have ended")
  func closing() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()

    async let closed: Void = fixture.manager.close()
    gate.open()
    await closed

    #expect(try await load.value == "bytes")
    #expect(try await fixture.failure(fixture.url).code == .closed)
  }
}

/// The outcomes of callbacks, in order.
final class Outcomes: Sendable {
  private let outcomes = Lock<[Result<Resource<Data>, CacheError>]>([])

  var all: [Result<Resource<Data>, CacheError>] { outcomes.withLock { $0 } }

  func append(_ outcome: Result<Resource<Data>, CacheError>) { outcomes.withLock { $0.append(outcome) } }
}

extension Result {
  var isCancellation: Bool {
    if case .failure(let error as CacheError) = self { error.isCancellation } else { false }
  }
}

extension RecordingObserver {
  /// Returns when a load has joined another one.
  func joined() async { await first { if case .joined = $0 { true } else { false } } }
}

extension RecordingObserver {
  var joins: Int { events.filter { if case .joined = $0 { true } else { false } }.count }

  /// The events except for the last ones of loads, which are reported at any time after the results.
  var eventsOfResults: [CacheEvent] { events.filter { if case .workEnded = $0 { false } else { true } } }

  /// The names of these events.
  var namesOfResults: [String] { eventsOfResults.map { String("\($0)".prefix { $0 != "(" }) } }
}
