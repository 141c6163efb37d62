import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("What a durable store does behind a load's back")
struct StorePatienceTests {
  private let house: House
  private let store: HeldStore

  init() throws { (house, store) = try House.held() }

  @Test(
    "what was purged while it was stored does not stay in memory, where its removal is late and somebody finds it before",
    .timeLimit(.minutes(1)))
  func purged() async throws {
    let commit = store.hold(.commit)
    house.network.answer(house.url, .ok("old", cacheControl: "max-age=600"))
    let first = Task { try await house.manager.load(house.url).text }
    await commit.arrived()
    try await house.manager.purge(.url(house.url))
    let removal = store.hold(.removal)
    commit.open()
    await removal.arrived()
    #expect(try await house.whileTimePasses { try await first.value } == "old")
    try await Turns.until {
      if house.clock.pendingSleeps > 0 { house.clock.advance(by: .milliseconds(50)) }
      return house.clock.pendingSleeps == 0
    }
    for _ in 0..<1_000 { await Task.yield() }

    #expect(try await house.manager.load(house.url).source == .disk)
    removal.open()
    await house.manager.close()

    #expect(store.base.keys.isEmpty)
    #expect(house.memory.count == 0)
  }
}
