import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("The loads that a cancellation of a URL finds", .timeLimit(.minutes(30)))
struct CancelledLoadTests {
  private let fixture: ManagerFixture
  private let gate = Gate()

  init() throws { fixture = try ManagerFixture() }

  private func load(_ url: URL? = nil, in fixture: ManagerFixture) -> Task<Resource<Data>, any Error> {
    Task { try await fixture.manager.load(url ?? fixture.url) }
  }

  @Test("loads with another method end", arguments: [HTTPRequest.Method.post, .head])
  func methods(_ method: HTTPRequest.Method) async throws {
    fixture.network.serve(fixture.url) { [gate] _ in .ok("").held(by: gate) }
    let load = Task { try await fixture.manager.load(ResourceRequest(fixture.url, method: method)) }
    await gate.arrived()
    fixture.manager.cancel(fixture.url)
    #expect(await load.result.isCancellation)
    await fixture.manager.close()
  }

  @Test("loads are found by the URL of their caller, whatever an interceptor does, and the interceptor is not called")
  func intercepted() async throws {
    let counter = Counter()
    let interceptor = RequestInterceptor(willLookUp: { request throws(CacheError) in
      counter.increment()
      if counter.value > 2 { throw CacheError(.refused, reason: "no more requests") }
      request.path = "/\(counter.value)"
    })
    let fixture = try ManagerFixture { $0.interceptor = interceptor }
    for number in 1...2 {
      fixture.network.serve(try fixture.url("/\(number)")) { [gate] _ in .ok("body").held(by: gate) }
    }
    let first = load(in: fixture)
    await gate.arrived()
    let second = load(try fixture.url("/other"), in: fixture)
    await gate.arrived(2)

    fixture.manager.cancel(try fixture.url("/2"))
    fixture.manager.cancel(fixture.url)

    #expect(await first.result.isCancellation)
    gate.open()
    #expect(try await second.value.text == "body")
    #expect(counter.value == 2)
    await fixture.manager.close()
  }

  @Test("loads of several URLs that an interceptor makes one request end together, whichever URL is cancelled")
  func merged() async throws {
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willLookUp: { $0.path = "/one" }) }
    fixture.network.serve(try fixture.url("/one")) { [gate] _ in .ok("body").held(by: gate) }
    let (first, second) = (try fixture.url("/1"), try fixture.url("/2"))
    let loads = [load(first, in: fixture)]
    await gate.arrived()
    let joining = load(second, in: fixture)
    await fixture.observer.joined()

    fixture.manager.cancel(second)

    for load in loads + [joining] { #expect(await load.result.isCancellation) }
    #expect(fixture.network.requests.count == 1)
    await fixture.manager.close()
  }

  @Test("a key that depends on fields, and an invalid number of the options, do not prevent a cancellation")
  func unrelatedSettings() async throws {
    let fixture = try ManagerFixture { $0.cacheKey = { $0.headerFields[.acceptLanguage] } }
    fixture.network.serve(fixture.url) { [gate] _ in .ok("body").held(by: gate) }
    let load = Task { try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"])) }
    await gate.arrived()
    fixture.manager.cancel(fixture.url, options: RequestOptions { $0.redirectLimit = -1 })
    #expect(await load.result.isCancellation)
    await fixture.manager.close()
  }

  @Test("a waiting prefetch is found by the URL of its caller")
  func interceptedPrefetch() async throws {
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willLookUp: { $0.path = "/changed" }) }
    let prefetcher = fixture.manager.prefetcher()
    prefetcher.pause()
    prefetcher.append([fixture.url])
    fixture.manager.cancel(try fixture.url("/changed"))
    #expect(prefetcher.progress.failed == 0)
    fixture.manager.cancel(fixture.url)
    #expect(prefetcher.progress.failed == 1)
  }

  @Test("a revalidation in the background ends with the URL of its caller, if an interceptor has changed it")
  func interceptedRevalidation() async throws {
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willLookUp: { $0.path = "/changed" }) }
    let changed = try fixture.url("/changed")
    fixture.network.respond(
      to: changed, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", cacheControl: "max-age=60").bodyHeld(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(2))
    _ = try await fixture.send()
    await gate.arrived()

    fixture.manager.cancel(fixture.url)

    try await Polling.until { fixture.network.cancelledBodies == 1 }
    await fixture.manager.close()
  }
}
