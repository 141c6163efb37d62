import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Credentials of the service")
struct ServiceCredentialTests {
  /// A manager whose interceptor signs each request with a new signature.
  private func fixture(_ mode: CacheMode, isService: Bool = true) throws -> ManagerFixture {
    let count = Counter()
    return try ManagerFixture {
      $0.validator = ETagValidator(mode: mode)
      $0.interceptor = RequestInterceptor(
        sendsServiceCredentials: isService, willLookUp: { _ in },
        willSend: { request in
          count.increment()
          request.head.headerFields[.authorization] = "signature \(count.value)"
        })
    }
  }

  @Test(
    "a response to them is stored by its own fields", arguments: [CacheMode.private, .shared], CoalescingCase.Call.allCases)
  func stored(_ mode: CacheMode, _ call: CoalescingCase.Call) async throws {
    let fixture = try fixture(mode)
    fixture.network.serve(fixture.url) {
      $0.headerFields[.ifNoneMatch] == nil ? .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60") : .notModified(etag: "\"1\"")
    }
    func text() async throws -> String {
      if call == .load { return try await fixture.manager.load(fixture.url).text }
      return try await fixture.send().text
    }

    #expect(try await [text(), text()] == ["bytes", "bytes"])
    fixture.clock.advance(by: .seconds(61))
    #expect(try await text() == "bytes")
    #expect(fixture.network.requests.map { $0.headerFields[.authorization] } == ["signature 1", "signature 2"])
    #expect(fixture.network.conditional == 1)
    #expect(fixture.disk.keys.map(\.variant) == [""])
  }

  @Test("a response that the origin forbids to store is not stored", arguments: ["no-store", "private"])
  func forbidden(_ cacheControl: String) async throws {
    let fixture = try fixture(.shared)
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: cacheControl))

    #expect(try await fixture.manager.load(fixture.url).response.headerFields[.cacheControl] == cacheControl)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("a response to a user's own credentials stays that user's")
  func usersCredentials() async throws {
    let fixture = try fixture(.shared)
    fixture.network.respond(to: fixture.url, with: .ok("alice", cacheControl: "max-age=60"), .ok("bob"))

    _ = try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.authorization: "alice"]))

    #expect(fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.load(fixture.url).text == "bob")
  }

  @Test("a response to credentials that are not declared is not stored", arguments: CoalescingCase.Call.allCases)
  func undeclared(_ call: CoalescingCase.Call) async throws {
    let fixture = try fixture(.private, isService: false)
    fixture.network.serve(fixture.url) { _ in .ok("bytes", cacheControl: "max-age=60") }

    if call == .load { _ = try await fixture.manager.load(fixture.url) } else { _ = try await fixture.send() }

    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
  }

  @Test("requests with declared and with undeclared credentials are not coalesced")
  func identity() {
    let (id, network) = (ComponentID(RequestInterceptor.self, parameters: "signature"), ScriptedDownloader())
    let declared = RequestInterceptor(id: id, sendsServiceCredentials: true, willSend: { _ in })

    #expect(network.intercepted(by: declared).id != network.intercepted(by: RequestInterceptor(id: id, willSend: { _ in })).id)
  }
}
