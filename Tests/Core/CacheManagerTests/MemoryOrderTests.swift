import CacheCore
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@testable import CacheManager

/// A memory store that does something before one of its calls, as another thread could.
private final class InterruptedMemory: MemoryStoring {
  private struct Interruption: Sendable {
    var calls: Int
    let action: @Sendable () -> Void
  }

  let id = ComponentID.unique(InterruptedMemory.self)
  let base: MemoryCache
  private let next = Lock<Interruption?>(nil)

  init(_ base: MemoryCache) { self.base = base }

  /// Whether the call to interrupt has not been made.
  var isWaiting: Bool { next.withLock { $0 != nil } }

  func interrupt(beforeCall call: Int, _ action: @escaping @Sendable () -> Void) {
    next.withLock { $0 = Interruption(calls: call, action: action) }
  }

  private func step() {
    let action = next.withLock { next -> (@Sendable () -> Void)? in
      guard let calls = next?.calls else { return nil }
      next?.calls = calls - 1
      return calls == 1 ? next.take()?.action : nil
    }
    action?()
  }

  func entry(for key: CacheKey) -> MemoryEntry? {
    step()
    return base.entry(for: key)
  }

  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool {
    step()
    return base.insert(entry, for: key)
  }

  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    step()
    return base.update(key, change)
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) {
    step()
    base.remove(key, ifRevision: revision)
  }

  func removeAll() { base.removeAll() }
}

/// A validator that does something after it has judged a response.
private struct HookedValidator: ResponseValidator {
  let base = ETagValidator()
  let judged: @Sendable () -> Void

  var id: ComponentID { base.id }

  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    base.plan(request, policy: policy, stored: stored, now: now)
  }

  func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    defer { judged() }
    return base.judge(
      result, to: request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
      revision: revision)
  }
}

/// Without a durable store, responses have no order in which they are stored. Each step in memory compares their times.
@Suite("The order of responses in memory alone")
struct MemoryOrderTests {
  private let memory = InterruptedMemory(MemoryCache(limits: .init(cost: 10 << 20)))
  private let fixture: ManagerFixture
  /// The time from which the seconds of the responses count.
  private let start: Timestamp

  init() throws {
    let memory = memory
    fixture = try ManagerFixture { ($0.memory, $0.store) = (memory, nil) }
    start = fixture.clock.now
  }

  private func cache() throws -> TieredCache {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    return TieredCache(load, resource: load.settings.resource)
  }

  /// A response whose head arrives in the given second.
  private func response(_ text: String, at second: Int, in cache: TieredCache) -> Candidate {
    var head = HTTPResponse(status: .ok)
    head.headerFields[.contentLanguage] = text
    var request = cache.request.head
    request.headerFields = [:]
    return Candidate(
      key: CacheKey(resource: cache.resource),
      metadata: StoredMetadata(
        request: request, response: head, requestTime: start, responseTime: start + .seconds(second), revision: .random(),
        freshness: Freshness(generatedAt: start, freshUntil: start + .seconds(60))))
  }

  /// The body in memory, which must have the metadata of its own response.
  private func cached() throws -> String? {
    guard let hit = fixture.manager.cachedInMemory(fixture.url) else { return nil }
    #expect(hit.text == hit.response.headerFields[.contentLanguage])
    return hit.text
  }

  /// Another response, which is stored while one is being stored.
  enum Other: CaseIterable, Sendable {
    case older, simultaneous, later
    /// It is stored by the caller, and makes earlier requests outdated.
    case fromCaller
    /// It is later, and its body is not stored in memory.
    case withoutBody
  }

  @Test("a response that interrupts another one at any step replaces it if it is later", arguments: Other.allCases)
  func interruption(_ other: Other) throws {
    var steps = 0
    for call in 1... {
      let one = try MemoryOrderTests()
      let cache = try one.cache()
      let mine = one.response("mine", at: 2, in: cache)
      let second = [.older: 1, .simultaneous: 2][other] ?? 3
      let their = one.response("their", at: second, in: cache)
      one.fixture.clock.advance(by: .seconds(2))
      one.memory.interrupt(beforeCall: call) {
        one.fixture.clock.advance(by: .seconds(1))
        let view = other == .fromCaller ? cache.invalidatingEarlierRequests() : cache
        view.storeInMemory(other == .withoutBody ? nil : Data("their".utf8), their, replacing: [])
      }
      cache.storeInMemory(Data("mine".utf8), mine, replacing: [])
      guard !one.memory.isWaiting else { break }
      steps += 1
      switch other {
      case .older: #expect(try one.cached() == "mine", "\(call)")
      case .later, .fromCaller: #expect(try one.cached() == "their", "\(call)")
      // Neither is later. If the two mix, nothing is found.
      case .simultaneous: _ = try one.cached()
      case .withoutBody: #expect(try one.cached() == nil, "\(call)")
      }
    }
    #expect(steps >= 2)
  }

