import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("A 206 without a range")
struct UnrequestedPartTests {
  private let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  private func part(_ type: String? = nil) -> ScriptedResponse {
    var fields: HTTPFields = [.contentRange: "bytes 4-9/10", .eTag: "\"1\"", .cacheControl: "max-age=60"]
    if let type {
      fields[.contentType] = type
      fields[.contentRange] = nil
    }
    return .response(.partialContent, fields: fields, body: Data("456789".utf8))
  }

  @Test(
    "every form of a load fails, and nothing is stored", arguments: LoadCall.allCases, [nil, "multipart/byteranges; boundary=x"])
  func forms(_ form: LoadCall, _ type: String?) async throws {
    fixture.network.respond(to: fixture.url, with: part(type))
    let error = try await fixture.failure(form)
    #expect(error.code == .malformedResponse && error.status == 206 && error.attempt == 1)
    #expect(error.url == fixture.url.absoluteString)
    #expect(fixture.disk.keys.isEmpty && fixture.network.cancelledBodies == 1)
    try fixture.network.verify()
  }

  @Test("every form of a load uses a stale response instead, if it may", arguments: LoadCall.allCases)
  func stale(_ form: LoadCall) async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: part())
    let result = try await fixture.load(form)
    #expect(result.text == "old" && result.isUnconfirmed)
    // The request was conditional, and had no range all the same.
    #expect(fixture.network.conditional == 1)
  }

  @Test("a stored response that must be revalidated is not used instead", arguments: LoadCall.allCases)
  func mustRevalidate(_ form: LoadCall) async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, must-revalidate")
    fixture.network.respond(to: fixture.url, with: part())
    #expect(try await fixture.failure(form).code == .malformedResponse)
  }

  @Test("the next alternative is loaded, and a mirror's part is refused too")
  func alternatives() async throws {
    let (first, second) = (try fixture.url("/first"), try fixture.url("/second"))
    fixture.network.respond(to: fixture.url, with: part())
    fixture.network.respond(to: first, with: part())
    fixture.network.respond(to: second, with: .ok("whole"))
    let options = RequestOptions { $0.alternatives = [.mirror(first), .mirror(second)] }
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "whole")
  }

  @Test("the target of a redirect may not send a part either")
  func redirect() async throws {
    let target = try fixture.url("/target")
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/target"))
    fixture.network.respond(to: target, with: part())
    #expect(try await fixture.failure(.bytes).failedURL == target.absoluteString)
  }

  @Test("a manager without a validator refuses it too")
  func withoutValidator() async throws {
    let fixture = try ManagerFixture { $0.validator = nil }
    fixture.network.respond(to: fixture.url, with: part())
    #expect(try await fixture.failure(.bytes).code == .malformedResponse)
  }

  @Test("a load with a range of its own receives the part", arguments: [LoadCall.bytes, .value, .events, .callback, .file])
  func ownRange(_ form: LoadCall) async throws {
    fixture.network.respond(to: fixture.url, with: part())
    #expect(try await fixture.load(form, [.range: "bytes=4-9"]).text == "456789")
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("an HTTP caller gets the error, or the stale response, and a range is passed on")
  func respond() async throws {
    fixture.network.respond(to: fixture.url, with: part(), part(), part())
    let error = await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(error?.code == .malformedResponse && error?.status == 206)
    let range = try await fixture.send([.range: "bytes=4-9"])
    #expect(range.status == 206 && range.text == "456789")

    try await fixture.manager.store(Data("old".utf8), for: fixture.url, freshFor: .seconds(60))
    fixture.clock.advance(by: .seconds(90))
    let stale = try await fixture.send()
    #expect(stale.text == "old" && stale.cache.contains("fwd=stale") && stale.cache.contains("detail=malformedResponse"))
  }

  @Test("requests that wait for the same response are sent themselves")
  func coalesced() async throws {
    let gate = Gate()
    let part = part()
    fixture.network.respond(to: fixture.url, with: part.held(by: gate))
    fixture.network.serve(fixture.url) { _ in .ok("whole", cacheControl: "max-age=60") }
    let first = Task { try await fixture.send() }
    await gate.arrived()
    let second = Task { try await fixture.send() }
    try await Polling.until { fixture.observer.events.contains { if case .joined = $0 { true } else { false } } }
    gate.open()
    await #expect(throws: CacheError.self) { try await first.value }
    #expect(try await second.value.text == "whole")
  }

  @Test("an unsafe request that ends in this way still invalidates the stored response")
  func unsafe() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=60"), part(), .ok("new"))
    _ = try await fixture.manager.load(fixture.url)
    let request = ResourceRequest(fixture.url, method: .post, body: RequestBody(Data(), contentType: "text/plain"))
    let error = await #expect(throws: CacheError.self) { try await fixture.manager.load(request) }
    #expect(error?.code == .malformedResponse)
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }
}
