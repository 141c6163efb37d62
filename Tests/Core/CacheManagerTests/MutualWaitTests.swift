import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("A load and a simultaneous prefetch to disk")
struct MutualWaitTests {
  @Test("only one of the two waits for the other", .timeLimit(.minutes(30)))
  func bothAtOnce() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("image", cacheControl: "max-age=60") }
    let core = fixture.manager.core
    let load = try ResolvedRequest(ResourceRequest(fixture.url), core)
    let (waiter, _) = try #require(core.flights.join(.bytes(CoalescingKey(load)), load, WaiterNeeds<Exchange>()))
    // From now on other loads can find this one, but it has not looked for other loads yet.
    let storing = Task.begun(priority: .medium) {
      let form = StoreForm(core: core) { _ in }
      _ = await core.outcome(of: load, form)
    }
    let flight = waiter.flight
    flight.start {
      flight.end(await core.fetch(load, in: flight.number, flight.priority) { flight.report($0) })
    }
    let ending = await waiter.ending()
    await storing.value
    await fixture.manager.close()

    guard case .output(let outcome) = ending else { return #expect(Bool(false), "the load failed") }
    #expect(outcome.data == Data("image".utf8))
    #expect(fixture.network.requests.count == 1 && fixture.disk.keys.count == 1)
  }

  @Test("a stale response that a load gets from a prefetch to disk holds no memory while the prefetch continues")
  func staleFromPrefetch() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok(Data(count: 100_000), cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    fixture.clock.advance(by: .seconds(5))
    let prefetch = Task { await fixture.manager.prefetch([fixture.url], into: .disk) }
    await gate.arrived()

    #expect(try await fixture.manager.load(fixture.url).data.count == 100_000)
    #expect(fixture.manager.memoryUse.inUse == 0)
    gate.open()
    #expect(await prefetch.value.failed.isEmpty)
    await fixture.manager.close()
  }

  @Test("a load whose prefetch to disk fails uses the stale response in memory, and sends no request of its own")
  func staleInMemory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=1, stale-if-error=600"))
    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.writes = .memory })
    fixture.clock.advance(by: .seconds(5))
    let core = fixture.manager.core
    func request(_ level: LoadPriority.Level) throws -> ResolvedRequest {
      try ResolvedRequest(ResourceRequest(fixture.url, options: RequestOptions { $0.priority = level }), core)
    }
    let (prefetched, load) = (try request(.low), try request(.veryHigh))
    let (prefetch, _) = try #require(core.flights.join(.store(prefetched.resourceKey), prefetched, WaiterNeeds<Exchange>()))
    let loaded = Task {
      await core.fetch(load, in: prefetch.flight.number + 1, LoadPriority(.veryHigh)) { _ in }
    }
    prefetch.flight.start {
      // The prefetch becomes as urgent as the load when the load waits for it.
      try? await Polling.until { prefetch.flight.priority.level == .veryHigh }
      prefetch.flight.end(.failure(CacheError(.connectionLost, reason: "scripted")))
    }
    _ = await prefetch.ending()

    let exchange = try await loaded.value.get()
    #expect(exchange.data == Data("old".utf8) && exchange.fallbackReason?.code == .connectionLost)
    #expect(fixture.network.requests.count == 1)
  }
}