  @Test("a response that may not be stored in memory does not remove a later one that interrupts it")
  func interruptionWithoutWriting() throws {
    var steps = 0
    for call in 1... {
      let one = try MemoryOrderTests()
      let cache = try one.cache()
      let options = RequestOptions { $0.writes = [] }
      let load = try ResolvedRequest(ResourceRequest(one.fixture.url, options: options), one.fixture.manager.core)
      let mine = one.response("mine", at: 2, in: cache)
      let their = one.response("their", at: 3, in: cache)
      one.fixture.clock.advance(by: .seconds(2))
      one.memory.interrupt(beforeCall: call) {
        one.fixture.clock.advance(by: .seconds(1))
        cache.storeInMemory(Data("their".utf8), their, replacing: [])
      }
      TieredCache(load, resource: cache.resource).storeInMemory(Data("mine".utf8), mine, replacing: [])
      guard !one.memory.isWaiting else { break }
      steps += 1
      #expect(try one.cached() == "their", "\(call)")
    }
    #expect(steps >= 2)
  }

  @Test("of two responses that arrived at the same time, the one that is stored last remains")
  func sameTime() throws {
    let cache = try cache()
    for text in ["first", "second", "third"] {
      cache.storeInMemory(Data(text.utf8), response(text, at: 1, in: cache), replacing: [])
      #expect(try cached() == text)
    }
  }

