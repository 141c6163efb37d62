public import CacheCore
public import HTTPTypes

/// HTTP caching (RFC 9111, with RFC 9110 §13 and §14, RFC 5861, RFC 8246 and RFC 9213), for one user's own cache or for one that
/// many share: what may be used, what must be asked, what may be stored, and what is sent of it.
///
/// Pure: it is told the time, reads nothing but its arguments, and two calls with equal arguments answer alike.
/// `Modules/ETagValidation/ETagValidation.docc/ETagValidation.md` has the tables: every directive, every malformed input.
///
/// ```swift
/// let validator = ETagValidator()
/// switch validator.plan(request, policy: .standard, stored: stored, now: clock.now) {
/// case .use(let index, _): send(validator.reply(to: request, from: stored[index], now: clock.now))
/// case .fetch(let conditional, _, _): send(conditional)
/// case .answer(let response): show(response)
/// }
/// ```
public struct ETagValidator: ResponseValidator {
  /// How many answers of one resource are kept, unless a validator is told otherwise.
  public static let defaultVariantLimit = 32

  /// The targeted fields that a shared cache heeds, unless a validator is told otherwise: `CDN-Cache-Control` (RFC 9213 §3.1).
  public static let defaultTargets: [HTTPField.Name] = ["CDN-Cache-Control"].compactMap { HTTPField.Name($0) }

  /// What becomes of parts (206).
  public let parts: PartialAnswers
  /// How many answers of one resource are kept, parts included; the oldest give way.
  public let variantLimit: Int
  let rules: ResponseRules
  let secret: DigestSecret

  /// Whose cache it is.
  public var mode: CacheMode { rules.mode }
  /// How a lifetime is guessed for an answer that states none; nil: not at all, so it is revalidated before each use.
  public var heuristics: Heuristics? { rules.heuristics }
  /// The lifetime of an answer that states none and about which nothing was guessed; nil: none.
  public var defaultLifetime: Duration? { rules.defaultLifetime }

  /// A validator of its settings, with the mode's own way to guess a lifetime: none in a private cache, where no statement means
  /// "ask".
  ///
  /// - Parameters:
  ///   - mode: whose cache it is.
  ///   - defaultLifetime: for answers that state no lifetime.
  ///   - targets: the targeted fields that a shared cache heeds, the weightiest first (RFC 9213 §2.2).
  ///   - variantLimit: how many answers of one resource are kept; at least one.
  ///   - parts: what becomes of parts (206).
  ///   - digestSecret: under it credentials become digests. Give a persistent store's validator the same one at each start.
  public init(
    mode: CacheMode = .private, defaultLifetime: Duration? = nil, targets: [HTTPField.Name] = defaultTargets,
    variantLimit: Int = defaultVariantLimit, parts: PartialAnswers = .ignored, digestSecret: DigestSecret = .random()
  ) {
    self.init(
      mode: mode, heuristics: mode.heuristics, defaultLifetime: defaultLifetime, targets: targets, variantLimit: variantLimit,
      parts: parts, digestSecret: digestSecret)
  }

  /// A validator of its settings.
  ///
  /// - Parameters:
  ///   - mode: whose cache it is.
  ///   - heuristics: a share of the time since `Last-Modified` (RFC 9111 §4.2.2); nil: nothing is guessed.
  ///   - defaultLifetime: for answers that state no lifetime, after `heuristics`.
  ///   - targets: the targeted fields that a shared cache heeds, the weightiest first (RFC 9213 §2.2).
  ///   - variantLimit: how many answers of one resource are kept; at least one.
  ///   - parts: what becomes of parts (206).
  ///   - digestSecret: under it credentials become digests. Give a persistent store's validator the same one at each start.
  public init(
    mode: CacheMode = .private, heuristics: Heuristics?, defaultLifetime: Duration? = nil,
    targets: [HTTPField.Name] = defaultTargets, variantLimit: Int = defaultVariantLimit, parts: PartialAnswers = .ignored,
    digestSecret: DigestSecret = .random()
  ) {
    rules = ResponseRules(
      mode: mode, targets: targets, heuristics: heuristics, defaultLifetime: defaultLifetime.map { max(.zero, $0) })
    self.variantLimit = max(1, variantLimit)
    self.parts = parts
    secret = digestSecret
    let guess = heuristics.map { "\($0.percent)% up to \($0.longest)" } ?? "none"
    let lifetime = rules.defaultLifetime.map { "\($0)" } ?? "none"
    let targeted = targets.map(\.canonicalName).joined(separator: " ")
    id = ComponentID(
      ETagValidator.self,
      parameters: "\(mode.rawValue), heuristics: \(guess), default lifetime: \(lifetime), targets: \(targeted), "
        + "variants: \(self.variantLimit), parts: \(parts.rawValue), secret: \(secret.fingerprint)")
  }

  /// Equal for equal settings; tells nothing of the secret but whether it is the same. Made once: every load asks for it.
  public let id: ComponentID

  /// What a hit needs to know about an answer (RFC 9111 §4.2).
  ///
  /// - Parameters:
  ///   - response: the answer's head.
  ///   - requestTime: when the request went out.
  ///   - responseTime: when the answer's head came in.
  public func freshness(of response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp) -> Freshness {
    FreshnessRules(rules: rules).freshness(of: response, requestTime: requestTime, responseTime: responseTime)
  }

  /// The index of the stored answer that a request selects: of those whose selecting fields match, the one with the latest `Date`
  /// (RFC 9111 §4.1); nil when none matches. Parts are not looked at.
  public func selected(by request: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    var latest: Int?
    for index in stored.indices where !stored[index].isPart && matches(stored[index], request) {
      if let known = latest, !Self.isOlder(stored[known], stored[index]) { continue }
      latest = index
    }
    return latest
  }

  /// The text that tells the variants of a resource apart: the request's selecting fields, as the answer's `Vary` names them, in
  /// canonical form.
  public func variant(of response: HTTPResponse, to request: HTTPRequest) -> String {
    SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret, mode: rules.mode).variant
  }

  /// What the answer's `Vary` names; in a private cache `Authorization` as well, named or not.
  public func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] {
    let names = Vary(metadata.response.headerFields).names
    return rules.mode == .shared || names.contains(.authorization) ? names : names + [.authorization]
  }

  func matches(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    SelectingFields.match(metadata, request, secret: secret, mode: rules.mode)
  }

  /// Whether `a` was made earlier than `b`, as their `Date` says, or else came earlier.
  static func isOlder(_ a: StoredMetadata, _ b: StoredMetadata) -> Bool {
    let (first, second) = (date(of: a), date(of: b))
    return first == second ? a.responseTime < b.responseTime : first < second
  }

  private static func date(of metadata: StoredMetadata) -> Timestamp {
    FreshnessRules.date(of: metadata.response.headerFields, receivedAt: metadata.responseTime) ?? metadata.responseTime
  }
}
