import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("An HTTP cache after a restart")
struct RespondRestartTests {
  private let url: URL

  init() throws { url = try #require(URL(string: "https://example.com/page")) }

  /// The components of one process: a store, a memory store and a manager with a shared folder.
  private struct Run {
    let disk: DiskCache
    let manager: ResourceManager

    init(_ folder: URL, _ network: ScriptedDownloader, _ clock: ManualClock, secret: DigestSecret? = nil) throws {
      let disk = try DiskCache(folder: folder, configuration: .init(clock: clock))
      self.disk = disk
      let secret = secret ?? disk.digestSecret
      manager = ResourceManager(
        ResourceManager.Configuration {
          $0.downloader = network
          $0.store = disk
          $0.memory = MemoryCache(limits: .init(cost: 1 << 20), clock: clock)
          $0.validator = ETagValidator(digestSecret: secret)
          $0.clock = clock
        })
    }

    func send(_ fields: HTTPFields) async throws -> (head: HTTPResponse, text: String, status: String) {
      let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/page", headerFields: fields)
      let response = try await manager.respond(to: request)
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      return (response.head, text, response.status.description)
    }

    func end() async {
      await manager.close()
      await disk.close()
    }
  }

  @Test("variants, validators, times and ages are restored after a restart")
  func restart() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-restart-\(Revision.random())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let clock = ManualClock()
    let network = ScriptedDownloader(clock: clock)
    let vary: HTTPFields = [.vary: "Accept-Language"]
    network.respond(
      to: url, with: .ok("Hallo", etag: "\"de\"", cacheControl: "max-age=60", fields: vary),
      .ok("hoi", etag: "W/\"nl\"", cacheControl: "max-age=600, stale-while-revalidate=60", fields: vary),
      .ok("secret", etag: "\"s\"", cacheControl: "max-age=600", fields: vary),
      .notModified(etag: "\"de\"", cacheControl: "max-age=600"))
    let (german, dutch): (HTTPFields, HTTPFields) = ([.acceptLanguage: "de"], [.acceptLanguage: "nl"])
    let authorized: HTTPFields = [.acceptLanguage: "de", .authorization: "Bearer token"]

    let first = try Run(folder, network, clock)
    for fields in [german, dutch, authorized] { _ = try await first.send(fields) }
    let before = try await first.disk.variants(of: url.absoluteString).sorted { $0.key.variant < $1.key.variant }
    await first.end()
    clock.advance(by: .seconds(100))

    let second = try Run(folder, network, clock)
    let after = try await second.disk.variants(of: url.absoluteString).sorted { $0.key.variant < $1.key.variant }
    #expect(after.map(\.key) == before.map(\.key) && after.map(\.metadata) == before.map(\.metadata) && after.count == 3)

    let shown = try await second.send(dutch)
    #expect(shown.text == "hoi" && shown.head.headerFields[.age] == "100" && shown.status == "Etagere;hit;ttl=500")
    let own = try await second.send(authorized)
    #expect(own.text == "secret" && own.head.headerFields[.age] == "100")
    #expect(try await second.send([.acceptLanguage: "nl", .ifNoneMatch: "W/\"nl\""]).head.status == .notModified)
    let confirmed = try await second.send(german)
    #expect(confirmed.text == "Hallo" && confirmed.status == "Etagere;fwd=stale;fwd-status=304;ttl=600")
    // Only variants with the same credentials, in this case none, may be revalidated.
    #expect(network.requests.last?.headerFields[.ifNoneMatch]?.contains("\"de\"") == true)
    #expect(network.requests.last?.headerFields[.ifNoneMatch]?.contains("\"s\"") == false)
    await second.end()
    clock.advance(by: .seconds(10))

    let third = try Run(folder, network, clock)
    let fresh = try await third.send(german)
    #expect(fresh.text == "Hallo" && fresh.head.headerFields[.age] == "10" && fresh.status == "Etagere;hit;ttl=590")
    await third.end()
    try network.verify()
  }

  @Test("a soft purge survives a restart, and the purged response is revalidated")
  func purged() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-restart-\(Revision.random())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let clock = ManualClock()
    let network = ScriptedDownloader(clock: clock)
    network.respond(
      to: url, with: .ok("text", etag: "\"1\"", cacheControl: "max-age=600"), .notModified(cacheControl: "max-age=600"))
    let first = try Run(folder, network, clock)
    _ = try await first.send([:])
    #expect(try await first.manager.purge(.prefix(url), .soft) == 1)
    await first.end()

    let second = try Run(folder, network, clock)
    #expect(try await second.send([:]).status == "Etagere;fwd=stale;fwd-status=304;ttl=600")
    await second.end()
    try network.verify()
  }

  @Test("a response that was stored with credentials is not found with another secret")
  func otherSecret() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-restart-\(Revision.random())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let clock = ManualClock()
    let network = ScriptedDownloader(clock: clock)
    network.serve(url) { .ok($0.headerFields[.authorization] ?? "anonymous", cacheControl: "max-age=600") }
    let first = try Run(folder, network, clock)
    #expect(try await first.send([.authorization: "Bearer a"]).text == "Bearer a")
    await first.end()

    let second = try Run(folder, network, clock, secret: .random())
    for token in ["Bearer a", "Bearer b"] {
      let response = try await second.send([.authorization: token])
      #expect(response.text == token && response.status.contains("fwd="))
    }
    await second.end()
  }
}