  @Test("a body that ends after a later response was stored does not replace it", arguments: [false, true])
  func lateBody(isFromCaller: Bool) async throws {
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: gate), .ok("new", cacheControl: "max-age=600"))
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    if isFromCaller {
      try await fixture.manager.store(Data("new".utf8), for: fixture.url)
    } else {
      _ = try await fixture.manager.load(fixture.url, options: .policy(.reload))
    }
    gate.open()
    #expect(try await older.value == "old")
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "new")
  }

  @Test("a response that a caller stores replaces one that arrived after its own head")
  func callersResponse() async throws {
    let cache = try cache()
    let hook = HookedValidator { [fixture] in
      fixture.clock.advance(by: .seconds(2))
      cache.storeInMemory(Data("their".utf8), self.response("their", at: 1, in: cache), replacing: [])
    }
    try await fixture.manager.store(
      Data("own".utf8), for: fixture.url, options: RequestOptions { $0.validator = .use(hook) })
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "own")
  }

  @Test("an older 304 does not replace the metadata of a later one, or of another body")
  func confirmations() async throws {
    fixture.clock.advance(by: .seconds(10))
    let cache = try cache()
    let first = response("body", at: 1, in: cache)
    cache.storeInMemory(Data("body".utf8), first, replacing: [])
    func confirm(at second: Int, until end: Int) async {
      var confirmed = first
      confirmed.metadata.responseTime = start + .seconds(second)
      confirmed.metadata.freshness.freshUntil = start + .seconds(end)
      await cache.confirm(confirmed, TieredCache.Content(body: .none, source: .memory, data: Data("body".utf8)), nil)
    }
    await confirm(at: 3, until: 6_000)
    await confirm(at: 2, until: 1)
    #expect(fixture.manager.cachedInMemory(fixture.url)?.isStale == false)
    let end = memory.entry(for: CacheKey(resource: cache.resource))?.record as? ResponseRecord
    #expect(end?.freshness.freshUntil == start + .seconds(6_000))

    cache.storeInMemory(Data("other".utf8), response("other", at: 4, in: cache), replacing: [])
    await confirm(at: 5, until: 6_000)
    #expect(try cached() == "other")
  }

  @Test("a response whose body is not in memory refuses an earlier one, and no later one")
  func withoutBody() throws {
    fixture.clock.advance(by: .seconds(10))
    let cache = try cache()
    cache.storeInMemory(nil, response("large", at: 2, in: cache), replacing: [])
    #expect(!fixture.manager.core.environment.invalidations.mayHaveMatched(cache.resource, since: cache.logPosition))
    cache.storeInMemory(Data("earlier".utf8), response("earlier", at: 1, in: cache), replacing: [])
    #expect(try cached() == nil)
    cache.storeInMemory(Data("later".utf8), response("later", at: 3, in: cache), replacing: [])
    #expect(try cached() == "later")
  }

  @Test("a response whose body is not in memory is a miss for every lookup")
  func lookupsWithoutBody() async throws {
    let cache = try cache()
    cache.storeInMemory(Data("former".utf8), response("former", at: 0, in: cache), replacing: [])
    fixture.clock.advance(by: .seconds(1))
    cache.storeInMemory(nil, response("large", at: 1, in: cache), replacing: [])
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    #expect(try await fixture.failure(fixture.url, .policy(.cacheOnly)).code == .notCached)
    fixture.network.respond(to: fixture.url, with: .ok("new", cacheControl: "max-age=600"))
    #expect(try await fixture.manager.load(fixture.url).text == "new")
    #expect(fixture.network.conditional == 0)
  }

  @Test("a load into a file does not prevent a later response from being stored")
  func fileLoad() async throws {
    let folder = try DownloadFolder()
    let (film, image) = (Gate(), Gate())
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=600").bodyHeld(by: film),
      .ok("new", cacheControl: "max-age=600").bodyHeld(by: image))
    let older = Task { try await fixture.manager.load(fixture.url, to: folder.file()) }
    await film.arrived()
    fixture.clock.advance(by: .milliseconds(10))
    let newer = Task { try await fixture.manager.load(fixture.url, options: .policy(.reload)).text }
    await image.arrived()
    film.open()
    _ = try await older.value
    image.open()
    #expect(try await newer.value == "new")
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "new")
  }

  @Test("a load that may not write to memory outdates a cached response and leaves nothing of its own", arguments: [false, true])
  func withoutWriting(isCached: Bool) async throws {
    let old = ScriptedResponse.ok("old", cacheControl: "max-age=600")
    if isCached {
      fixture.network.respond(to: fixture.url, with: old)
      _ = try await fixture.manager.load(fixture.url)
    }
    fixture.network.respond(to: fixture.url, with: .ok("new", cacheControl: "max-age=600"))
    fixture.clock.advance(by: .milliseconds(10))
    let options = RequestOptions { ($0.policy, $0.writes) = (.reload, []) }
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "new")
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    if !isCached { #expect(MemoryTier(store: memory).index(of: fixture.url.absoluteString) == nil) }
  }

  @Test("after the clock was set back, a new response replaces the old one", arguments: [false, true])
  func clockSetBack(isListed: Bool) async throws {
    let cache = try cache()
    cache.storeInMemory(Data("old".utf8), response("old", at: 0, in: cache), replacing: [])
    if !isListed { MemoryTier(store: memory).forget("", of: cache.resource) { _ in true } }
    fixture.clock.advance(by: .seconds(-3_600))
    cache.storeInMemory(Data("new".utf8), response("new", at: -3_600, in: cache), replacing: [])
    #expect(try cached() == "new")
  }

  @Test("after the clock was set back, the order of two responses from before then still counts")
  func clockSetBackBetween() async throws {
    let cache = try cache()
    let older = response("old", at: 10, in: cache)
    cache.storeInMemory(Data("new".utf8), response("new", at: 20, in: cache), replacing: [])
    fixture.clock.advance(by: .seconds(-3_600))
    cache.storeInMemory(Data("old".utf8), older, replacing: [])
    #expect(try cached() == "new")
  }

  @Test("a response that is stored during a soft purge is never fresh in memory after the purge", arguments: 1...2)
  func softPurge(call: Int) throws {
    let cache = try cache()
    let freshness = Lock<[Bool]>([])
    // The store is the one without interruptions.
    let (tier, now) = (MemoryTier(store: memory.base), fixture.clock.now)
    @Sendable func watch() {
      memory.interrupt(beforeCall: 1) {
        let metadata = tier.index(of: cache.resource)?.metadata(of: "")
        if let metadata { freshness.withLock { $0.append(metadata.freshness.isFresh(at: now)) } }
        watch()
      }
    }
    memory.interrupt(beforeCall: call) { [fixture] in
      fixture.manager.core.environment.invalidations.advance(with: .everythingSoft)
      #expect(throws: Never.self) { _ = try tier.purge(.everythingSoft, at: now) }
      watch()
    }
    cache.storeInMemory(Data("mine".utf8), response("mine", at: 0, in: cache), replacing: [])
    #expect(freshness.withLock { !$0.isEmpty && !$0.contains(true) })
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
  }
}
