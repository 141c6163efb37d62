import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("The option for stale responses")
struct StaleFallbackTests {
  private let fixture: ManagerFixture
  private let anyStored = RequestOptions { $0.staleFallback = .anyStored }

  init() throws { fixture = try ManagerFixture() }

  private func options(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
    var options = anyStored
    change(&options)
    return options
  }

  /// The failures that `anyStored` covers.
  enum Failure: String, CaseIterable, Sendable {
    case offline, connectionLost, tlsFailure, refused, error500, error429, gone, freshNotFound, unauthorized, cut, tooLarge, loop

    var code: CacheError.Code {
      switch self {
      case .offline: .offline
      case .connectionLost: .connectionLost
      case .tlsFailure: .tlsFailure
      case .refused: .refused
      case .error500, .error429, .gone, .freshNotFound, .unauthorized: .unacceptableStatus
      case .cut: .truncatedBody
      case .tooLarge: .bodyTooLarge
      case .loop: .tooManyRedirects
      }
    }

    var response: ScriptedResponse {
      switch self {
      case .offline, .connectionLost, .tlsFailure, .refused: .failure(code)
      case .error500: .response(.internalServerError)
      case .error429: .response(.tooManyRequests)
      case .gone: .response(.gone)
      case .freshNotFound: .response(.notFound, fields: [.cacheControl: "max-age=600"])
      case .unauthorized: .response(.unauthorized)
      case .cut: .ok("new body", etag: "\"2\"").cut(after: 3)
      case .tooLarge: .ok(Data(count: 2_000), etag: "\"2\"")
      case .loop: .redirect(to: "/image.png")
      }
    }
  }

  @Test(
    "any stored response is used for any failure, and the failure is its reason", arguments: Failure.allCases,
    ["no-cache", "max-age=60, must-revalidate"])
  func failures(_ failure: Failure, cacheControl: String) async throws {
    try await fixture.storeStale(cacheControl: cacheControl)
    fixture.network.serve(fixture.url) { _ in failure.response }

    let shown = try await fixture.manager.load(fixture.url, options: options { $0.maximumBodySize = 1_000 })

    #expect(shown.text == "old" && shown.validation == .failed && shown.isStale)
    #expect(shown.fallbackReason?.code == failure.code && shown.fallbackReason?.url == fixture.url.absoluteString)
    // The failure did not replace the stored response, and other loads get the error.
    #expect(try await fixture.failure(fixture.url, RequestOptions { $0.maximumBodySize = 1_000 }).code == failure.code)
  }

  @Test("every form of a load uses it", arguments: LoadCall.allCases, [true, false])
  func forms(_ form: LoadCall, inMemory: Bool) async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, must-revalidate", inMemory: inMemory)
    fixture.network.respond(to: fixture.url, with: .response(.internalServerError))

    let result = try await fixture.load(form, [:], anyStored)

    #expect(result.text == "old" && result.isUnconfirmed)
    if form != .prefetch, form != .prefetchToDisk { #expect(result.fallbackReason?.status == 500) }
  }

  @Test("it can be set for all loads of a manager, and a request can return to the standard")
  func configuration() async throws {
    let fixture = try ManagerFixture { $0.staleFallback = .anyStored }
    try await fixture.storeStale(cacheControl: "no-cache")
    fixture.network.serve(fixture.url) { _ in .failure(.offline) }
    #expect(try await fixture.manager.load(fixture.url).text == "old")
    #expect(try await fixture.failure(fixture.url, RequestOptions { $0.staleFallback = .standard }).code == .offline)
  }

  @Test("nothing of it is sent to the origin")
  func sent() async throws {
    try await fixture.storeStale()
    fixture.network.serve(fixture.url) { _ in .failure(.offline) }
    for fallback in StaleFallback.allCases {
      _ = try? await fixture.manager.load(fixture.url, options: RequestOptions { $0.staleFallback = fallback })
    }
    let requests = Set(fixture.network.requests.dropFirst())
    #expect(requests.count == 1 && requests.first?.headerFields == [.ifNoneMatch: "\"1\""])
  }

  @Test("a deadline is a failure, although the stored response must be revalidated")
  func deadline() async throws {
    let fixture = try ManagerFixture { $0.waitForStores() }
    let gate = Gate()
    try await fixture.storeStale(cacheControl: "max-age=60, must-revalidate")
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    async let shown = fixture.manager.load(fixture.url, options: options { $0.timeout = .seconds(5) })
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    #expect(try await shown.fallbackReason?.code == .timedOut)
    gate.open()
    await fixture.manager.close()
  }

  @Test("without a stored response, the failure is the error")
  func nothingStored() async throws {
    fixture.network.respond(to: fixture.url, with: .response(.internalServerError), .failure(.offline))
    #expect(try await fixture.failure(fixture.url, anyStored).status == 500)
    #expect(try await fixture.failure(fixture.url, anyStored).code == .offline)
  }

