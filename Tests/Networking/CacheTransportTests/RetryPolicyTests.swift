import CacheCore
import CacheTransport
import HTTPTypes
import Testing

@Suite("Retry policies")
struct RetryPolicyTests {
  /// 2026-01-01 00:00:00 UTC, a Thursday.
  private let now = Timestamp(seconds: 1_767_225_600)

  private func decide(
    _ reason: Result<HTTPResponse, CacheError>, _ policy: RetryPolicy = .exact(), method: HTTPRequest.Method = .get,
    attempt: Int = 1,
    elapsed: Duration = .zero, fraction: Double = 1, timeout: Duration? = nil
  ) -> RetryDecision {
    let failure = RetryFailure(reason, request: request(method: method).head, attempt: attempt, elapsed: elapsed)
    return policy.decision(on: failure, fraction: fraction, now: now, timeout: timeout)
  }

  private func result(_ status: Int, retryAfter: String? = nil, date: String? = nil) -> Result<HTTPResponse, CacheError> {
    var fields = HTTPFields()
    fields[.retryAfter] = retryAfter
    fields[.date] = date
    return .success(HTTPResponse(status: .init(code: status), headerFields: fields))
  }

  @Test(
    "a policy retries only errors of the connection",
    arguments: [
      (CacheError.Code.connectionLost, true), (.connectionRefused, true), (.timedOut, true), (.truncatedBody, true),
      (.hostNotFound, true), (.offline, true), (.bodyInterrupted, true), (.cancelled, false), (.tlsFailure, false),
      (.refused, false),
      (.addressRefused, false), (.networkRestricted, false), (.malformedResponse, false), (.invalidURL, false),
      (.unsupportedScheme, false), (.bodyTooLarge, false), (.closed, false), (.misuse, false), (.tooManyRedirects, false),
      (.damagedContentCoding, false), (.proxyFailure, false), (.retryLater, false), (.other, false),
    ])
  func errors(_ code: CacheError.Code, _ isRetried: Bool) {
    let decision = decide(.failure(CacheError(code, reason: "so")))
    #expect(decision == (isRetried ? .retry(after: .seconds(1)) : .giveUp))
  }

  @Test(
    "a policy retries only transient statuses",
    arguments: [
      (200, false), (304, false), (400, false), (401, false), (403, false), (404, false), (408, true), (410, false), (416, false),
      (425, true), (429, true), (500, true), (501, false), (502, true), (503, true), (504, true), (505, false),
    ])
  func statuses(_ status: Int, _ isRetried: Bool) {
    #expect(decide(result(status)) == (isRetried ? .retry(after: .seconds(1)) : .giveUp))
  }

  @Test("the statuses, errors and methods of a policy can be changed")
  func sets() {
    var policy = RetryPolicy.exact()
    policy.statuses = [404]
    policy.errors.remove(.hostNotFound)
    policy.methods.insert(.post)
    #expect(decide(result(404), policy) == .retry(after: .seconds(1)))
    #expect(decide(result(503), policy) == .giveUp)
    #expect(decide(.failure(CacheError(.hostNotFound, reason: "")), policy) == .giveUp)
    #expect(decide(.failure(lost), policy, method: .post) == .retry(after: .seconds(1)))
  }

  @Test(
    "a policy retries only idempotent methods",
    arguments: [
      (HTTPRequest.Method.get, true), (.head, true), (.options, true), (.put, true), (.delete, true), (.trace, true),
      (.post, false),
      (.patch, false), (.connect, false),
    ])
  func methods(_ method: HTTPRequest.Method, _ isRetried: Bool) {
    #expect(decide(.failure(lost), method: method) == (isRetried ? .retry(after: .seconds(1)) : .giveUp))
    #expect(decide(result(503), method: method) == (isRetried ? .retry(after: .seconds(1)) : .giveUp))
  }

  @Test("a policy limits the number of requests", arguments: 1...5)
  func bound(_ maximum: Int) {
    for attempt in 1...6 {
      let isRetried = decide(.failure(lost), .exact(maximum), attempt: attempt) != .giveUp
      #expect(isRetried == (attempt < maximum))
    }
    #expect(decide(.failure(lost), .never) == .giveUp)
  }

  @Test("delays grow up to the cap")
  func growth() {
    let delays = (1...6).map { decide(.failure(lost), .exact(99), attempt: $0) }
    #expect(delays == [1, 2, 4, 8, 8, 8].map { .retry(after: .seconds($0)) })
  }

