import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

@Suite("Failures within the interval of a policy")
struct RequestIntervalTests {
  private let fixture: ManagerFixture
  private let hourly = RequestOptions.policy(.revalidate(atMostEvery: .seconds(3_600)))

  init() throws { fixture = try ManagerFixture() }

  private func hourly(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
    var options = hourly
    change(&options)
    return options
  }

  private var requests: Int { fixture.network.requests.count }

  @Test("without a stored response, the same error follows without a request", arguments: LoadCall.allCases, [410, 500, 429])
  func withoutStored(_ form: LoadCall, status: Int) async throws {
    fixture.network.serve(fixture.url) { _ in .response(HTTPResponse.Status(code: status)) }
    for minute in 0..<60 {
      let error = try await fixture.failure(form, [:], hourly)
      #expect(error.status == status && error.code == .unacceptableStatus && error.url == fixture.url.absoluteString)
      #expect(requests == 1, "after \(minute) minutes")
      fixture.clock.advance(by: .seconds(60))
    }
    #expect(try await fixture.failure(form, [:], hourly).status == status)
    #expect(requests == 2)
  }

  @Test(
    "with a stored response, it is used without a request, and the failure is its reason", arguments: LoadCall.allCases,
    ["max-age=60", "no-cache"])
  func withStored(_ form: LoadCall, cacheControl: String) async throws {
    try await fixture.storeStale(cacheControl: cacheControl)
    fixture.clock.advance(by: .seconds(3_600))
    fixture.network.respond(to: fixture.url, with: .response(.gone), .notModified())
    #expect(try await fixture.failure(form, [:], hourly).status == 410)
    for _ in 0..<3 {
      let result = try await fixture.load(form, [:], hourly)
      #expect(result.text == "old" && result.isUnconfirmed)
      if form != .prefetch, form != .prefetchToDisk { #expect(result.fallbackReason?.status == 410) }
    }
    #expect(requests == 2)
    fixture.clock.advance(by: .seconds(3_600))
    #expect(try await !fixture.load(form, [:], hourly).isUnconfirmed)
    #expect(requests == 3)
  }

  @Test("the delay that the server asked for becomes shorter, also in the reason")
  func delay() async throws {
    fixture.network.respond(to: fixture.url, with: .response(.tooManyRequests, fields: [.retryAfter: "120"]))
    for rest in [120, 70, 20, 0] {
      let error = try await fixture.failure(fixture.url, hourly)
      #expect(error.retryAfter == .seconds(rest))
      #expect(error.reason.hasSuffix(rest > 0 ? ", retry after \(rest) seconds" : "429 Too Many Requests"))
      fixture.clock.advance(by: .seconds(50))
    }
    #expect(requests == 1)
  }

  @Test("a failure for which a stale response was used counts too")
  func fallback() async throws {
    try await fixture.storeStale(cacheControl: "max-age=60, stale-if-error=86400")
    fixture.clock.advance(by: .seconds(3_600))
    fixture.network.respond(to: fixture.url, with: .response(.serviceUnavailable))
    for _ in 0..<3 { #expect(try await fixture.load(.bytes, [:], hourly).fallbackReason?.status == 503) }
    #expect(requests == 2)
  }

  @Test(
    "a request that could not be sent does not count",
    arguments: [
      CacheError.Code.offline, .networkRestricted, .hostNotFound, .connectionRefused, .refused,
    ])
  func unsent(_ code: CacheError.Code) async throws {
    fixture.network.respond(to: fixture.url, with: .failure(code), .ok("new"))
    #expect(try await fixture.failure(fixture.url, hourly).code == code)
    #expect(try await fixture.load(.bytes, [:], hourly).text == "new")
  }

  @Test("a deadline counts, with and without a stored response", arguments: [true, false])
  func deadline(isStored: Bool) async throws {
    let fixture = try ManagerFixture { $0.waitForStores() }
    if isStored { try await fixture.storeStale() }
    fixture.clock.advance(by: .seconds(3_600))
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let options = hourly { $0.timeout = .seconds(5) }
    let first = Task { await Result { try await fixture.load(.bytes, [:], options) } }
    await gate.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    let outcome = await first.value
    let second = await Result { try await fixture.load(.bytes, [:], options) }
    for result in [outcome, second] {
      switch result {
      case .success(let shown): #expect(isStored && shown.fallbackReason?.code == .timedOut)
      case .failure(let error): #expect(!isStored && (error as? CacheError)?.code == .timedOut)
      }
    }
    gate.open()
    await fixture.manager.close()
    #expect(fixture.network.unscripted.isEmpty)
  }

  @Test("a deadline during a lookup does not count")
  func deadlineInLookup() async throws {
    let (fixture, store) = try ManagerFixture.held { $0.waitForStores() }
    fixture.network.respond(to: fixture.url, with: .ok("new"))
    let options = hourly { $0.timeout = .seconds(5) }
    let look = store.hold(.look)

    async let late = fixture.failure(fixture.url, options)
    await look.arrived()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await late.code == .timedOut)
    look.open()
    #expect(try await fixture.load(.bytes, [:], options).text == "new")
  }

  @Test("a deadline while a load waits for memory does not count")
  func deadlineInBudget() async throws {
    let fixture = try ManagerFixture {
      $0.waitForStores()
      $0.memoryBudget = 400_000
    }
    let (gate, large) = (Gate(), try #require(URL(string: "https://other.example/large")))
    fixture.network.respond(to: large, with: .ok(Data(count: 250_000)).chunked(by: 240_000).bodyHeld(by: gate))
    fixture.network.respond(to: fixture.url, with: .ok("new"))
    let options = hourly { $0.timeout = .seconds(5) }
    async let filling = fixture.manager.load(large)
    gate.letThrough()
    try await Polling.until { fixture.manager.memoryUse.inUse == 240_000 }

    async let late = fixture.failure(fixture.url, options)
    try await Polling.until { fixture.manager.memoryUse.waiting == 1 }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    #expect(try await late.code == .timedOut)
    gate.open()
    #expect(try await filling.data.count == 250_000)
    #expect(try await fixture.load(.bytes, [:], options).text == "new")
  }

  @Test("a deadline while the value is made of the response does not count")
  func deadlineInTransform() async throws {
    struct HeldDecoder: ResourceDecoder {
      let id = ComponentID.unique(HeldDecoder.self)
      let begun = Counter()
      let end = DispatchSemaphore(value: 0)

      func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String {
        begun.increment()
        end.wait()
        return String(decoding: data, as: UTF8.self)
      }

      func cost(of value: String) -> Int { value.utf8.count }
    }
    let decoder = HeldDecoder()
    let fixture = try ManagerFixture {
      $0.waitForStores()
      // Apart from the cooperative pool, because the held decoder blocks a thread.
      $0.executor = ProcessingExecutor(queue: DispatchQueue(label: "held"))
    }
    // A stored response would be a hit within the interval, whatever was noted.
    fixture.network.serve(fixture.url) { _ in .ok("new", cacheControl: "no-store") }
    let options = hourly { $0.timeout = .seconds(5) }

    let (manager, url) = (fixture.manager, fixture.url)
    let late = Task { try await manager.load(url, as: ResourceTransform(decoder: decoder), options: options) }
    try await Polling.until { decoder.begun.value == 1 }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))

    await #expect { try await late.value } throws: { ($0 as? CacheError)?.code == .timedOut }
    decoder.end.signal()
    let shown = try await fixture.load(.bytes, [:], options)
    #expect(shown.text == "new" && shown.fallbackReason == nil)
  }

