import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// What makes everything outdated that was asked for before.
enum Outdating: CaseIterable, Sendable { case unsafeRequest, unsafeLoad, otherTarget, storedPost, removal, clearing }

extension ManagerFixture {
  fileprivate func outdate(by means: Outdating) async throws {
    switch means {
    case .unsafeRequest:
      _ = try await ask([:], .put, sending: "x")
    case .unsafeLoad:
      _ = try await manager.load(ResourceRequest(url, method: .delete))
    case .otherTarget:
      network.answer(try url("/pictures"), .response(.created, fields: [.location: "/picture.png"]))
      _ = try await ask([:], .post, path: "/pictures", sending: "x")
    case .storedPost:
      network.answer(url, .ok("new", cacheControl: "max-age=600", fields: [.contentLocation: url.absoluteString]))
      _ = try await ask([:], .post, sending: "x")
    case .removal: try await manager.remove(url)
    case .clearing: try await manager.clear()
    }
  }
}

@Suite("What is under way when it is outdated")
struct RemovalRaceTests {
  /// Answers a GET's head at once and its body behind the gate, all later ones with `new`, and every other method.
  private func fixture(_ gate: Gate) throws -> ManagerFixture {
    let fixture = try ManagerFixture()
    fixture.network.answer(fixture.url, .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate))
    fixture.network.serve(fixture.url) { $0.method == .get ? .ok("new", cacheControl: "max-age=600") : .response(.noContent) }
    return fixture
  }

  @Test(
    "an older answer is handed to who asked for it, not stored (RFC 9111 §4.4), and not joined", arguments: Outdating.allCases)
  func load(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    try await fixture.outdate(by: means)

    let next = Task { try await fixture.manager.load(fixture.url).text }
    // Who had joined would wait behind the gate.
    #expect(try await next.value == "new")
    gate.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("so is an exchange's", arguments: Outdating.allCases)
  func exchange(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    try await fixture.outdate(by: means)
    #expect(try await fixture.ask().text == "new")
    gate.open()
    #expect(try await late.body.collect() == Data("old".utf8))
    #expect(try await fixture.ask().text == "new")
    fixture.restart()
    #expect(try await fixture.ask().text == "new")
  }

  @Test(
    "where nothing new was asked for meanwhile, nothing is stored", arguments: Outdating.allCases.filter { $0 != .storedPost })
  func nothing(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    try await fixture.outdate(by: means)
    gate.open()
    #expect(try await late.body.collect() == Data("old".utf8))
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }

  @Test("other resources' answers are stored as ever, and so is one that lost a layer alone")
  func others() async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    let other = try fixture.url("/other")
    fixture.network.answer(other, .response(.noContent))
    _ = try await fixture.ask([:], .put, path: "/other", sending: "x")
    try await fixture.manager.remove(other)
    try await fixture.manager.remove(fixture.url, from: .memory)
    try await fixture.manager.clear(.memory)
    gate.open()
    _ = try await late.body.collect()
    #expect(try await fixture.ask().cache == "Etagere;hit;ttl=600")
  }

  @Test("an unsafe request that failed changes nothing")
  func failed() async throws {
    let gate = Gate()
    let fixture = try ManagerFixture()
    fixture.network.answer(
      fixture.url, .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .response(.internalServerError))
    let late = try await fixture.exchange()
    _ = try await fixture.ask([:], .put, sending: "x")
    gate.open()
    _ = try await late.body.collect()
    #expect(try await fixture.ask().text == "old")
  }

  @Test("after more invalidations than a manager remembers, an answer from before them is not stored")
  func many() async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    for index in 0..<2_000 { try await fixture.manager.remove(try fixture.url("/\(index)")) }
    gate.open()
    _ = try await late.body.collect()
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }
}
