import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import CacheManager

/// Tests with a memory budget of 400,000 bytes, with which 16 loads of one host send their requests at the same time.
@Suite("The results of lookups while loads wait for their turn")
struct WaitingLoadTests {
  @Test("stale bodies that lookups have read do not wait in memory together with their loads")
  func waitingBodies() async throws {
    let (fixture, store) = try ManagerFixture.held(boundsLookupTime: true) {
      $0.memory = nil
      $0.memoryBudget = 400_000
    }
    let (manager, gate) = (fixture.manager, Gate(isOpen: true))
    let urls = try (0..<60).map { try fixture.url("/\($0)") }
    for url in urls {
      fixture.network.serve(url) { request in
        request.headerFields[.ifNoneMatch] == nil
          ? .ok("a body that is longer than those that are part of Data", etag: "\"1\"", cacheControl: "max-age=1")
          : .notModified(etag: "\"1\"", cacheControl: "max-age=60").held(by: gate)
      }
      _ = try await manager.load(url)
    }
    fixture.clock.advance(by: .seconds(2))
    gate.close()

    let budget = manager.core.environment.budget
    var loads: [Task<ResourceSource, any Error>] = []
    for url in urls {
      let (requests, waiting) = (fixture.network.requests.count, budget.slots.waiting)
      loads.append(Task { try await manager.load(url).source })
      try await Polling.until { fixture.network.requests.count > requests || budget.slots.waiting > waiting }
    }
    let sent = urls.count - budget.slots.waiting
    #expect(sent < 20)
    // The first load that waits could not know that it would.
    #expect(store.bodiesInMemory <= sent + 1)

    gate.open()
    for load in loads { #expect(try await load.value == .revalidated) }
    try await Polling.until { store.bodiesInMemory == 0 }
  }

  @Test("a load that waits keeps a stale body that memory evicts meanwhile")
  func waitingWithoutStore() async throws {
    let fixture = try ManagerFixture {
      $0.store = nil
      $0.memoryBudget = 400_000
    }
    let (manager, gate) = (fixture.manager, Gate(isOpen: true))
    let urls = try (0..<30).map { try fixture.url("/\($0)") }
    for url in urls {
      fixture.network.serve(url) { request in
        request.headerFields[.ifNoneMatch] == nil
          ? .ok("stale", etag: "\"1\"", cacheControl: "max-age=1") : .failure(.connectionLost).held(by: gate)
      }
      _ = try await manager.load(url)
    }
    fixture.clock.advance(by: .seconds(2))
    gate.close()
    let budget = manager.core.environment.budget
    let loads = urls.map { url in Task { try await manager.load(url).text } }
    try await Polling.until { fixture.network.conditional + budget.slots.waiting == urls.count }
    #expect(budget.slots.waiting > 0)

    fixture.memory.removeAll()
    gate.open()

    for load in loads { #expect(try await load.value == "stale") }
  }

  @Test("a load inside another one uses its lookup without waiting for memory")
  func nestedLookup() throws {
    let load = try ResolvedRequest(ResourceRequest("https://example.com/"), ManagerFixture().manager.core)
    let cache = TieredCache(load, resource: "https://example.com/")
    let nested = load.with { $0.isNested = true }
    #expect(Fetch(nested, LoadPriority(), cache).cache.request.isNested)
  }
}
