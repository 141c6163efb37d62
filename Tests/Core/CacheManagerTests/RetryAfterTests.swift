import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Retry-After in the errors of loads")
struct RetryAfterTests {
  private func refusal(_ status: HTTPResponse.Status, _ fields: HTTPFields = [.retryAfter: "120"]) -> ScriptedResponse {
    .response(status, fields: fields, body: Data("later".utf8))
  }

  @Test(
    "every form of a load reports the delay and the fields of the response",
    arguments: LoadForm.all, [HTTPResponse.Status.tooManyRequests, .serviceUnavailable])
  func forms(_ form: LoadForm, _ status: HTTPResponse.Status) async throws {
    let fixture = try ManagerFixture()
    var fields: HTTPFields = [.retryAfter: "120", .server: "test"]
    fields[.setCookie] = "session=secret"
    fixture.network.respond(to: fixture.url, with: refusal(status, fields))
    let error = try #require(
      await #expect(throws: CacheError.self) { _ = try await form.load(fixture.manager, fixture.url, RequestOptions()) })
    #expect(error.code == .unacceptableStatus && error.status == status.code && error.retryAfter == .seconds(120))
    #expect(error.response?.headerFields[.server] == "test" && error.response?.headerFields[.setCookie] == nil)
    #expect(
      error.description
        == "\(fixture.url): the server answered \(status.code) \(status.reasonPhrase), retry after 120 seconds")
  }

  @Test("values, files, prefetches and all coalesced waiters report the delay")
  func otherForms() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.serve(fixture.url) { [self] _ in refusal(.tooManyRequests).held(by: gate) }
    let (manager, url) = (fixture.manager, fixture.url)
    let loads = (1...3).map { _ in Task { try await manager.load(ResourceRequest(url), as: .counting(Counter())) } }
    await gate.arrived()
    gate.open()
    for load in loads {
      guard case .failure(let error) = await load.result else {
        Issue.record("the load succeeded")
        continue
      }
      #expect((error as? CacheError)?.retryAfter == .seconds(120))
    }
    let file = await #expect(throws: CacheError.self) { try await manager.load(url, to: folder.file()) }
    #expect(file?.retryAfter == .seconds(120))
    let report = await manager.prefetch([url])
    #expect(report.failed.first?.error.retryAfter == .seconds(120))
  }

  @Test("a date is compared with the date of the response")
  func date() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url,
      with: refusal(.serviceUnavailable, [.retryAfter: "Thu, 01 Jan 2015 01:00:10 GMT", .date: "Thu, 01 Jan 2015 01:00:00 GMT"]))
    #expect(try await fixture.failure(fixture.url).retryAfter == .seconds(10))

    let date = HTTPDate(fixture.clock.now + .seconds(30)).description
    fixture.network.respond(to: fixture.url, with: refusal(.serviceUnavailable, [.retryAfter: date]))
    let delay = try #require(try await fixture.failure(fixture.url).retryAfter)
    #expect(delay > .seconds(29) && delay <= .seconds(30))
  }

  @Test("the delay of a stored response shrinks with its age")
  func stored() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: refusal(.tooManyRequests, [.retryAfter: "120", .cacheControl: "max-age=600"]))
    for (age, rest) in [(0, 120), (50, 70), (150, 0)] {
      fixture.clock.advance(by: .seconds(age))
      let error = try await fixture.failure(fixture.url)
      #expect(error.retryAfter == .seconds(rest) && error.status == 429)
      #expect(error.reason.hasSuffix(rest > 0 ? ", retry after \(rest) seconds" : "429 Too Many Requests"))
      fixture.clock.advance(by: .seconds(-age))
    }
    #expect(fixture.network.requests.count == 1)
  }

  @Test("the fallback reason of a stale response has the delay and the fields, for loads and for HTTP callers")
  func fallback() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { [self] _ in refusal(.serviceUnavailable) }
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-if-error=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
    let loaded = try await fixture.manager.load(fixture.url)
    let exchanged = try await fixture.exchange()
    #expect(loaded.text == "old" && exchanged.head.status == .ok)
    for reason in [loaded.fallbackReason, exchanged.fallbackReason] {
      #expect(reason?.retryAfter == .seconds(120) && reason?.response?.headerFields[.retryAfter] == "120")
      #expect(reason?.url == fixture.url.absoluteString && reason?.attempt == 1)
    }
  }

  @Test("the error of a body has the head of its response")
  func body() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"").cut(after: 2))
    let error = try await fixture.failure(fixture.url)
    #expect(error.code == .truncatedBody && error.response?.headerFields[.eTag] == "\"1\"" && error.retryAfter == nil)

    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", fields: [.retryAfter: "120"]).cut(after: 2))
    let later = try await fixture.failure(fixture.url)
    #expect(later.code == .truncatedBody && later.retryAfter == .seconds(120))
  }

  @Test("during a pause, a stored response is served as if the origin were unreachable")
  func pause() async throws {
    let fixture = try ManagerFixture()
    let polite = fixture.network.respectingRetryAfter(clock: fixture.clock)
    let options = RequestOptions { $0.downloader = .use(polite) }
    let other = try fixture.url("/other")
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"))
    fixture.network.respond(to: other, with: refusal(.tooManyRequests), .ok("new"))
    _ = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.failure(other, options).code == .unacceptableStatus)

    let sent = fixture.network.requests.count
    let stale = try await fixture.manager.load(fixture.url, options: options)
    #expect(stale.text == "old" && stale.fallbackReason?.code == .retryLater && stale.fallbackReason?.retryAfter == .seconds(120))
    #expect(try await fixture.send(options: options).cache.contains("detail=retryLater"))
    let error = try await fixture.failure(other, options)
    #expect(error.code == .retryLater && error.url == other.absoluteString)
    #expect(error.reason == "no request was sent, because the server responded with 429 before, retry after 120 seconds")
    #expect(fixture.network.requests.count == sent)

    fixture.clock.advance(by: .seconds(120))
    #expect(try await fixture.manager.load(other, options: options).text == "new")
  }

  @Test("during a pause, a response that must be revalidated is not served, and the error states the delay")
  func forbidden() async throws {
    let fixture = try ManagerFixture()
    let polite = fixture.network.respectingRetryAfter(clock: fixture.clock)
    let options = RequestOptions { $0.downloader = .use(polite) }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, must-revalidate"), refusal(.tooManyRequests))
    _ = try await fixture.manager.load(fixture.url, options: options)
    fixture.clock.advance(by: .seconds(61))
    _ = try await fixture.failure(fixture.url, options)
    #expect(try await fixture.failure(fixture.url, options).code == .retryLater)
    let error = await #expect(throws: CacheError.self) { try await fixture.exchange(options: options) }
    #expect(error?.code == .revalidationFailed && error?.retryAfter == .seconds(120))
  }
}
