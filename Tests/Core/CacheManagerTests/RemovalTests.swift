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
  /// A load of a URL, which may be redirected.
  enum Kind: CaseIterable, Sendable { case bytes, value, valueOfRunningLoad }

  /// A request or a removal after which no load may join one that was redirected to the target.
  static let means: [Removing] = [.remove, .purge, .clear, .unsafeRequest]

  private static let text = ResourceTransform<String>(id: "text", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
    String(decoding: try await body.collect(), as: UTF8.self)
  }

  private static func load(_ url: URL, _ kind: Kind, _ manager: ResourceManager) async throws -> String {
    switch kind {
    case .bytes: try await manager.load(url).text
    case .value, .valueOfRunningLoad: try await manager.load(url, as: text).value
    }
  }

  @Test(
    "a load after the removal does not join an earlier one that was redirected to the target", arguments: means, Kind.allCases)
  func redirected(_ means: Removing, _ kind: Kind) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let target = try fixture.url("/moved.png")
    let isReplaced = Lock(false)
    fixture.network.serve(fixture.url) { _ in .response(.found, fields: [.location: "/moved.png"]) }
    fixture.network.serve(target) { request in
      guard request.method == .get else { return .response(.noContent) }
      let isFirst = isReplaced.withLock { isReplaced in
        defer { isReplaced = true }
        return !isReplaced
      }
      return isFirst ? .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate) : .ok("new", cacheControl: "max-age=600")
    }
    let late = Task { try await Self.load(fixture.url, kind == .valueOfRunningLoad ? .bytes : kind, fixture.manager) }
    await gate.arrived()
    var value: Task<String, any Error>?
    if kind == .valueOfRunningLoad {
      value = Task { try await Self.load(fixture.url, kind, fixture.manager) }
      await fixture.observer.joined()
    }

    switch means {
    case .remove: try await fixture.manager.remove(target)
    case .clear: try await fixture.manager.clear()
    case .purge: try await fixture.manager.purge(.everything)
    case .unsafeRequest: _ = try await fixture.send([:], .put, path: "/moved.png", sending: "new")
    }

    let next = Task { try await Self.load(fixture.url, kind, fixture.manager) }
    // A load that had joined would wait behind the gate, and send nothing.
    try await Polling.until { fixture.network.requests(for: target).filter { $0.method == .get }.count == 2 }
    #expect(try await next.value == "new")
    gate.open()
    #expect(try await late.value == "old")
    if let value { #expect(try await value.value == "old") }
    #expect(try await fixture.manager.load(target).text == "new")
  }

  @Test("a load after a removal does not join an earlier one that has requested an alternative source")
  func alternative() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let mirror = try fixture.url("/mirror.png")
    let options = RequestOptions { $0.alternatives = [.mirror(mirror)] }
    fixture.network.serve(fixture.url) { _ in .response(.notFound) }
    fixture.network.respond(
      to: mirror, with: .ok("old", cacheControl: "no-store").bodyHeld(by: gate), .ok("new", cacheControl: "no-store"))
    let late = Task { try await fixture.manager.load(fixture.url, options: options).text }
    await gate.arrived()
    try await fixture.manager.remove(mirror)

    #expect(try await fixture.manager.load(fixture.url, options: options).text == "new")
    gate.open()
    #expect(try await late.value == "old")
  }

  @Test("a load after the removal of another resource joins a load that no redirect has led elsewhere")
  func unaffected() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("x", cacheControl: "max-age=600").bodyHeld(by: gate))
    let first = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    try await fixture.manager.remove(try fixture.url("/other.png"))

    let second = Task { try await fixture.manager.load(fixture.url).text }
    await fixture.observer.joined()
    gate.open()
    #expect(try await first.value == "x")
    #expect(try await second.value == "x")
    #expect(fixture.network.requests(for: fixture.url).count == 1)
  }
}
