import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

/// Tests with a memory budget of which streams may use 1,376,256 bytes.
@Suite("Slow readers of responses")
struct SlowReaderTests {
  private static let large = String(decoding: (0..<400_000).map { UInt8(97 + $0 % 26) }, as: UTF8.self)
  private static let small = String(repeating: "0123456789", count: 100)

  private func fixture(
    _ kind: StorageKind = .memory, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }
  ) throws -> ManagerFixture {
    try ManagerFixture(kind) {
      $0.memoryBudget = 4 << 20
      $0.maximumBodyInMemory = 500_000
      change(&$0)
    }
  }

  private func response(_ text: String, by size: Int) -> ScriptedResponse {
    .ok(text, cacheControl: "max-age=60").chunked(by: size)
  }

  private func rest(of body: ResourceBody) async throws -> String {
    var data = Data()
    while let chunk = try await body.source.next() { data.append(chunk) }
    return String(decoding: data, as: UTF8.self)
  }

  private func expectNothingHeld(_ fixture: ManagerFixture) async throws {
    try await Polling.until { fixture.manager.memoryUse.inUse == 0 }
  }

  @Test("bodies for which the memory budget has no room stream without being collected", arguments: [true, false])
  func bounded(statesLength: Bool) async throws {
    let fixture = try fixture()
    var bodies: [ResourceBody] = []
    for number in 0..<20 {
      let response = response(Self.large, by: 100_000)
      fixture.network.respond(to: try fixture.url("/\(number)"), with: statesLength ? response : response.withoutLength())
      bodies.append(try await fixture.exchange(path: "/\(number)").body)
    }
    for _ in 0..<3 { for body in bodies { #expect(try await body.source.next()?.count == 100_000) } }
    #expect(fixture.manager.memoryUse.inUse > 0 && fixture.manager.memoryUse.peak <= 1_376_256)

    for body in bodies { #expect(try await rest(of: body) == String(Self.large.dropFirst(300_000))) }
    #expect(fixture.manager.memoryUse.peak <= 1_376_256)
    bodies = []
    try await expectNothingHeld(fixture)
    #expect(fixture.memory.count > 0)
  }

  @Test("readers that leave return the memory of their bodies")
  func leaving() async throws {
    let fixture = try fixture()
    for number in 0..<20 {
      fixture.network.respond(to: try fixture.url("/\(number)"), with: response(Self.large, by: 100_000))
      let body = try await fixture.exchange(path: "/\(number)").body
      _ = try await body.source.next()
      #expect(fixture.manager.memoryUse.inUse == 400_000)
      body.source.cancel()
    }
    try await expectNothingHeld(fixture)
  }

  @Test("the bytes that a slow reader has not read are counted, once, until it has left")
  func lagging() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: response(Self.large, by: 100_000))
    var slow: ResourceBody? = try await fixture.exchange().body
    #expect(try await fixture.send().text == Self.large)
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
    #expect(fixture.manager.memoryUse.inUse == 400_000)
    #expect(try await rest(of: #require(slow)) == Self.large)
    slow = nil
    try await expectNothingHeld(fixture)
  }

  @Test("a body that is not collected is shared", arguments: StorageKind.allCases)
  func full(_ kind: StorageKind) async throws {
    let fixture = try fixture(kind) { $0.memoryBudget = 400_000 }
    fixture.network.serve(fixture.url) { _ in response(Self.large, by: 100_000) }
    let slow = try await fixture.exchange().body
    #expect(try await fixture.send().text == Self.large)
    #expect(try await rest(of: slow) == Self.large)
    #expect(fixture.network.requests.count == 1)
    #expect(fixture.manager.memoryUse.peak == 0)
  }

  @Test("a request for a body of unknown length does not wait for a first reader that does not read")
  func unknownLength() async throws {
    let fixture = try fixture { $0.maximumBodyInMemory = 2_000 }
    fixture.network.respond(to: fixture.url, with: response(Self.small, by: 100).withoutLength())
    let slow = try await fixture.exchange().body
    let follower = try await fixture.send()
    #expect(follower.text == Self.small && follower.cache == ManagerFixture.collapsed)
    #expect(try await rest(of: slow) == Self.small)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a body that outgrows memory is shared, and its readers get every byte")
  func outgrown() async throws {
    let fixture = try fixture { $0.maximumBodyInMemory = 2_000 }
    let text = String(repeating: Self.small, count: 3)
    fixture.network.respond(to: fixture.url, with: response(text, by: 100).withoutLength())
    let slow = try await fixture.exchange().body
    let followers = [try await fixture.exchange().body, try await fixture.exchange().body]
    for body in followers { #expect(try await rest(of: body) == text) }
    #expect(fixture.manager.memoryUse.inUse == 0)
    #expect(try await rest(of: slow) == text)
    try fixture.network.verify()
  }

  @Test("a request for a body of unknown length reads it as it arrives")
  func slowOrigin() async throws {
    let fixture = try fixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: response(Self.small, by: 100).withoutLength().bodyHeld(by: gate))
    let first = try await fixture.exchange().body
    let follower = try await fixture.exchange()
    #expect(follower.body.length == nil && follower.status.description == ManagerFixture.collapsed)
    gate.letThrough(1)
    #expect(try await follower.body.source.next()?.count == 100)
    gate.open()
    #expect(try await rest(of: follower.body) == String(Self.small.dropFirst(100)))
    #expect(try await rest(of: first) == Self.small)
    try fixture.network.verify()
  }

  @Test("a large range of a response in memory is delivered in pieces")
  func range() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: response(Self.large, by: 100_000))
    _ = try await fixture.send()
    let reply = try await fixture.exchange([.range: "bytes=10000-389999"])
    #expect(reply.head.status == .partialContent && reply.body.length == 380_000)
    let first = try #require(try await reply.body.source.next())
    #expect(first.count == 256 << 10 && first.startIndex == 0)
    let text = String(decoding: first, as: UTF8.self) + (try await rest(of: reply.body))
    #expect(text == String(Self.large.dropFirst(10_000).prefix(380_000)))
  }

  @Test("a body from the disk is collected only if the memory budget has room, and counts until its reader has left")
  func disk() async throws {
    for budget in [4 << 20, 400_000] {
      let disk = try TemporaryDisk()
      let fixture = try fixture(.everywhere) {
        $0.store = disk.cache
        $0.memoryBudget = budget
      }
      fixture.network.respond(to: fixture.url, with: response(Self.large, by: 100_000))
      _ = try await fixture.send()
      fixture.restart()
      let reply = try await fixture.exchange()
      #expect(reply.source == .disk && reply.body.length == 400_000)
      #expect(fixture.manager.memoryUse.inUse == (budget > 400_000 ? 400_000 : 0))
      #expect(try await rest(of: reply.body) == Self.large)
      reply.body.source.cancel()
      try await expectNothingHeld(fixture)
    }
  }
}
