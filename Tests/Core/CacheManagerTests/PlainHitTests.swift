import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// Most requests are plain and have a short path to memory. Every request with an interceptor uses the long path, so an
/// interceptor without effect makes both paths comparable.
@Suite("The short and the long path to a hit in memory")
struct PlainHitTests {
  /// The response in memory, and the options of the request for it.
  struct Situation: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var isHit: Bool
    var response = ScriptedResponse.ok("body", etag: "\"1\"", cacheControl: "max-age=60")
    var path = "/image.png"
    var age = Duration.seconds(30)
    var stored = RequestOptions()
    var requested = RequestOptions()
    var fields: HTTPFields = [:]

    init(_ description: String, isHit: Bool, _ change: (inout Situation) -> Void = { _ in }) {
      (testDescription, self.isHit) = (description, isHit)
      change(&self)
    }

    static let all = [
      Situation("fresh", isHit: true),
      Situation("a response at the end of its lifetime", isHit: false) { $0.age = .seconds(60) },
      Situation("a response just before the end of its lifetime", isHit: true) { $0.age = .milliseconds(59_999) },
      Situation("a response that must be revalidated each time", isHit: false) {
        $0.response = .ok("body", etag: "\"1\"", cacheControl: "no-cache")
      },
      Situation("a response past its own time to live", isHit: false) {
        ($0.stored.expiration, $0.age) = (.after(.seconds(10)), .seconds(10))
      },
      Situation("a response within its own time to live", isHit: true) {
        ($0.stored.expiration, $0.age) = (.after(.seconds(10)), .seconds(9))
      },
      Situation("a URL with a query", isHit: true) { $0.path = "/search?q=a%20b" },
      Situation("a URL with a fragment", isHit: true) { $0.path = "/page#part" },
      Situation("a response of the same partition", isHit: true) {
        ($0.stored.partition, $0.requested.partition) = ("ann", "ann")
      },
      Situation("a response of another partition", isHit: false) {
        ($0.stored.partition, $0.requested.partition) = ("ann", "bob")
      },
      Situation("a response under the same key", isHit: true) { ($0.stored.key, $0.requested.key) = ("k", "k") },
      Situation("a response under another key", isHit: false) { ($0.stored.key, $0.requested.key) = ("k", nil) },
      Situation("a response of one variant, requested with its field", isHit: true) {
        $0.response = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
        $0.fields = [.accept: "image/png"]
      },
      Situation("a response of one variant, requested without its field", isHit: false) {
        $0.response = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
        $0.stored.interceptor = .use(RequestInterceptor(willLookUp: { $0.headerFields[.accept] = "image/png" }))
      },
      Situation("a response of the variant without the field", isHit: true) {
        $0.response = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
      },
      Situation("a request with a field that is a condition", isHit: false) { $0.fields = [.ifNoneMatch: "\"1\""] },
      Situation("a request with a field that forbids the hit", isHit: false) { $0.fields = [.cacheControl: "no-cache"] },
      Situation("a status that is accepted", isHit: true) {
        $0.response = .response(.notFound, fields: [.cacheControl: "max-age=60"], body: Data("none".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<500)
        $0.requested.acceptedStatuses = AcceptedStatuses(200..<500)
      },
      Situation("a status that is not accepted", isHit: false) {
        $0.response = .response(.notFound, fields: [.cacheControl: "max-age=60"], body: Data("none".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<500)
      },
      Situation("a redirect that is not followed", isHit: true) {
        $0.response = .response(.movedPermanently, fields: [.cacheControl: "max-age=60", .location: "/b"], body: Data("b".utf8))
        for options in [\Situation.stored, \.requested] {
          $0[keyPath: options].acceptedStatuses = AcceptedStatuses(200..<400)
          $0[keyPath: options].redirectLimit = 0
        }
      },
      Situation("a redirect that is followed", isHit: false) {
        $0.response = .response(.movedPermanently, fields: [.cacheControl: "max-age=60", .location: "/b"], body: Data("b".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<400)
        $0.stored.redirectLimit = 0
        $0.requested.acceptedStatuses = AcceptedStatuses(200..<400)
      },
      Situation("a request with another policy", isHit: false) { $0.requested.policy = .reload },
      Situation("a request with a policy that allows stale responses", isHit: true) {
        ($0.requested.policy, $0.age) = (.cacheFirst, .seconds(1_000))
      },
      Situation("without memory", isHit: false) { $0.requested.memory = .disabled },
      Situation("a request that does not read memory", isHit: false) { $0.requested.reads = .disk },
      Situation("a request without a validator", isHit: true) { ($0.requested.validator, $0.age) = (.disabled, .seconds(1_000)) },
      Situation("a request with its own clock", isHit: false) { $0.requested.clock = ManualClock(now: .distantFuture) },
    ]
  }

  /// Everything that a hit reports, as text.
  private func told(_ resource: Resource<Data>?) -> String {
    guard let resource else { return "nothing" }
    return """
      \(resource.text) \(resource.url) \(resource.redirects) \(resource.response) \(resource.source) \(resource.validation) \(resource.age) \
      \(resource.isStale) \(String(describing: resource.fallbackReason)) \(resource.duration) \(resource.metrics) \(resource.key) \
      \(resource.revision) \(resource.valueOrigin)
      """
  }

  @Test("both paths have the same result in every situation", arguments: Situation.all)
  func agreement(_ situation: Situation) async throws {
    let fixture = try ManagerFixture()
    let url = try fixture.url(situation.path)
    fixture.network.respond(to: url, with: situation.response)
    _ = try await fixture.manager.load(ResourceRequest(url, headerFields: situation.fields, options: situation.stored))
    fixture.clock.advance(by: situation.age)
    let short = ResourceRequest(url, headerFields: situation.fields, options: situation.requested)
    var long = short
    long.options.interceptor = .use(RequestInterceptor(willLookUp: { _ in }))

    let hit = fixture.manager.cachedInMemory(short, as: .bytes)
    let same = fixture.manager.cachedInMemory(long, as: .bytes)
    #expect((hit != nil) == situation.isHit)
    #expect(told(hit) == told(same))
  }

  @Test("a mirror's response states its source on both paths")
  func mirror() async throws {
    let fixture = try ManagerFixture()
    let elsewhere = try #require(URL(string: "https://mirror.example/image.png"))
    fixture.network.respond(to: fixture.url, with: .failure(.connectionRefused))
    fixture.network.respond(to: elsewhere, with: .ok("body", cacheControl: "max-age=60"))
    let options = RequestOptions { $0.alternatives = [.mirror(elsewhere)] }
    _ = try await fixture.manager.load(fixture.url, options: options)
    let hit = fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes)
    var long = ResourceRequest(fixture.url)
    long.options.interceptor = .use(RequestInterceptor(willLookUp: { _ in }))
    let same = fixture.manager.cachedInMemory(long, as: .bytes)
    #expect(hit?.url == elsewhere)
    #expect(told(hit) == told(same))
  }

  @Test("the manager's interceptor sees each lookup")
  func interceptor() async throws {
    let fixture = try ManagerFixture { configuration in
      configuration.interceptor = RequestInterceptor(willLookUp: { request in
        throw CacheError(.refused, reason: "no \(request.path ?? "")")
      })
    }
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(try await fixture.failure(fixture.url).code == .refused)
  }

  @Test("the observer receives one event for each hit, in every form of a load", arguments: LoadForm.all)
  func observed(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    let before = fixture.observer.eventsOfResults.count
    _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    let events = fixture.observer.eventsOfResults.dropFirst(before)
    #expect(events.count == 1)
    guard case .hit(let url, .memory, _) = events.first else {
      Issue.record("\(events)")
      return
    }
    #expect(url.description == fixture.url.absoluteString)
  }

  @Test("a closed manager returns no hit", arguments: LoadForm.all)
  func closed(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60"))
    _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    await fixture.manager.close()
    let error = await #expect(throws: CacheError.self) {
      _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    }
    #expect(error?.code == .closed)
  }
}