  @Test(
    "a delay is drawn from zero to its limit",
    arguments: [(0.0, 0), (0.25, 1_000), (0.5, 2_000), (1.0, 4_000), (7.0, 4_000), (-1.0, 0)])
  func jitter(_ fraction: Double, _ milliseconds: Int) {
    #expect(decide(.failure(lost), attempt: 3, fraction: fraction) == .retry(after: .milliseconds(milliseconds)))
  }

  @Test(
    "a policy waits as long as the server requests, by number or by date",
    arguments: [
      ("0", nil, 1_000), ("1", nil, 1_000), ("30", nil, 30_000), (" 30 ", nil, 30_000), ("60", nil, 60_000),
      ("Thu, 01 Jan 2026 00:00:30 GMT", nil, 30_000), ("Thu, 01 Jan 2026 00:00:00 GMT", nil, 1_000),
      ("Wed, 31 Dec 2025 23:59:00 GMT", nil, 1_000), ("Thursday, 01-Jan-26 00:00:20 GMT", nil, 20_000),
      // By the server's clock: one is an hour ahead of ours, and one is behind.
      ("Thu, 01 Jan 2026 01:00:10 GMT", "Thu, 01 Jan 2026 01:00:00 GMT", 10_000),
      ("Wed, 31 Dec 2025 23:00:05 GMT", "Wed, 31 Dec 2025 23:00:00 GMT", 5_000),
      // An invalid value is ignored.
      ("soon", nil, 1_000), ("", nil, 1_000), ("-5", nil, 1_000), ("+5", nil, 1_000), ("1.5", nil, 1_000), ("5, 6", nil, 1_000),
    ] as [(String, String?, Int)])
  func retryAfter(_ value: String, _ date: String?, _ milliseconds: Int) {
    #expect(decide(result(503, retryAfter: value, date: date)) == .retry(after: .milliseconds(milliseconds)))
    #expect(decide(result(429, retryAfter: value, date: date)) == .retry(after: .milliseconds(milliseconds)))
  }

  @Test(
    "a policy gives up if Retry-After exceeds its limit",
    arguments: [
      "61", "86400", "9223372036854775807", "99999999999999999999999", "Thu, 01 Jan 2026 00:01:01 GMT",
      "Fri, 31 Dec 9999 23:59:59 GMT",
    ])
  func longRetryAfter(_ value: String) {
    #expect(decide(result(503, retryAfter: value)) == .giveUp)
  }

  @Test("of several Retry-After fields, the longest delay applies", arguments: [["5", "30"], ["30", "soon"], ["30", "30"]])
  func repeatedRetryAfter(_ values: [String]) {
    var fields = HTTPFields()
    fields[values: .retryAfter] = values
    let response = HTTPResponse(status: .serviceUnavailable, headerFields: fields)
    #expect(decide(.success(response)) == .retry(after: .seconds(30)))
  }

  @Test("the delay of an error is respected like that of a response", arguments: [(0, 1), (30, 30), (60, 60), (61, nil)])
  func retryAfterOfError(_ seconds: Int, _ expected: Int?) {
    var policy = RetryPolicy.exact()
    policy.errors.insert(.retryLater)
    let error = CacheError(.retryLater, reason: "", retryAfter: .seconds(seconds))
    #expect(decide(.failure(error), policy) == expected.map { .retry(after: .seconds($0)) } ?? .giveUp)
  }

  @Test("the back-off delay may exceed Retry-After")
  func backoffAboveRetryAfter() {
    #expect(decide(result(503, retryAfter: "3"), attempt: 3) == .retry(after: .seconds(4)))
  }

  @Test(
    "no retry is sent after the time limit",
    arguments: [(0, true), (8, true), (9, false), (10, false), (11, false)])
  func time(_ elapsed: Int, _ isRetried: Bool) {
    var policy = RetryPolicy.exact()
    policy.timeLimit = .seconds(10)
    let expected: RetryDecision = isRetried ? .retry(after: .seconds(1)) : .giveUp
    #expect(decide(.failure(lost), policy, elapsed: .seconds(elapsed)) == expected)
    #expect(decide(.failure(lost), elapsed: .seconds(elapsed), timeout: .seconds(10)) == expected)
  }

