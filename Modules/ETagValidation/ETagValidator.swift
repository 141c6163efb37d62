public import CacheCore
public import HTTPTypes

/// HTTP caching for a private cache (RFC 9111, with RFC 9110 §13, RFC 5861 §3 and RFC 8246): what may be used, what must be asked, what may be stored.
///
/// Pure: it is told the time, reads nothing but its arguments, and two calls with equal arguments answer alike. `Docs/ETagValidation.md` has the
/// tables: every directive, every malformed input.
///
/// ```swift
/// let validator = ETagValidator()
/// switch validator.plan(request, policy: .standard, stored: stored, now: clock.now) {
/// case .use(let index, _): show(stored[index])
/// case .fetch(let conditional, _): send(conditional)
/// case .answer(let response): show(response)
/// }
/// ```
public struct ETagValidator: ResponseValidator {
  /// How a lifetime is guessed for an answer that states none; nil: not at all, so it is revalidated before each use.
  public let heuristics: Heuristics?
  /// The lifetime of an answer that states none and about which nothing was guessed; nil: none.
  public let defaultLifetime: Duration?
  let secret: DigestSecret

  /// A validator of its settings. Both ways to guess a lifetime are off by default: no statement means "ask".
  ///
  /// - Parameters:
  ///   - heuristics: a share of the time since `Last-Modified` (RFC 9111 §4.2.2).
  ///   - defaultLifetime: for answers that state no lifetime, after `heuristics`.
  ///   - digestSecret: under it credentials become digests. Give a persistent store's validator the same one at each start.
  public init(heuristics: Heuristics? = nil, defaultLifetime: Duration? = nil, digestSecret: DigestSecret = .random()) {
    let defaultLifetime = defaultLifetime.map { max(.zero, $0) }
    self.heuristics = heuristics
    self.defaultLifetime = defaultLifetime
    secret = digestSecret
    let guess = heuristics.map { "\($0.percent)% up to \($0.longest)" } ?? "none"
    let lifetime = defaultLifetime.map { "\($0)" } ?? "none"
    id = ComponentID(
      ETagValidator.self, parameters: "heuristics: \(guess), default lifetime: \(lifetime), secret: \(secret.fingerprint)")
  }

  /// Equal for equal settings; tells nothing of the secret but whether it is the same. Made once: every load asks for it.
  public let id: ComponentID

  /// What a hit needs to know about an answer (RFC 9111 §4.2).
  ///
  /// - Parameters:
  ///   - response: the answer's head.
  ///   - requestTime: when the request went out.
  ///   - responseTime: when the answer's head came in.
  public func facts(of response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp) -> CachingFacts {
    Freshness(heuristics: heuristics, defaultLifetime: defaultLifetime)
      .facts(of: response, requestTime: requestTime, responseTime: responseTime)
  }

  /// The index of the stored answer that a request selects: of those whose selecting fields match, the one with the latest `Date` (RFC 9111 §4.1);
  /// nil when none matches.
  public func selected(by request: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    let matching = stored.indices.filter { matches(stored[$0], request) }
    guard matching.count > 1 else { return matching.first }
    return matching.max { a, b in
      let (first, second) = (stored[a], stored[b])
      let (firstDate, secondDate) = (Self.date(of: first), Self.date(of: second))
      return firstDate == secondDate ? first.responseTime < second.responseTime : firstDate < secondDate
    }
  }

  /// The text that tells the variants of a resource apart: the request's selecting fields, as the answer's `Vary` names them, in canonical form.
  public func variant(of response: HTTPResponse, to request: HTTPRequest) -> String {
    SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret).variant
  }

  func matches(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    SelectingFields.match(metadata, request, secret: secret)
  }

  private static func date(of metadata: StoredMetadata) -> Timestamp {
    Freshness.date(of: metadata.response.headerFields, receivedAt: metadata.responseTime) ?? metadata.responseTime
  }
}
