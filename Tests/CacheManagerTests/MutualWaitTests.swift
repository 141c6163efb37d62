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
      let form: LoadCoordinator.Form<Exchange, Void> = core.storeForm { _ in }
      _ = await core.outcome(of: load, form)
    }
    waiter.flight.start { flight in
      await core.fetch(load, in: flight.number, flight.priority) { flight.report($0) }
    }
    let ending = await waiter.ending()
    await storing.value
    await fixture.manager.close()

    guard case .output(let outcome) = ending else { return #expect(Bool(false), "the load failed") }
    #expect(outcome.data == Data("image".utf8))
    #expect(fixture.network.requests.count == 1 && fixture.disk.keys.count == 1)
  }
}