  @Test(
    "a load with other settings that decide about the failure sends its own request",
    arguments: ["statuses", "timeout", "idle timeout", "body", "redirects", "insecure redirects", "interceptor", "hooks"])
  func settings(_ setting: String) async throws {
    fixture.network.serve(fixture.url) { _ in .response(.gone) }
    _ = try await fixture.failure(fixture.url, hourly)
    let other = hourly { options in
      switch setting {
      case "statuses": options.acceptedStatuses = AcceptedStatuses(200..<300, 404..<405)
      case "timeout": options.timeout = .seconds(60)
      case "idle timeout": options.idleTimeout = .seconds(60)
      case "body": options.maximumBodySize = 1_000
      case "redirects": options.redirectLimit = 3
      case "insecure redirects": options.allowsInsecureRedirects = true
      case "interceptor": options.interceptor = .use(RequestInterceptor(willRedirect: { _ in }))
      default: options.hooks = DownloaderHooks { $0.onRequestSent = Delegate { _ in } }
      }
    }
    for _ in 0..<2 { #expect(try await fixture.failure(fixture.url, other).status == 410) }
    #expect(requests == (setting == "hooks" ? 3 : 2))
  }

  @Test("a success ends the failure, also one of another policy whose response is not stored")
  func success() async throws {
    fixture.network.respond(
      to: fixture.url, with: .response(.internalServerError), .ok("new", cacheControl: "no-store"), .ok("newer"))
    #expect(try await fixture.failure(fixture.url, hourly).status == 500)
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.reload)).text == "new")
    #expect(try await fixture.load(.bytes, [:], hourly).text == "newer")
  }

  @Test("requests that need the origin, other policies, partitions and fields are not limited")
  func others() async throws {
    fixture.network.serve(fixture.url) { _ in .response(.gone) }
    _ = try await fixture.failure(fixture.url, hourly)
    _ = try await fixture.failure(fixture.url, .policy(.revalidate()))
    _ = try await fixture.failure(fixture.url, .policy(.standard))
    _ = try await fixture.failure(fixture.url, hourly { $0.partition = "other" })
    _ = try await fixture.failure(.bytes, [.acceptLanguage: "de"], hourly)
    _ = try await fixture.failure(.bytes, [.cacheControl: "no-cache"], hourly)
    _ = try await fixture.failure(.bytes, [.cacheControl: "no-cache"], hourly)
    #expect(requests == 7)
    _ = try await fixture.failure(fixture.url, hourly)
    #expect(requests == 7)
  }

  @Test("after a removal or a purge, a request is sent", arguments: ["remove", "clear", "purge"])
  func removal(_ way: String) async throws {
    fixture.network.serve(fixture.url) { _ in .response(.gone) }
    _ = try await fixture.failure(fixture.url, hourly)
    switch way {
    case "remove": try await fixture.manager.remove(fixture.url)
    case "clear": try await fixture.manager.clear()
    default: try await fixture.manager.purge(.everything)
    }
    _ = try await fixture.failure(fixture.url, hourly)
    #expect(requests == 2)
  }

  @Test("with never, the failure is the error although a response is stored")
  func never() async throws {
    try await fixture.storeStale()
    fixture.clock.advance(by: .seconds(3_600))
    fixture.network.respond(to: fixture.url, with: .response(.serviceUnavailable))
    for _ in 0..<3 { #expect(try await fixture.failure(fixture.url, hourly { $0.staleFallback = .never }).status == 503) }
    #expect(requests == 2)
  }

  @Test("loads that wait for the same failure, and one after it, send one request")
  func coalesced() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: ScriptedResponse.response(.gone).held(by: gate))
    let loads = (0..<5).map { _ in Task { try await fixture.failure(fixture.url, hourly) } }
    await gate.arrived()
    gate.open()
    for load in loads { #expect(try await load.value.status == 410) }
    #expect(try await fixture.failure(fixture.url, hourly).status == 410)
    #expect(requests == 1)
  }

  @Test("the failures of many resources use bounded memory")
  func bounded() async throws {
    for number in 0..<2_100 {
      let url = try fixture.url("/\(number)")
      fixture.network.serve(url) { _ in .response(.gone) }
      _ = try await fixture.failure(url, hourly)
      fixture.clock.advance(by: .milliseconds(1))
    }
    #expect(try await fixture.failure(try fixture.url("/2099"), hourly).status == 410)
    #expect(requests == 2_100)
    _ = try await fixture.failure(try fixture.url("/0"), hourly)
    #expect(requests == 2_101)
  }
}
