import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import GatewayServer

@Suite("Equal requests to the gateway at the same time")
struct CollapsingTests {
  @Test(
    "forty equal requests at the same time are one request to the origin with collapsing, and forty without it",
    arguments: [true, false])
  func forty(collapses: Bool) async throws {
    let (origin, clock) = (try await OriginServer.start(), ManualClock())
    try await GatewayFixture.run(inFrontOf: origin.port, clock: clock) {
      $0.cache = CacheSettings(collapses: collapses)
    } _: { gateway in
      let body = Data(repeating: UInt8(ascii: "x"), count: 100_000)
      for requests in collapses ? [1, 2] : [40] {
        let gate = Gate()
        origin.setRoute(
          "/a", Route(body, etag: "v1", fields: [.cacheControl: "max-age=60"], delivery: OriginDelivery(gate: gate)))
        let asked = Task {
          try await withThrowingTaskGroup(of: RawAnswer.self) { group in
            for _ in 0..<40 { group.addTask { try await gateway.get("/a") } }
            return try await group.reduce(into: []) { $0.append($1) }
          }
        }
        if collapses { await clock.sleepers(39) } else { await gate.arrived(40) }
        gate.open()
        let answers = try await asked.value
        #expect(answers.allSatisfy { $0.status == 200 && $0.body.utf8.count == body.count })
        #expect(answers.filter { $0["cache-status"]?.contains("collapsed") == true }.count == (collapses ? 39 : 0))
        #expect(origin.requests.count == requests)
        clock.advance(by: .seconds(90))
      }
    }
    await origin.stop()
  }
}
