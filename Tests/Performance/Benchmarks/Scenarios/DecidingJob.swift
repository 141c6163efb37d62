import CacheCore
import ETagValidation
import HTTPTypes

/// Repetitions of one of the validator's decisions, on the heads that a common server sends.
struct DecidingJob: Job {
  static let name = "deciding"

  enum Decision: String, Codable, Hashable, Sendable, CaseIterable {
    /// Finds that no response is stored.
    case miss
    /// Finds a fresh stored response among the variants of a resource.
    case hit
    /// Makes the head of a response from a stored one.
    case reply
    /// Reads the freshness information from a response's fields.
    case freshness
    /// Makes the stored metadata from a new response.
    case store
    /// Updates the stored metadata from a 304.
    case freshen
    /// Finds that a 404 without a lifetime is not stored.
    case pass
  }

  let decision: Decision
  /// The number of fields of the response, at least 8.
  let fields: Int
  let isShared: Bool
  let repetitions: Int

  func run() async throws -> Measurement {
    let exchange = try DecidingExchange(fields: fields, mode: isShared ? .shared : .private)
    var measurement = Measurement()
    // The first batch is the warm-up.
    for batch in 0...5 {
      let watch = Stopwatch()
      var right = 0
      for _ in 0..<repetitions where exchange.decide(decision) { right += 1 }
      if batch > 0 { watch.stop(&measurement) }
      measurement.check("correct decisions", right, is: repetitions)
    }
    return measurement
  }
}

/// A request, its stored response, and the origin's next response.
private struct DecidingExchange {
  /// The first eight are those of a common server for a file.
  private static let answered = [
    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Server", "nginx/1.25.3"), ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", "20480"), ("Connection", "keep-alive"), ("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"),
    ("ETag", "\"65a-1f2e3d4c\""), ("Cache-Control", "public, max-age=3600, stale-while-revalidate=60"),
    ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT"), ("Vary", "Accept-Encoding"), ("Accept-Ranges", "bytes"),
    ("X-Content-Type-Options", "nosniff"), ("Strict-Transport-Security", "max-age=31536000"),
    ("X-Request-Id", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"), ("Age", "12"),
  ]
  private static let asked = [
    ("Accept", "*/*"), ("Accept-Encoding", "gzip, deflate, br"), ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"),
    ("Accept-Language", "en-US,en;q=0.5"),
  ]

  private let validator: ETagValidator
  private let now = Timestamp(seconds: 784_111_780)
  private let request: HTTPRequest
  private let conditional: HTTPRequest
  private let response: HTTPResponse
  private let notModified: HTTPResponse
  private let notFound: HTTPResponse
  private let stored: [StoredMetadata]

  init(fields: Int, mode: CacheMode) throws {
    validator = ETagValidator(mode: mode, digestSecret: DigestSecret(high: 1, low: 2))
    let more = (0..<max(0, fields - Self.answered.count)).map { ("X-Field-\($0)", "a value of some length, \($0)") }
    response = HTTPResponse(status: .ok, headerFields: Self.fields(Self.answered.prefix(fields) + more))
    notFound = HTTPResponse(status: .notFound, headerFields: Self.fields(Self.answered.prefix(5)))
    notModified = HTTPResponse(
      status: .notModified, headerFields: Self.fields(Self.answered.filter { ["Date", "ETag", "Cache-Control"].contains($0.0) }))
    request = HTTPRequest(
      method: .get, scheme: "https", authority: "example.com", path: "/", headerFields: Self.fields(Self.asked))
    var conditional = request
    conditional.headerFields[.ifNoneMatch] = response.headerFields[.eTag]
    self.conditional = conditional
    let verdict = validator.judge(
      .success(response), to: request, sent: request, fallback: nil, stored: [], requestTime: now, now: now,
      revision: Revision(high: 0, low: 1))
    guard case .store(_, let metadata, _) = verdict else { throw BenchmarkFailure("the response is not stored") }
    stored = [metadata]
  }

  private static func fields(_ lines: some Sequence<(String, String)>) -> HTTPFields {
    HTTPFields(lines.compactMap { line in HTTPField.Name(line.0).map { HTTPField(name: $0, value: line.1) } })
  }

  /// Makes the decision and returns whether it is correct.
  func decide(_ decision: DecidingJob.Decision) -> Bool {
    switch decision {
    case .miss:
      if case .fetch(_, nil, .uriMiss) = validator.plan(request, policy: .standard, stored: [], now: now) { true } else { false }
    case .hit:
      if case .use(0, nil) = validator.plan(request, policy: .standard, stored: stored, now: now) { true } else { false }
    case .reply: validator.reply(to: request, from: stored[0], now: now).content == .whole
    case .freshness: validator.freshness(of: response, requestTime: now, responseTime: now).isFresh(at: now)
    case .store: if case .store = judge(response, sent: request) { true } else { false }
    case .freshen: if case .update(0, _, _) = judge(notModified, sent: conditional) { true } else { false }
    case .pass: if case .pass = judge(notFound, sent: request) { true } else { false }
    }
  }

  private func judge(_ head: HTTPResponse, sent: HTTPRequest) -> ValidationVerdict {
    validator.judge(
      .success(head), to: request, sent: sent, fallback: nil, stored: sent == request ? [] : stored, requestTime: now, now: now,
      revision: Revision(high: 0, low: 2))
  }
}
