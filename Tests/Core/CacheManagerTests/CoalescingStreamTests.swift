import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Request coalescing with slow responses")
struct CoalescingStreamTests {
  private static let text = String(repeating: "0123456789", count: 100)

  private func fixture(_ kind: StorageKind) throws -> ManagerFixture {
    try ManagerFixture(kind) { $0.maximumBodyInMemory = 2_000 }
  }

  private func response(_ gate: Gate) -> ScriptedResponse {
    .ok(Self.text, cacheControl: "max-age=60").chunked(by: 100).bodyHeld(by: gate)
  }

  private func rest(of body: ResourceBody) async throws -> String {
    var data = Data()
    while let chunk = try await body.source.next() { data.append(chunk) }
    return String(decoding: data, as: UTF8.self)
  }

  @Test("a request that arrives during the body reads it from the first byte, at its own pace", arguments: StorageKind.allCases)
  func joining(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: response(gate))
    let leader = try await fixture.exchange()
    gate.letThrough(2)
    for _ in 0..<2 { #expect(try await leader.body.source.next()?.count == 100) }

    let follower = try await fixture.exchange()
    #expect(follower.status.description == ManagerFixture.collapsed && follower.body.length == 1_000)
    var seen = 0
    while seen < 200 { seen += try #require(try await follower.body.source.next()).count }
    // The follower needs more bytes than have arrived, and does not wait for the first reader.
    gate.open()
    #expect(try await rest(of: follower.body) == String(Self.text.dropFirst(200)))
    #expect(try await rest(of: leader.body) == String(Self.text.dropFirst(200)))
    #expect(fixture.network.requests.count == 1)
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
  }

  @Test(
    "a first reader that leaves does not affect the other readers, and the transfer ends with the last reader",
    arguments: StorageKind.allCases)
  func leaving(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let gate = Gate(isOpen: true)
    fixture.network.respond(to: fixture.url, with: response(gate), response(gate))
    let leader = try await fixture.exchange()
    _ = try await leader.body.source.next()
    let follower = try await fixture.exchange()
    leader.body.source.cancel()
    await #expect(throws: CacheError.self) { try await leader.body.source.next() }
    #expect(try await rest(of: follower.body) == Self.text)
    #expect(try await fixture.send().text == Self.text)

    try await fixture.manager.purge(.everything)
    let bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
    for body in bodies { _ = try await body.source.next() }
    bodies[0].source.cancel()
    #expect(fixture.network.cancelledBodies == 0)
    bodies[1].source.cancel()
    #expect(fixture.network.cancelledBodies == 1 && fixture.disk.keys.isEmpty && fixture.memory.count == 0)
  }

  @Test(
    "a first reader that is cancelled while it waits for bytes does not affect the other readers",
    arguments: StorageKind.allCases)
  func cancelled(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: response(gate))
    let leader = try await fixture.exchange()
    let follower = try await fixture.exchange()
    let reading = Task { try await leader.body.source.next() }
    await gate.arrived()
    reading.cancel()
    await #expect(throws: CacheError.self) { try await reading.value }
    gate.open()
    #expect(try await rest(of: follower.body) == Self.text)
    try fixture.network.verify()
  }

  @Test("a request that joins a single waiting reader is sent again if that reader is cancelled", arguments: StorageKind.allCases)
  func cancelledAlone(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: response(gate), response(Gate(isOpen: true)))
    let leader = try await fixture.exchange()
    let reading = Task { try await leader.body.source.next() }
    await gate.arrived()
    let follower = Task { try await fixture.send() }
    await fixture.clock.sleepers(1)
    reading.cancel()
    await #expect(throws: CacheError.self) { try await reading.value }
    #expect(try await follower.value.text == Self.text)
    try fixture.network.verify()
  }

  @Test("a request that has waited for a head or for bytes until the time limit is sent itself", arguments: StorageKind.allCases)
  func stalled(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: response(gate), response(Gate(isOpen: true)))
    let leader = try await fixture.exchange()
    let reading = Task { try await leader.body.source.next() }
    await gate.arrived()
    let follower = Task { try await fixture.send() }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    #expect(try await follower.value.text == Self.text)
    gate.open()
    #expect(try await reading.value?.count == 100)
    try fixture.network.verify()
  }

  @Test(
    "a response that became stale during a slow read does not keep later requests from coalescing",
    arguments: StorageKind.allCases)
  func slowReader(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    let (slow, gate) = (Gate(), Gate())
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=1").bodyHeld(by: slow),
      .ok("new", cacheControl: "max-age=60").held(by: gate)
    )
    let reader = try await fixture.exchange()
    fixture.clock.advance(by: .seconds(2))
    let exchanges = fixture.send(times: 5)
    await fixture.clock.sleepers(4)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == "new" })
    slow.open()
    #expect(try await rest(of: reader.body) == "old")
    #expect(try await fixture.send().text == "new")
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a reader of a large body receives all of it, even if the body is purged before it is complete", arguments: [100, 3_000])
  func purged(chunk: Int) async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.maximumBodyInMemory = 100
    }
    let text = String((0..<30_000).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
    fixture.network.respond(to: fixture.url, with: .ok(text, cacheControl: "max-age=60").chunked(by: chunk), .ok("new"))
    let leader = try await fixture.exchange()
    let follower = try await fixture.exchange()
    try await fixture.manager.purge(.url(fixture.url))
    #expect(try await rest(of: leader.body) == text)
    #expect(try await rest(of: follower.body) == text)
    #expect(try await fixture.send().text == "new")
  }

  @Test("an interrupted body fails for all its readers, and later requests are sent again", arguments: StorageKind.allCases)
  func broken(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind)
    fixture.network.respond(
      to: fixture.url, with: .ok(Self.text, cacheControl: "max-age=60").chunked(by: 100).cut(after: 300),
      .ok("whole", cacheControl: "max-age=60"))
    let bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
    for body in bodies { await #expect(throws: CacheError.self) { try await rest(of: body) } }
    #expect(try await fixture.send().text == "whole")
  }

  @Test("a slow reader gets every byte of a body that is too large for the memory store", arguments: [100, 3_000])
  func large(chunk: Int) async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.maximumBodyInMemory = 100
    }
    let text = String((0..<30_000).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
    fixture.network.respond(to: fixture.url, with: .ok(text, cacheControl: "max-age=60").chunked(by: chunk))
    let leader = try await fixture.exchange()
    let start = try #require(try await leader.body.source.next())
    let follower = try await fixture.exchange()
    #expect(try await rest(of: follower.body) == text)
    #expect(String(decoding: start, as: UTF8.self) + (try await rest(of: leader.body)) == text)
    let again = try await fixture.send()
    #expect(again.text == text && again.source == .disk && again.cache == "Etagere;hit;ttl=60")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a body that turns out too large for every layer is shared by the requests that wait for it")
  func tooLarge() async throws {
    let fixture = try fixture(.memory)
    let text = String(repeating: "x", count: 3_000)
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok(text, cacheControl: "max-age=60").chunked(by: 100).withoutLength().bodyHeld(by: gate))
    let leader = Task { try await fixture.send() }
    await gate.arrived()
    let exchanges = fixture.send(times: 10)
    await fixture.clock.sleepers(10)
    gate.open()
    #expect(try await exchanges.value.allSatisfy { $0.text == text })
    #expect(try await leader.value.text == text)
    try fixture.network.verify()
  }
}
