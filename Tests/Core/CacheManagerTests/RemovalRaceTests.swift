import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// The actions that make earlier requests outdated.
enum Outdating: CaseIterable, Sendable { case unsafeRequest, unsafeLoad, otherTarget, storedPost, removal, clearing }

extension ManagerFixture {
  fileprivate func outdate(by means: Outdating) async throws {
    switch means {
    case .unsafeRequest:
      _ = try await send([:], .put, sending: "x")
    case .unsafeLoad:
      _ = try await manager.load(ResourceRequest(url, method: .delete))
    case .otherTarget:
      network.respond(to: try url("/images"), with: .response(.created, fields: [.location: "/image.png"]))
      _ = try await send([:], .post, path: "/images", sending: "x")
    case .storedPost:
      network.respond(to: url, with: .ok("new", cacheControl: "max-age=600", fields: [.contentLocation: url.absoluteString]))
      _ = try await send([:], .post, sending: "x")
    case .removal: try await manager.remove(url)
    case .clearing: try await manager.clear()
    }
  }
}

@Suite("Responses that become outdated while they are loaded")
struct RemovalRaceTests {
  /// Responds to the first GET with a head at once and a body behind the gate. Later GETs get `new`, and other methods succeed.
  private func fixture(_ gate: Gate) throws -> ManagerFixture {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate))
    fixture.network.serve(fixture.url) { $0.method == .get ? .ok("new", cacheControl: "max-age=600") : .response(.noContent) }
    return fixture
  }

  @Test(
    "an older response reaches its own load, is not stored (RFC 9111 §4.4), and is not joined", arguments: Outdating.allCases)
  func load(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    try await fixture.outdate(by: means)

    let next = Task { try await fixture.manager.load(fixture.url).text }
    // A load that had joined would wait behind the gate.
    #expect(try await next.value == "new")
    gate.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("an older response reaches its own HTTP request, and is not stored", arguments: Outdating.allCases)
  func exchange(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    try await fixture.outdate(by: means)
    #expect(try await fixture.send().text == "new")
    gate.open()
    #expect(try await late.body.collect() == Data("old".utf8))
    #expect(try await fixture.send().text == "new")
    fixture.restart()
    #expect(try await fixture.send().text == "new")
  }

  @Test(
    "if no new response was requested in the meantime, nothing is stored",
    arguments: Outdating.allCases.filter { $0 != .storedPost })
  func nothing(_ means: Outdating) async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    try await fixture.outdate(by: means)
    gate.open()
    #expect(try await late.body.collect() == Data("old".utf8))
    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }

  @Test("responses of other resources are stored, and so is a response that was removed from one layer")
  func others() async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    let other = try fixture.url("/other")
    fixture.network.respond(to: other, with: .response(.noContent))
    _ = try await fixture.send([:], .put, path: "/other", sending: "x")
    try await fixture.manager.remove(other)
    try await fixture.manager.remove(fixture.url, from: .memory)
    try await fixture.manager.clear(.memory)
    gate.open()
    _ = try await late.body.collect()
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=600")
  }

  @Test("an unsafe request that failed changes nothing")
  func failed() async throws {
    let gate = Gate()
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .response(.internalServerError))
    let late = try await fixture.exchange()
    _ = try await fixture.send([:], .put, sending: "x")
    gate.open()
    _ = try await late.body.collect()
    #expect(try await fixture.send().text == "old")
  }

  @Test("a response is stored although thousands of other resources were removed while it arrived")
  func manyOthers() async throws {
    let gate = Gate()
    let fixture = try fixture(gate)
    let late = try await fixture.exchange()
    for index in 0..<2_000 {
      let other = try fixture.url("/\(index)")
      if index % 2 == 0 { try await fixture.manager.remove(other) } else { try await fixture.manager.purge(.url(other), .soft) }
    }
    gate.open()
    _ = try await late.body.collect()
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=600")
    #expect(fixture.disk.keys.count == 1)
  }
}
