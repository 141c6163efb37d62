import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Request modifiers")
struct ModifierTests {
  private let network = ScriptedDownloader()
  private let url: URL

  init() throws { url = try Ask.url("https://e.com/a") }

  @Test("change what is sent, at once or after a while")
  func change() async throws {
    network.serve(url) { _ in .ok("x") }
    let downloader = network.modified { $0.head.headerFields[.userAgent] = "App/1" }
      .modified { request in
        await Task.yield()
        request.head.headerFields[.accept] = "image/png"
      }
    _ = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url)))
    #expect(network.requests.first?.headerFields[.userAgent] == "App/1")
    #expect(network.requests.first?.headerFields[.accept] == "image/png")
  }

  struct Locked: Error {}

  @Test("that refuse end the load, and nothing is sent")
  func refuse() async throws {
    let refusing = network.modified { _ in throw Locked() }
    let error = await failure { _ = try await refusing.download(DownloadRequest(head: HTTPRequest(resource: url))) }
    #expect(error?.code == .refused)
    #expect(error?.underlying is Locked)
    let own = network.modified { _ in throw CacheError(.closed, reason: "signed out") }
    #expect(await failure { _ = try await own.download(DownloadRequest(head: HTTPRequest(resource: url))) }?.code == .closed)
    let leaving = network.modified { _ in throw CancellationError() }
    #expect(
      await failure { _ = try await leaving.download(DownloadRequest(head: HTTPRequest(resource: url))) }?.isCancellation == true)
    #expect(network.requests.isEmpty)

    let manager = ResourceManager(.init { $0.downloader = refusing })
    #expect(await failure { _ = try await manager.load(url) }?.code == .refused)
    #expect(network.requests.isEmpty)
  }

  @Test("that are waiting when the load is cancelled end it, and nothing is sent")
  func cancelled() async throws {
    let gate = Gate()
    let downloader = network.modified { _ in await gate.pass() }
    let task = Task { try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))) }
    await gate.arrived()
    task.cancel()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
    #expect(network.requests.isEmpty)
  }

  @Test(
    "that add credentials make the answer nobody else's",
    arguments: [
      (HTTPField.Name.authorization, "", "no-store"), (.cookie, "", "no-store"), (.proxyAuthorization, "", "no-store"),
      (.authorization, "theirs", "no-store"), (.authorization, "ours", "max-age=60"), (.accept, "", "max-age=60"),
    ])
  func credentials(_ name: HTTPField.Name, _ before: String, _ expected: String) async throws {
    network.serve(url) { _ in .ok("x", cacheControl: "max-age=60") }
    let downloader = network.modified { $0.head.headerFields[name] = "ours" }
    var head = try HTTPRequest(resource: url)
    if !before.isEmpty { head.headerFields[name] = before }
    let response = try await downloader.download(DownloadRequest(head: head))
    #expect(response.head.headerFields[.cacheControl] == expected)
    #expect(network.requests.first?.headerFields[name] == "ours")
  }

  @Test("that add credentials leave nothing in a cache above")
  func notStored() async throws {
    network.serve(url) { request in
      .ok(request.headerFields[.authorization] ?? "public", fields: [.cacheControl: "max-age=60, must-understand"])
    }
    let token = Lock("one")
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network.modified { request in
      request.head.headerFields[.authorization] = token.withLock { $0 }
    }
    configuration.memory = MemoryCache()
    configuration.validator = ETagValidator()
    let manager = ResourceManager(configuration)
    #expect(try await manager.load(url).data == Data("one".utf8))
    token.withLock { $0 = "two" }
    #expect(try await manager.load(url).data == Data("two".utf8))
  }

  @Test("share downloads by their names")
  func identity() {
    let agent = DownloadModifier(named: "agent") { $0.head.headerFields[.userAgent] = "App/1" }
    #expect(network.modified(by: agent).id == network.modified(by: agent).id)
    #expect(network.modified(named: "a") { _ in }.id == network.modified(named: "a") { _ in }.id)
    #expect(network.modified(named: "a") { _ in }.id != network.modified(named: "b") { _ in }.id)
    #expect(network.modified { _ in }.id != network.modified { _ in }.id)
    let unnamed = DownloadModifier { _ in }
    #expect(network.modified(by: unnamed).id == network.modified(by: unnamed).id)
  }
}
