import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// Requests that are as most are have a way to memory of their own, which leaves out what only others need. An interceptor that
/// changes nothing is enough to have to go the long way, so that both can be compared.
@Suite("Hits in memory: the short way and the long one")
struct PlainHitTests {
  /// What lies in memory, and with what options it is asked for.
  struct Situation: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var isHit: Bool
    var answer = ScriptedAnswer.ok("body", etag: "\"1\"", cacheControl: "max-age=60")
    var path = "/picture.png"
    var age = Duration.seconds(30)
    var stored = RequestOptions()
    var asked = RequestOptions()
    var fields: HTTPFields = [:]

    init(_ description: String, isHit: Bool, _ change: (inout Situation) -> Void = { _ in }) {
      (testDescription, self.isHit) = (description, isHit)
      change(&self)
    }

    static let all = [
      Situation("fresh", isHit: true),
      Situation("at the end of its lifetime", isHit: false) { $0.age = .seconds(60) },
      Situation("a moment before it", isHit: true) { $0.age = .milliseconds(59_999) },
      Situation("to be asked about each time", isHit: false) { $0.answer = .ok("body", etag: "\"1\"", cacheControl: "no-cache") },
      Situation("past its own time to live", isHit: false) {
        ($0.stored.expiration, $0.age) = (.after(.seconds(10)), .seconds(10))
      },
      Situation("within its own time to live", isHit: true) {
        ($0.stored.expiration, $0.age) = (.after(.seconds(10)), .seconds(9))
      },
      Situation("with a query", isHit: true) { $0.path = "/search?q=a%20b" },
      Situation("with a fragment", isHit: true) { $0.path = "/page#part" },
      Situation("of a partition", isHit: true) { ($0.stored.partition, $0.asked.partition) = ("ann", "ann") },
      Situation("of another's partition", isHit: false) { ($0.stored.partition, $0.asked.partition) = ("ann", "bob") },
      Situation("under a key", isHit: true) { ($0.stored.key, $0.asked.key) = ("k", "k") },
      Situation("under another key", isHit: false) { ($0.stored.key, $0.asked.key) = ("k", nil) },
      Situation("of one variant, and asked for with its field", isHit: true) {
        $0.answer = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
        $0.fields = [.accept: "image/png"]
      },
      Situation("of one variant, and asked for without its field", isHit: false) {
        $0.answer = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
        $0.stored.interceptor = .use(RequestInterceptor(willLookUp: { $0.headerFields[.accept] = "image/png" }))
      },
      Situation("of the variant without the field", isHit: true) {
        $0.answer = .ok("body", cacheControl: "max-age=60", fields: [.vary: "Accept"])
      },
      Situation("asked for with a field that is a condition", isHit: false) { $0.fields = [.ifNoneMatch: "\"1\""] },
      Situation("asked for with a field that forbids it", isHit: false) { $0.fields = [.cacheControl: "no-cache"] },
      Situation("a status that is accepted", isHit: true) {
        $0.answer = .response(.notFound, fields: [.cacheControl: "max-age=60"], body: Data("none".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<500)
        $0.asked.acceptedStatuses = AcceptedStatuses(200..<500)
      },
      Situation("a status that is none of those accepted", isHit: false) {
        $0.answer = .response(.notFound, fields: [.cacheControl: "max-age=60"], body: Data("none".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<500)
      },
      Situation("a redirect that is not followed", isHit: true) {
        $0.answer = .response(.movedPermanently, fields: [.cacheControl: "max-age=60", .location: "/b"], body: Data("b".utf8))
        for options in [\Situation.stored, \.asked] {
          $0[keyPath: options].acceptedStatuses = AcceptedStatuses(200..<400)
          $0[keyPath: options].redirectLimit = 0
        }
      },
      Situation("a redirect that is followed", isHit: false) {
        $0.answer = .response(.movedPermanently, fields: [.cacheControl: "max-age=60", .location: "/b"], body: Data("b".utf8))
        $0.stored.acceptedStatuses = AcceptedStatuses(200..<400)
        $0.stored.redirectLimit = 0
        $0.asked.acceptedStatuses = AcceptedStatuses(200..<400)
      },
      Situation("by another policy", isHit: false) { $0.asked.policy = .reload },
      Situation("by a policy that takes what is stale", isHit: true) {
        ($0.asked.policy, $0.age) = (.cacheFirst, .seconds(1_000))
      },
      Situation("without memory", isHit: false) { $0.asked.memory = .disabled },
      Situation("without reading memory", isHit: false) { $0.asked.reads = .disk },
      Situation("without a validator", isHit: true) { ($0.asked.validator, $0.age) = (.disabled, .seconds(1_000)) },
      Situation("by a clock of its own", isHit: false) { $0.asked.clock = ManualClock(now: .distantFuture) },
    ]
  }

  /// All that a hit tells, as text.
  private func told(_ resource: Resource<Data>?) -> String {
    guard let resource else { return "nothing" }
    return """
      \(resource.text) \(resource.url) \(resource.redirects) \(resource.response) \(resource.source) \(resource.validation) \(resource.age) \
      \(resource.isStale) \(String(describing: resource.fallbackReason)) \(resource.duration) \(resource.metrics) \(resource.key) \
      \(resource.revision) \(resource.valueOrigin)
      """
  }

  @Test("tell the same of every situation", arguments: Situation.all)
  func agreement(_ situation: Situation) async throws {
    let fixture = try ManagerFixture()
    let url = try fixture.url(situation.path)
    fixture.network.answer(url, situation.answer)
    _ = try await fixture.manager.load(ResourceRequest(url, headerFields: situation.fields, options: situation.stored))
    fixture.clock.advance(by: situation.age)
    let short = ResourceRequest(url, headerFields: situation.fields, options: situation.asked)
    var long = short
    long.options.interceptor = .use(RequestInterceptor(willLookUp: { _ in }))

    let hit = fixture.manager.cachedInMemory(short, as: .bytes)
    let same = fixture.manager.cachedInMemory(long, as: .bytes)
    #expect((hit != nil) == situation.isHit)
    #expect(told(hit) == told(same))
  }

  @Test("an answer of a mirror tells where it came from, either way")
  func mirror() async throws {
    let fixture = try ManagerFixture()
    let elsewhere = try #require(URL(string: "https://mirror.example/picture.png"))
    fixture.network.answer(fixture.url, .failure(.connectionRefused))
    fixture.network.answer(elsewhere, .ok("body", cacheControl: "max-age=60"))
    let options = RequestOptions { $0.alternatives = [.mirror(elsewhere)] }
    _ = try await fixture.manager.load(fixture.url, options: options)
    let hit = fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes)
    var long = ResourceRequest(fixture.url)
    long.options.interceptor = .use(RequestInterceptor(willLookUp: { _ in }))
    let same = fixture.manager.cachedInMemory(long, as: .bytes)
    #expect(hit?.url == elsewhere)
    #expect(told(hit) == told(same))
  }

  @Test("the manager's interceptor sees each look-up")
  func interceptor() async throws {
    let fixture = try ManagerFixture { configuration in
      configuration.interceptor = RequestInterceptor(willLookUp: { request in
        throw CacheError(.refused, reason: "no \(request.path ?? "")")
      })
    }
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(try await fixture.failure(fixture.url).code == .refused)
  }

  @Test("the observer is told once of each hit, whichever form the load has", arguments: LoadForm.all)
  func observed(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.answer(fixture.url, .ok("body", cacheControl: "max-age=60"))
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

  @Test("a closed manager has no hits to give", arguments: LoadForm.all)
  func closed(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.answer(fixture.url, .ok("body", cacheControl: "max-age=60"))
    _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    await fixture.manager.close()
    let error = await #expect(throws: CacheError.self) {
      _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
    }
    #expect(error?.code == .closed)
  }
}
