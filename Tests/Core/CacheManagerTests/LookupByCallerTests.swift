import CacheCore
import CacheTesting
import Foundation
import MemoryStore
import Testing

@testable import CacheManager

@Suite("Lookups in the task of the caller, in a store that bounds their time")
struct LookupByCallerTests {
  let fixture: ManagerFixture
  let store: HeldStore

  init() throws {
    (fixture, store) = try ManagerFixture.held(boundsLookupTime: true)
    fixture.network.serve(fixture.url) { _ in .ok("chair", cacheControl: "max-age=60") }
  }

  private func load(_ options: RequestOptions = RequestOptions()) -> Task<Result<Resource<Data>, CacheError>, Never> {
    Task {
      do throws(CacheError) {
        return .success(try await fixture.manager.load(fixture.url, options: options))
      } catch {
        return .failure(error)
      }
    }
  }

  private var events: [String] { fixture.observer.namesOfResults }

  /// Everything that a load reports after a restart, except for its revision, which differs between fixtures.
  private func told(_ situation: PlainHitTests.Situation, isBounded: Bool) async throws -> String {
    let (fixture, _) = try ManagerFixture.held(boundsLookupTime: isBounded)
    let url = try fixture.url(situation.path)
    fixture.network.respond(to: url, with: situation.response)
    fixture.network.respond(to: try fixture.url("/b"), with: .ok("b", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(ResourceRequest(url, headerFields: situation.fields, options: situation.stored))
    fixture.restart()
    fixture.clock.advance(by: situation.age)
    let outcome: String
    do throws(CacheError) {
      let resource = try await fixture.manager.load(
        ResourceRequest(url, headerFields: situation.fields, options: situation.requested))
      outcome = resource.toldExceptRevision
    } catch {
      outcome = "\(error)"
    }
    // The background revalidation of a stale response ends in any order with the load.
    await fixture.manager.close()
    let events = fixture.observer.namesOfResults.sorted()
    let memory = fixture.memory.keys().map { "\($0)" }.sorted()
    return "\(outcome) \(fixture.network.requests) \(events) \(memory)"
  }

  @Test(
    "a lookup by the caller has the same result and events as one in a task of its own",
    arguments: PlainHitTests.Situation.all)
  func agreement(_ situation: PlainHitTests.Situation) async throws {
    let (byCaller, byTask) = try await (told(situation, isBounded: true), told(situation, isBounded: false))
    #expect(byCaller == byTask)
  }

  @Test("a hit is one lookup in the task of the caller, without a flight", arguments: [true, false])
  func hit(isBounded: Bool) async throws {
    // Given
    let (fixture, store) = try ManagerFixture.held(boundsLookupTime: isBounded)
    fixture.network.respond(to: fixture.url, with: .ok("chair", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let before = (store.lookups.all, fixture.observer.eventsOfResults.count, fixture.manager.core.flights.endPosition)

    // When
    let resource = try await HeldStore.$isInTaskOfCaller.withValue(true) { try await fixture.manager.load(fixture.url) }

    // Then
    #expect((resource.text, resource.source) == ("chair", .disk))
    #expect(store.lookups == (before.0 + 1, isBounded ? 1 : 0))
    #expect(fixture.manager.core.flights.endPosition == before.2 + (isBounded ? 0 : 1))
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    #expect(fixture.observer.namesOfResults.dropFirst(before.1) == ["started", "stored", "finished", "hit"])
  }

  @Test("a load that finds nothing passes the result on, and the store is asked once")
  func miss() async throws {
    #expect(try await fixture.manager.load(fixture.url).source == .network)
    #expect(store.lookups.all == 1)
    #expect(events.first == "started" && events.last == "finished")
    #expect(events.filter { $0 == "started" }.count == 1)
  }

  @Test("equal loads ask the store twice at most, and send one request")
  func equalLoads() async throws {
    let gate = store.hold(.look, all: true)
    let loads = (0..<20).map { _ in load() }
    // The second load starts a flight, which the others join.
    try await Polling.until { fixture.observer.loads.count == 20 && gate.held == 2 }
    gate.open()
    for load in loads { #expect(try await load.value.get().text == "chair") }
    #expect(store.lookups.all == 2)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a load joins an equal load that waits for the origin, without a lookup")
  func joins() async throws {
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in ScriptedResponse.ok("late").held(by: gate) }
    let first = load()
    await gate.arrived()
    let second = load()
    await fixture.observer.joined()
    gate.open()
    #expect(try await first.value.get().text == "late")
    #expect(try await second.value.get().text == "late")
    #expect(store.lookups.all == 1)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a load uses the response that an equal load stored during its lookup")
  func overtaken() async throws {
    let gate = store.hold(.look)
    let slow = load()
    await gate.arrived()
    // It has a lookup of its own, because it does not wait for that of the caller.
    #expect(try await load().value.get().source == .network)
    gate.open()
    #expect(try await slow.value.get().source == .memory)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a response that is removed during the lookup is not returned")
  func removal() async throws {
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let gate = store.hold(.look)
    let slow = load()
    await gate.arrived()
    try await fixture.manager.remove(fixture.url)
    gate.open()
    #expect(try await slow.value.get().source == .network)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a load that is cancelled during its lookup ends with a cancellation, and sends no request", arguments: [true, false])
  func cancellation(isStored: Bool) async throws {
    if isStored { _ = try await fixture.manager.load(fixture.url) }
    fixture.restart()
    let requests = fixture.network.requests.count
    let gate = store.hold(.look)
    let slow = load()
    await gate.arrived()
    slow.cancel()
    gate.open()
    let error = await #expect(throws: CacheError.self) { try await slow.value.get() }
    #expect(error?.isCancellation == true)
    #expect(fixture.network.requests.count == requests)
    #expect(events.last == "finished")
  }

  @Test("a load whose lookup fails reports its start first, and continues with the origin")
  func failure() async throws {
    store.base.failure = CacheError(.storeUnavailable, reason: "the disk is away")
    #expect(try await fixture.manager.load(fixture.url).source == .network)
    #expect(Array(events.prefix(2)) == ["started", "readFailed"])
    #expect(events.filter { $0 == "readFailed" }.count == 1)
  }

  @Test("a load with a timeout can end before its lookup does")
  func timeout() async throws {
    let gate = store.hold(.look, all: true)
    let slow = load(RequestOptions { $0.timeout = .seconds(5) })
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    let error = await #expect(throws: CacheError.self) { try await slow.value.get() }
    #expect(error?.code == .timedOut)
    gate.open()
    await fixture.manager.close()
  }

  @Test("closing waits for a lookup, and the load continues with the origin if it finds nothing", arguments: [true, false])
  func closing(isStored: Bool) async throws {
    if isStored { _ = try await fixture.manager.load(fixture.url) }
    fixture.restart()
    let gate = store.hold(.look)
    let slow = load()
    await gate.arrived()
    let isClosed = Lock(false)
    let closing = Task {
      await fixture.manager.close()
      isClosed.withLock { $0 = true }
    }
    try await Polling.until { fixture.manager.core.flights.isClosed }
    let late = await #expect(throws: CacheError.self) { try await load().value.get() }
    #expect(late?.code == .closed)
    #expect(!isClosed.withLock { $0 })
    gate.open()
    await closing.value
    #expect(events.last == "finished")
    #expect(try await slow.value.get().source == (isStored ? .disk : .network))
  }

  @Test("closing with a time limit does not wait for a lookup, and a load that finds nothing after it ends")
  func closingWithin() async throws {
    let gate = store.hold(.look)
    let slow = load()
    await gate.arrived()
    let closing = Task { await fixture.manager.close(within: .seconds(5)) }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    #expect(await closing.value == false)
    gate.open()
    let error = await #expect(throws: CacheError.self) { try await slow.value.get() }
    #expect(error?.code == .closed)
    #expect(fixture.network.requests.isEmpty)
    await fixture.manager.close()
  }
}
