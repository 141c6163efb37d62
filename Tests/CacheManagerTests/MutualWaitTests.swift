import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("A load and a prefetch to disk that begin at the same moment")
struct MutualWaitTests {
  @Test("one waits for the other, not both for each other", .timeLimit(.minutes(30)))
  func bothAtOnce() async throws {
    let house = try House()
    house.network.serve(house.url) { _ in .ok("picture", cacheControl: "max-age=60") }
    let core = house.manager.core
    let load = try ResolvedLoad(ResourceRequest(house.url), house.manager.configuration, core)
    let (loading, storing) = (LoadTask(priority: LoadPriority()), LoadTask(priority: LoadPriority(.low)))

    let result: Result<Fetched, CacheError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Flight<Fetched>.Waiter(
          post: { _ in }, deliver: {}, end: { continuation.resume(returning: $0) }, askAlone: {})
        _ = core.flights.join(FlightID(request: FlightKey(load)), load, alone: false, task: loading, waiter: waiter) { flight in
          // The load can be found from here on, and has not looked for others yet.
          core.startStoring(load, storing, .init(event: nil, end: { _ in }, endsWithStale: true)) { _ in }
          flight.start { flight in
            await core.fetch(load, in: flight.number, flight.priority) { flight.report($0) }
          }
        }
      }
    } onCancel: {
      loading.cancel()
      storing.cancel()
    }
    await house.manager.close()

    #expect(try result.get().data == Data("picture".utf8))
    #expect(house.network.requests.count == 1 && house.disk.keys.count == 1)
  }
}
