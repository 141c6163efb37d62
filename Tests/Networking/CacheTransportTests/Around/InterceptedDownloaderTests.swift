import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Intercepted downloaders")
struct InterceptedDownloaderTests {
  private let network = ScriptedDownloader()
  private let url: URL

  init() throws { url = try TestRequest.url("https://e.com/a") }

  @Test("an interceptor changes the request before it is sent, with or without waiting")
  func change() async throws {
    network.serve(url) { _ in .ok("x") }
    let downloader = network.sending { $0.head.headerFields[.userAgent] = "App/1" }
      .sending { request in
        await Task.yield()
        request.head.headerFields[.accept] = "image/png"
      }
    _ = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url)))
    #expect(network.requests.first?.headerFields[.userAgent] == "App/1")
    #expect(network.requests.first?.headerFields[.accept] == "image/png")
  }

  struct Locked: Error {}

  @Test("a refusal ends the load without a request")
  func refuse() async throws {
    let refusing = network.sending { _ in throw Locked() }
    let error = await failure { _ = try await refusing.download(DownloadRequest(head: HTTPRequest(resource: url))) }
    #expect(error?.code == .refused)
    #expect(error?.underlying is Locked)
    let own = network.sending { _ in throw CacheError(.closed, reason: "signed out") }
    #expect(await failure { _ = try await own.download(DownloadRequest(head: HTTPRequest(resource: url))) }?.code == .closed)
    let leaving = network.sending { _ in throw CancellationError() }
    #expect(
      await failure { _ = try await leaving.download(DownloadRequest(head: HTTPRequest(resource: url))) }?.isCancellation == true)
    #expect(network.requests.isEmpty)

    let manager = ResourceManager(.init { $0.downloader = refusing })
    #expect(await failure { _ = try await manager.load(url) }?.code == .refused)
    #expect(network.requests.isEmpty)
  }

  @Test("a load that is cancelled during its interceptor ends without a request")
  func cancelled() async throws {
    let gate = Gate()
    let downloader = network.sending { _ in await gate.pass() }
    let task = Task { try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))) }
    await gate.arrived()
    task.cancel()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
    #expect(network.requests.isEmpty)
  }

  @Test(
    "a response to credentials of an interceptor is not stored for other users",
    arguments: [
      (HTTPField.Name.authorization, "", "no-store"), (.cookie, "", "no-store"), (.proxyAuthorization, "", "no-store"),
      (.authorization, "theirs", "no-store"), (.authorization, "ours", "max-age=60"), (.accept, "", "max-age=60"),
    ])
  func credentials(_ name: HTTPField.Name, _ before: String, _ expected: String) async throws {
    network.serve(url) { _ in .ok("x", cacheControl: "max-age=60") }
    let downloader = network.sending { $0.head.headerFields[name] = "ours" }
    var head = try HTTPRequest(resource: url)
    if !before.isEmpty { head.headerFields[name] = before }
    let response = try await downloader.download(DownloadRequest(head: head))
    #expect(response.head.headerFields[.cacheControl] == expected)
    #expect(network.requests.first?.headerFields[name] == "ours")
  }

  @Test("a cache above stores no response to credentials of an interceptor")
  func notStored() async throws {
    network.serve(url) { request in
      .ok(request.headerFields[.authorization] ?? "public", fields: [.cacheControl: "max-age=60, must-understand"])
    }
    let token = Lock("one")
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network.sending { request in
      request.head.headerFields[.authorization] = token.withLock { $0 }
    }
    configuration.memory = MemoryCache()
    configuration.validator = ETagValidator()
    let manager = ResourceManager(configuration)
    #expect(try await manager.load(url).data == Data("one".utf8))
    token.withLock { $0 = "two" }
    #expect(try await manager.load(url).data == Data("two".utf8))
  }

  @Test("an interceptor sees the target of each redirect and can set a credential for one host only")
  func redirected() async throws {
    let elsewhere = try TestRequest.url("https://other.example/b")
    network.serve(url) { _ in .redirect(to: "https://other.example/b") }
    network.serve(elsewhere) { _ in .ok("there") }
    let manager = ResourceManager(
      .init {
        $0.downloader = network.sending { request in
          request.head.headerFields[.userAgent] = "App/1"
          guard request.head.authority == "e.com" else { return }
          request.head.headerFields[.authorization] = "secret"
        }
      })
    #expect(try await manager.load(url).data == Data("there".utf8))
    #expect(network.requests.map { $0.headerFields[.userAgent] } == ["App/1", "App/1"])
    #expect(network.requests.map { $0.headerFields[.authorization] } == ["secret", nil])
  }

  @Test("downloaders with equal interceptors have equal identities")
  func identity() {
    func named(_ name: String) -> RequestInterceptor {
      RequestInterceptor(id: ComponentID(RequestInterceptor.self, parameters: name), willSend: { _ in })
    }
    #expect(network.intercepted(by: named("a")).id == network.intercepted(by: named("a")).id)
    #expect(network.intercepted(by: named("a")).id != network.intercepted(by: named("b")).id)
    let own = RequestInterceptor(willSend: { _ in })
    #expect(network.intercepted(by: own).id == network.intercepted(by: own).id)
    #expect(network.intercepted(by: own).id != network.intercepted(by: RequestInterceptor(willSend: { _ in })).id)
  }
}

extension Downloader {
  fileprivate func sending(_ change: @escaping @Sendable (inout DownloadRequest) async throws -> Void) -> some Downloader {
    intercepted(by: RequestInterceptor(willSend: change))
  }
}
