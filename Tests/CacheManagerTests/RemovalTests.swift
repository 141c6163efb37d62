import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// The ways to remove all stored responses of a resource.
enum Removing: CaseIterable, Sendable { case remove, clear, purge, unsafeRequest }

extension ManagerFixture {
  fileprivate func remove(by means: Removing) async throws {
    switch means {
    case .remove: try await manager.remove(url)
    case .clear: try await manager.clear()
    case .purge: try await manager.purge(.everything)
    case .unsafeRequest: _ = try await send([:], .put, sending: "x")
    }
  }
}

@Suite("Disk reads during a removal")
struct RemovalTests {
  /// Returns a fixture whose stored response is only on disk.
  private func fixture() async throws -> (fixture: ManagerFixture, store: HeldStore) {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.serve(fixture.url) { $0.method == .get ? .ok("old", cacheControl: "max-age=600") : .response(.noContent) }
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    return (fixture, store)
  }

  @Test(
    "a load that reads the disk before the end of a removal brings no response back into memory", arguments: Removing.allCases)
  func before(_ means: Removing) async throws {
    let (fixture, store) = try await fixture()
    let removal = store.hold(.removal)
    let removing = Task { try await fixture.remove(by: means) }
    await removal.arrived()

    // Memory is empty, and the disk still has the response.
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    removal.open()
    try await removing.value

    #expect(fixture.memory.count == 0 && store.base.keys.isEmpty)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
  }

  @Test("a load that reads the disk after a removal brings no response back into memory", arguments: Removing.allCases)
  func afterwards(_ means: Removing) async throws {
    let (fixture, store) = try await fixture()
    let (removal, opening) = (store.hold(.removal), store.hold(.open))
    let removing = Task { try await fixture.remove(by: means) }
    await removal.arrived()
    let late = Task { try await fixture.manager.load(fixture.url) }
    await opening.arrived()
    removal.open()
    try await removing.value
    opening.open()

    #expect(try await late.value.source == .disk)
    #expect(fixture.memory.count == 0 && store.base.keys.isEmpty)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
  }
}

@Suite("Removing the target of a redirect")
struct RedirectRemovalTests {
  @Test("a load after the removal does not join an earlier one that was redirected to the target")
  func redirected() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let target = try fixture.url("/moved.png")
    fixture.network.serve(fixture.url) { _ in .response(.found, fields: [.location: "/moved.png"]) }
    fixture.network.respond(
      to: target, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=600"))
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()

    try await fixture.manager.remove(target)

    let next = Task { try await fixture.manager.load(fixture.url).text }
    // A load that had joined would wait behind the gate, and send nothing.
    try await Turns.until { fixture.network.requests(for: target).count == 2 }
    #expect(try await next.value == "new")
    gate.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(target).text == "new")
    try fixture.network.verify()
  }
}
