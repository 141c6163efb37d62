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
    let (loading, storing) = (LoadTask(priority: LoadPriority()), LoadTask(priority: LoadPriority(.low)))

    let result: Result<LoadOutcome, CacheError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = CoalescedLoad<LoadOutcome>.Waiter { message in
          if case .end(let result) = message { continuation.resume(returning: result) }
        }
        _ = core.coalescer.join(CoalescedLoadID(request: CoalescingKey(load)), load, alone: false, task: loading, waiter: waiter)
        { coalesced in
          // From now on other loads can find this one, but it has not looked for other loads yet.
          core.startStoring(load, storing, .init(event: nil, end: { _ in }, endsWithStale: true)) { _ in }
          coalesced.start { coalesced in
            await core.fetch(load, in: coalesced.number, coalesced.priority) { coalesced.report($0) }
          }
        }
      }
    } onCancel: {
      loading.cancel()
      storing.cancel()
    }
    await fixture.manager.close()

    #expect(try result.get().data == Data("image".utf8))
    #expect(fixture.network.requests.count == 1 && fixture.disk.keys.count == 1)
  }
}