  @Test("a closure decides within the limits")
  func judge() {
    var policy = RetryPolicy.exact(3)
    policy.judge = Delegate { failure in
      switch failure.status {
      case 404: .retry(after: .seconds(9))
      case 503: .giveUp
      default: failure.error?.code == .tlsFailure || failure.request.method == .post ? .retry(after: .zero) : nil
      }
    }
    #expect(decide(result(404), policy) == .retry(after: .seconds(9)))
    #expect(decide(result(503), policy) == .giveUp)
    #expect(decide(result(502), policy) == .retry(after: .seconds(1)))
    #expect(decide(result(200), policy) == .giveUp)
    #expect(decide(.failure(CacheError(.tlsFailure, reason: "")), policy) == .retry(after: .zero))
    #expect(decide(.failure(lost), policy, method: .post) == .retry(after: .zero))
    #expect(decide(result(404), policy, attempt: 3) == .giveUp)
    #expect(decide(result(404), policy, elapsed: .seconds(2), timeout: .seconds(10)) == .giveUp)
  }

  @Test("a cancellation is never retried, regardless of the closure")
  func cancellation() {
    var policy = RetryPolicy.exact()
    policy.errors.insert(.cancelled)
    policy.judge = Delegate { _ in .retry(after: .zero) }
    #expect(decide(.failure(.cancelled), policy) == .giveUp)
  }

  @Test(
    "an invalid back-off is treated as the nearest valid one",
    arguments: [
      (Backoff(base: .seconds(-1), cap: .seconds(5)), 0), (Backoff(base: .seconds(9), cap: .seconds(5)), 5),
      (Backoff(base: .seconds(1), cap: .seconds(5), multiplier: 0.1), 1), (Backoff(base: .seconds(1), cap: .seconds(-5)), 0),
      (Backoff(base: .seconds(1), cap: .seconds(5), multiplier: .infinity), 5),
      (Backoff(base: .nanoseconds(1), cap: .seconds(5), multiplier: 1e300), 5),
    ])
  func backoff(_ backoff: Backoff, _ seconds: Int) {
    #expect(backoff.limit(after: 40) == .seconds(seconds))
    #expect(backoff.delay(after: .max, fraction: .nan) <= .seconds(max(seconds, 0)))
  }

  @Test("random numbers cover the whole range")
  func random() {
    let drawn = (0..<1_000).map { _ in RetryPolicy.standard.random() }
    #expect(drawn.allSatisfy { (0...1).contains($0) })
    #expect((drawn.min() ?? 1) < 0.1 && (drawn.max() ?? 0) > 0.9)
  }
}

@Suite("Brief retry policy")
struct BriefRetryPolicyTests {
  private func decide(
    _ reason: Result<HTTPResponse, CacheError>, method: HTTPRequest.Method = .get, attempt: Int = 1
  ) -> RetryDecision {
    RetryPolicy.brief.decision(
      on: RetryFailure(reason, request: request(method: method).head, attempt: attempt, elapsed: .zero), fraction: 1,
      now: Timestamp(seconds: 1_767_225_600))
  }

  @Test("two retries are sent within three quarters of a second")
  func waits() {
    let lost = Result<HTTPResponse, CacheError>.failure(CacheError(.connectionLost, reason: ""))
    #expect(decide(lost) == .retry(after: .milliseconds(250)))
    #expect(decide(lost, attempt: 2) == .retry(after: .milliseconds(500)))
    #expect(decide(lost, attempt: 3) == .giveUp)
  }

  @Test(
    "only safe methods are retried",
    arguments: [(HTTPRequest.Method.get, true), (.head, true), (.put, false), (.delete, false)])
  func methods(_ method: HTTPRequest.Method, _ isRetried: Bool) {
    #expect((decide(.failure(CacheError(.connectionLost, reason: "")), method: method) != .giveUp) == isRetried)
  }

  @Test(
    "the policy gives up at once if a stale response should be served",
    arguments: [CacheError.Code.offline, .hostNotFound, .connectionRefused, .timedOut, .tlsFailure])
  func errors(_ code: CacheError.Code) { #expect(decide(.failure(CacheError(code, reason: ""))) == .giveUp) }

  @Test(
    "transient statuses are retried, with a Retry-After of at most two seconds",
    arguments: [(503, nil, true), (503, "2", true), (503, "3", false), (504, nil, true), (500, nil, false), (429, nil, false)])
  func statuses(_ status: Int, _ retryAfter: String?, _ isRetried: Bool) {
    var fields = HTTPFields()
    fields[.retryAfter] = retryAfter
    let response = HTTPResponse(status: .init(code: status), headerFields: fields)
    #expect((decide(.success(response)) != .giveUp) == isRetried)
  }
}