  @Test("the stored response of another partition, variant or key is never used")
  func separation() async throws {
    let vary = HTTPFields.field("Vary", "Accept-Language")
    fixture.network.respond(
      to: fixture.url, with: .ok("german", cacheControl: "max-age=60", fields: vary), .failure(.offline), .failure(.offline),
      .failure(.offline))
    _ = try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"]))
    fixture.clock.advance(by: .seconds(90))
    #expect(try await fixture.failure(.bytes, [.acceptLanguage: "en"], anyStored).code == .offline)
    let (partition, key) = (options { $0.partition = "other" }, options { $0.key = "other" })
    #expect(try await fixture.failure(.bytes, [.acceptLanguage: "de"], partition).code == .offline)
    #expect(try await fixture.failure(.bytes, [.acceptLanguage: "de"], key).code == .offline)
  }

  @Test("an unsafe request, a reload, an error of the program and a cancellation are never replaced")
  func excluded() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .failure(.offline), .failure(.misuse))
    let request = ResourceRequest(
      fixture.url, method: .post, body: RequestBody(Data(), contentType: "text/plain"), options: anyStored)
    let error = await #expect(throws: CacheError.self) { try await fixture.manager.load(request) }
    #expect(error?.code == .offline)
    #expect(try await fixture.failure(fixture.url, options { $0.policy = .reload }).code == .offline)
    #expect(try await fixture.failure(fixture.url, anyStored).code == .misuse)
    #expect(try await fixture.failure(fixture.url, anyStored).code == .unscripted)
  }

  @Test("alternatives are loaded first")
  func alternatives() async throws {
    let mirror = try fixture.url("/mirror")
    try await fixture.storeStale(cacheControl: "no-cache")
    fixture.network.respond(to: fixture.url, with: .response(.internalServerError), .response(.internalServerError))
    fixture.network.respond(to: mirror, with: .failure(.offline), .ok("mirrored"))
    let options = options { $0.alternatives = [.mirror(mirror)] }
    let stale = try await fixture.manager.load(fixture.url, options: options)
    #expect(stale.text == "old" && stale.fallbackReason?.status == 500)
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "mirrored")
  }

  @Test("after a refusal, the stored response is used and no alternative is loaded")
  func refusal() async throws {
    let mirror = try fixture.url("/mirror")
    try await fixture.storeStale(cacheControl: "no-cache")
    fixture.network.respond(to: fixture.url, with: .failure(.refused))
    let shown = try await fixture.manager.load(fixture.url, options: options { $0.alternatives = [.mirror(mirror)] })
    #expect(shown.text == "old" && shown.fallbackReason?.code == .refused)
    #expect(fixture.network.requests(for: mirror).isEmpty)
  }

  @Test("after a redirect that is refused, the response of the requested URL is used")
  func redirect() async throws {
    try await fixture.storeStale()
    fixture.network.respond(to: fixture.url, with: .redirect(to: "http://portal.example/sign-in"))
    let shown = try await fixture.manager.load(fixture.url, options: anyStored)
    #expect(shown.text == "old" && shown.fallbackReason?.code == .redirectRefused && shown.url == fixture.url)
  }

  @Test("with never, no stale response replaces a failure", arguments: LoadCall.allCases)
  func never(_ form: LoadCall) async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, stale-if-error=600")
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .response(.serviceUnavailable))
    let never = RequestOptions { $0.staleFallback = .never }
    #expect(try await fixture.failure(form, [:], never).code == .offline)
    #expect(try await fixture.failure(form, [:], never).status == 503)
  }

  @Test("an HTTP caller gets any stored response, and Cache-Status states the failure")
  func respond() async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, must-revalidate")
    fixture.network.respond(
      to: fixture.url, with: .response(.internalServerError), .response(.tooManyRequests), .failure(.offline),
      .response(.notFound), .failure(.offline))

    #expect(try await fixture.send(options: anyStored).cacheField == "Etagere;fwd=stale;fwd-status=500;ttl=-30")
    let busy = try await fixture.send(options: anyStored)
    #expect(busy.status == 200 && busy.text == "old" && busy.cacheField == "Etagere;fwd=stale;fwd-status=429;ttl=-30")
    #expect(try await fixture.send(options: anyStored).cacheField == "Etagere;fwd=stale;ttl=-30;detail=offline")
    // A status that is no failure is the response.
    #expect(try await fixture.send(options: anyStored).status == 404)
    let error = await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(error?.code == .revalidationFailed)
  }

  @Test("an HTTP caller that waits for a failed request gets the stored response too")
  func coalesced() async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, must-revalidate")
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: ScriptedResponse.response(.internalServerError).held(by: gate))
    let first = Task { try await fixture.send(options: anyStored) }
    await gate.arrived()
    let second = Task { try await fixture.send(options: anyStored) }
    try await Polling.until { fixture.observer.events.contains { if case .joined = $0 { true } else { false } } }
    gate.open()
    #expect(try await first.value.cache.hasSuffix(";fwd=stale;fwd-status=500;ttl=-30"))
    #expect(try await second.value.cache.hasSuffix(";fwd=stale;fwd-status=500;ttl=-30;collapsed"))
    try fixture.network.verify()
  }

  @Test("with never, an HTTP caller gets the failure")
  func respondNever() async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, stale-if-error=600")
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .response(.serviceUnavailable))
    let never = RequestOptions { $0.staleFallback = .never }
    let error = await #expect(throws: CacheError.self) { try await fixture.send(options: never) }
    #expect(error?.code == .offline)
    #expect(try await fixture.send(options: never).status == 503)
  }
}
