import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Results with a stale response")
struct StaleTests {
  @Test("an offline result states its age, its staleness and the reason, as bytes, as a value and as an event")
  func offline() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .failure(.connectionLost, reason: "reset by peer") }
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"))
    let first = try await fixture.manager.load(fixture.url)
    #expect(first.fallbackReason == nil && !first.isStale)
    fixture.clock.advance(by: .seconds(90))

    let shown = try await fixture.manager.load(fixture.url)
    let value = try await fixture.manager.load(ResourceRequest(fixture.url), as: .counting(Counter()))
    var final: Resource<Data>?
    for try await event in fixture.manager.events(for: fixture.url) { if case .final(let resource) = event { final = resource } }

    #expect(shown.text == "old" && shown.age == .seconds(90) && shown.isStale && shown.validation == .failed)
    for error in [shown.fallbackReason, value.fallbackReason, final?.fallbackReason] {
      #expect(error?.code == .connectionLost && error?.reason == "reset by peer")
      #expect(error?.url == fixture.url.absoluteString)
    }
    #expect(value.value == "OLD" && value.with(0).fallbackReason?.code == .connectionLost)
  }

  @Test("with stale-if-error, a 503 is the fallback reason, and after the allowed time it is the error")
  func staleIfError() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .response(.serviceUnavailable) }
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-if-error=60"))
    _ = try await fixture.manager.load(fixture.url)

    fixture.clock.advance(by: .seconds(119))
    let shown = try await fixture.manager.load(fixture.url)
    #expect(shown.text == "old" && shown.age == .seconds(119) && shown.isStale && shown.validation == .failed)
    #expect(shown.fallbackReason?.code == .unacceptableStatus && shown.fallbackReason?.status == 503)

    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.failure(fixture.url).status == 503)
  }

  @Test("a 503 is the error if the stored response does not allow stale-if-error")
  func withoutStaleIfError() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"), .response(.serviceUnavailable))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))

    #expect(try await fixture.failure(fixture.url).status == 503)
  }

  @Test(
    "after the old value, the stream reports that it is current, that it is outdated, or why this is unknown",
    arguments: ["still current", "outdated", "unknown"], [LoadPolicy.staleWhileRevalidate, .standard])
  func events(_ outcome: String, _ policy: LoadPolicy) async throws {
    let fixture = try ManagerFixture()
    let response: ScriptedResponse =
      switch outcome {
      case "still current": .notModified(etag: "\"1\"", cacheControl: "max-age=60")
      case "outdated": .ok("new", etag: "\"2\"", cacheControl: "max-age=60")
      default: .failure(.offline)
      }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-while-revalidate=600"), response)
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(90))

    var seen: [Resource<Data>] = []
    for try await event in fixture.manager.events(for: fixture.url, options: .policy(policy)) {
      switch event {
      case .progress: break
      case .stale(let resource), .final(let resource): seen.append(resource)
      }
    }

    let (old, last) = try (#require(seen.first), #require(seen.last))
    #expect(seen.count == 2 && old.text == "old" && old.isStale && old.age == .seconds(90) && old.fallbackReason == nil)
    switch outcome {
    case "still current":
      #expect(last.validation == .notModified && last.revision == old.revision && !last.isStale && last.bytesOnWire == 0)
    case "outdated": #expect(last.validation == .modified && last.revision != old.revision && last.text == "new" && !last.isStale)
    default: #expect(last.validation == .failed && last.revision == old.revision && last.fallbackReason?.code == .offline)
    }
    try fixture.network.verify()
  }

  @Test(
    "a background revalidation outlives the cancelled loads that got the stale response, and runs once",
    arguments: [LoadPolicy.standard, .staleWhileRevalidate])
  func background(_ policy: LoadPolicy) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=600"),
      .ok("newer", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))

    let callers = (0..<3).map { _ in
      Task {
        let shown = try await fixture.manager.load(fixture.url, options: .policy(policy)).text
        try? await fixture.clock.sleep(for: .seconds(3_600))
        return shown
      }
    }
    await gate.arrived()
    await fixture.clock.sleepers(3)
    for caller in callers { caller.cancel() }
    for caller in callers { #expect(try await caller.value == "old") }
    gate.open()
    await fixture.observer.first { if case .stored(_, .memory, 5, _) = $0 { true } else { false } }
    await fixture.manager.close()

    #expect(fixture.network.requests.count == 2)
    #expect(fixture.network.cancelledBodies == 0)
    let now = fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes)
    #expect(now?.text == "newer")
  }

  @Test(
    "a lookup in memory returns a stale response only with staleWhileRevalidate, and never one that must be revalidated",
    arguments: [("max-age=1", true), ("max-age=1, must-revalidate", false), ("no-cache", false)])
  func staleInMemory(cacheControl: String, isShown: Bool) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: cacheControl))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(5))

    let stale = fixture.manager.cachedInMemory(fixture.url, options: .policy(.staleWhileRevalidate))
    #expect(stale?.text == (isShown ? "old" : nil))
    #expect(stale?.isStale != false)
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("staleWhileRevalidate uses a fresh response like standard")
  func freshInMemory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"1\"", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)

    let options = RequestOptions.policy(.staleWhileRevalidate)
    let fresh = try #require(fixture.manager.cachedInMemory(fixture.url, options: options))
    #expect(fresh.text == "new" && !fresh.isStale)
    #expect(try await fixture.manager.load(fixture.url, options: options).source == .memory)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("revalidate(atMostEvery:) sends no request within the interval since the last confirmation, even after a failure")
  func floorOffline() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .failure(.offline), .notModified())
    let options = RequestOptions.policy(.revalidate(atMostEvery: .seconds(60)))
    _ = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(60))

    let failed = try await fixture.manager.load(fixture.url, options: options)
    let confirmed = try await fixture.manager.load(fixture.url, options: options)
    let within = try await fixture.manager.load(fixture.url, options: options)

    #expect(failed.fallbackReason?.code == .offline && confirmed.source == .revalidated && confirmed.fallbackReason == nil)
    #expect(within.source == .memory)
    try fixture.network.verify()
  }

  @Test("revalidate(showCachedAfter:) shows no stored response if the network responds in time")
  func showCachedInTime() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .ok("new", etag: "\"2\"").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)

    async let shown = fixture.manager.load(fixture.url, options: .policy(.revalidate(showCachedAfter: .seconds(1))))
    await gate.arrived()
    await fixture.clock.sleepers(1)
    gate.open()

    #expect(try await shown.text == "new")
    await fixture.manager.close()
    #expect(fixture.clock.pendingSleeps == 0)
  }
}
