public import CacheCore
public import HTTPTypes

/// A validator with the rules of HTTP caching, for a private cache or a shared one. It implements RFC 9111, with RFC 9110 §13 and
/// §14, RFC 5861, RFC 8246 and RFC 9213.
///
/// It is pure: it receives the time, reads only its arguments, and returns equal results for equal arguments.
/// <doc:ETagValidation> has tables of all directives and of all malformed input.
///
/// A manager fails each load with `CacheError.Code.invalidConfiguration` if a number of its validator is out of range. The
/// validator's own functions cannot fail, and use the nearest valid number.
///
/// ```swift
/// let validator = ETagValidator()
/// switch validator.plan(request, policy: .standard, stored: stored, now: clock.now) {
/// case .use(let index, _): send(validator.reply(to: request, from: stored[index], now: clock.now))
/// case .fetch(let conditional, _, _): send(conditional)
/// case .combine: break  // occurs only with `PartialResponses.completed`
/// case .respond(let response): show(response)
/// }
/// ```
public struct ETagValidator: ResponseValidator, CheckedComponent {
  /// The default maximum number of stored responses of a resource.
  public static let defaultVariantLimit = 32

  /// The default targeted field of a shared cache: `CDN-Cache-Control` (RFC 9213 §3.1).
  public static let defaultTargets: [HTTPField.Name] = ["CDN-Cache-Control"].compactMap { HTTPField.Name($0) }

  /// The use of partial responses (206).
  public let parts: PartialResponses
  /// The maximum number of stored responses of a resource, without partial ones. The oldest are removed first.
  public let variantLimit: Int
  let negotiation: ContentNegotiation
  let rules: ResponseRules
  let secret: DigestSecret
  package let validity: Result<Void, CacheError>

  /// The kind of cache, private or shared.
  public var mode: CacheMode { rules.mode }
  /// The heuristic lifetime of a response that states none. With `nil`, such a response is revalidated before each use.
  public var heuristics: Heuristics? { rules.heuristics }
  /// The lifetime of a response that states none and has no heuristic one, or `nil` for none.
  public var defaultLifetime: Duration? { rules.defaultLifetime }
  /// Whether a shared cache treats `Set-Cookie` and `Cookie` like any other field.
  ///
  /// If not, a shared cache neither stores nor shares a response that may belong to one session. That is a response with
  /// `Set-Cookie`, or to a request with `Cookie`, without a permission of the origin: `public`, or a lifetime above zero without
  /// `no-cache` (RFC 9111 §7.3, §5.2.2.9). A private cache stores it in any case.
  public var ignoresCookies: Bool { rules.ignoresCookies }
  /// Whether `Accept-Language` is compared only by weight (RFC 9110 §12.5.4), if no stored response matches the request.
  ///
  /// A response that was stored for the same languages and weights is used, in any order. So is a response whose
  /// `Content-Language` is the only language that the request weighs most: `de` for `de, en;q=0.5`, but not for `de-AT` and not
  /// for `en, de`. This does not affect what is stored.
  public var negotiatesLanguages: Bool { negotiation.contains(.languages) }
  /// Whether `Accept` is compared only by the image formats that not every client decodes, if no stored response matches the
  /// request.
  ///
  /// A stored image is used if the request accepts its type, and if both requests name the same types with the same weights.
  /// `image/jpeg`, `image/png`, `image/apng`, `image/gif`, `image/*` and `*/*` are not compared. This does not affect what is
  /// stored.
  public var negotiatesImages: Bool { negotiation.contains(.images) }

  /// Creates a validator with the mode's default heuristics. A private cache has none, so it revalidates a response without a
  /// stated lifetime before each use.
  ///
  /// - Parameters:
  ///   - mode: The kind of cache.
  ///   - defaultLifetime: The lifetime of responses that state none, at least zero.
  ///   - targets: The targeted fields that a shared cache obeys, in order of precedence (RFC 9213 §2.2).
  ///   - variantLimit: The maximum number of stored responses of a resource, at least one.
  ///   - parts: The use of partial responses (206).
  ///   - ignoresCookies: Whether a shared cache treats `Set-Cookie` and `Cookie` like any other field.
  ///   - negotiatesLanguages: Whether `Accept-Language` is compared only by weight.
  ///   - negotiatesImages: Whether `Accept` is compared only by the image formats that not every client decodes.
  ///   - digestSecret: The key for digests of credentials. A persistent store needs the same one at each start.
  public init(
    mode: CacheMode = .private, defaultLifetime: Duration? = nil, targets: [HTTPField.Name] = defaultTargets,
    variantLimit: Int = defaultVariantLimit, parts: PartialResponses = .ignored, ignoresCookies: Bool = false,
    negotiatesLanguages: Bool = false, negotiatesImages: Bool = false, digestSecret: DigestSecret = .random()
  ) {
    self.init(
      mode: mode, heuristics: mode.heuristics, defaultLifetime: defaultLifetime, targets: targets, variantLimit: variantLimit,
      parts: parts, ignoresCookies: ignoresCookies, negotiatesLanguages: negotiatesLanguages,
      negotiatesImages: negotiatesImages, digestSecret: digestSecret)
  }

  /// Creates a validator.
  ///
  /// - Parameters:
  ///   - mode: The kind of cache.
  ///   - heuristics: The heuristic lifetime, a percentage of the time since `Last-Modified` (RFC 9111 §4.2.2), or `nil` for none.
  ///   - defaultLifetime: The lifetime of responses that state none and have no heuristic one, at least zero.
  ///   - targets: The targeted fields that a shared cache obeys, in order of precedence (RFC 9213 §2.2).
  ///   - variantLimit: The maximum number of stored responses of a resource, at least one.
  ///   - parts: The use of partial responses (206).
  ///   - ignoresCookies: Whether a shared cache treats `Set-Cookie` and `Cookie` like any other field.
  ///   - negotiatesLanguages: Whether `Accept-Language` is compared only by weight.
  ///   - negotiatesImages: Whether `Accept` is compared only by the image formats that not every client decodes.
  ///   - digestSecret: The key for digests of credentials. A persistent store needs the same one at each start.
  public init(
    mode: CacheMode = .private, heuristics: Heuristics?, defaultLifetime: Duration? = nil,
    targets: [HTTPField.Name] = defaultTargets, variantLimit: Int = defaultVariantLimit, parts: PartialResponses = .ignored,
    ignoresCookies: Bool = false, negotiatesLanguages: Bool = false, negotiatesImages: Bool = false,
    digestSecret: DigestSecret = .random()
  ) {
    validity = Result { () throws(CacheError) in
      try CacheError.require("defaultLifetime", defaultLifetime, in: .zero...)
      try CacheError.require("variantLimit", variantLimit, in: 1...)
      try CacheError.require("percent", heuristics?.percent, in: 0...100)
      try CacheError.require("longest", heuristics?.longest, in: .zero...)
    }
    let heuristics = heuristics.map { Heuristics(percent: min(100, max(0, $0.percent)), longest: max(.zero, $0.longest)) }
    rules = ResponseRules(
      mode: mode, targets: targets, heuristics: heuristics, defaultLifetime: defaultLifetime.map { max(.zero, $0) },
      ignoresCookies: ignoresCookies)
    self.variantLimit = max(1, variantLimit)
    self.parts = parts
    negotiation = [negotiatesLanguages ? .languages : [], negotiatesImages ? .images : []]
    secret = digestSecret
    let guess = heuristics.map { "\($0.percent)% up to \($0.longest)" } ?? "none"
    let lifetime = rules.defaultLifetime.map { "\($0)" } ?? "none"
    let targeted = targets.map(\.canonicalName).joined(separator: " ")
    id = ComponentID(
      ETagValidator.self,
      parameters: "\(mode.rawValue), heuristics: \(guess), default lifetime: \(lifetime), targets: \(targeted), "
        + "variants: \(self.variantLimit), parts: \(parts.rawValue), cookies: \(ignoresCookies), "
        + "negotiation: \(negotiation.rawValue), secret: \(secret.fingerprint)")
  }

  /// The identity, which is equal for equal settings. It reveals of the secret only whether two are equal. It is computed once,
  /// because every load reads it.
  public let id: ComponentID

  /// Returns the freshness of a response (RFC 9111 §4.2).
  ///
  /// - Parameters:
  ///   - response: The header of the response.
  ///   - requestTime: The time at which the request was sent.
  ///   - responseTime: The time at which the header of the response arrived.
  public func freshness(of response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp) -> Freshness {
    ResponseSummary(response.headerFields, rules, responseTime: responseTime)
      .freshness(of: response, requestTime: requestTime, rules)
  }

  /// Returns the index of the stored response that a request selects: the one with the latest `Date` among those whose selecting
  /// fields match (RFC 9111 §4.1). Returns `nil` if none matches. Partial responses are ignored.
  ///
  /// A response without `Vary` is selected only if no response with it matches. Some origins omit the field from their default
  /// response.
  ///
  /// A shared cache ignores responses that it would not have stored, such as a `private` one that a private cache has stored.
  public func selected(by request: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    var latest: Int?
    for index in stored.indices where !stored[index].isPart && matches(stored[index], request) {
      if let known = latest, !Self.isPreferred(stored[index], to: stored[known]) { continue }
      latest = index
    }
    return latest
  }

  /// Returns the text that identifies a variant: the request's selecting fields in canonical form, as listed by the response's
  /// `Vary`.
  public func variant(of response: HTTPResponse, to request: HTTPRequest) -> String {
    SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret, mode: rules.mode).variant
  }

  /// Returns the names in the response's `Vary`. A private cache always adds `Authorization`.
  public func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] {
    let names = Vary(metadata.response.headerFields).names
    return rules.mode == .shared || names.contains(.authorization) ? names : names + [.authorization]
  }

  func matches(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    SelectingFields.match(metadata, request, secret: secret, mode: rules.mode) && accepts(metadata)
  }

  /// Returns whether `a` is selected before `b` if both match: it alone has a `Vary` field, or it is later.
  private static func isPreferred(_ a: StoredMetadata, to b: StoredMetadata) -> Bool {
    let (first, second) = (a.response.headerFields.contains(.vary), b.response.headerFields.contains(.vary))
    return first == second ? isOlder(b, a) : first
  }

  /// Returns whether `a` is older than `b` by `Date`, or else by time of arrival.
  static func isOlder(_ a: StoredMetadata, _ b: StoredMetadata) -> Bool {
    let (first, second) = (date(of: a), date(of: b))
    return first == second ? a.responseTime < b.responseTime : first < second
  }

  private static func date(of metadata: StoredMetadata) -> Timestamp {
    metadata.response.headerFields.date(receivedAt: metadata.responseTime) ?? metadata.responseTime
  }
}

/// The kind of a cache (RFC 9111 §1).
public enum CacheMode: String, Hashable, Sendable, CaseIterable {
  /// A cache for a single user, such as an app's.
  case `private`
  /// A cache for many users, such as a proxy or a content delivery network. It obeys `s-maxage`, `proxy-revalidate`, `private`
  /// and targeted fields.
  case shared

  /// The default heuristics for responses that state no lifetime. A private cache has none, so that its user sees the current
  /// state. A shared cache has a tenth of the age, which origins expect.
  public var heuristics: Heuristics? { self == .shared ? Heuristics() : nil }
}

/// A heuristic lifetime for responses that state none (RFC 9111 §4.2.2): a percentage of the time since the last modification.
///
/// It applies only to heuristically cacheable status codes (RFC 9110 §15.1), and only with a valid `Last-Modified` field.
public struct Heuristics: Hashable, Sendable {
  /// The percentage, from 0 to 100.
  public let percent: Int
  /// The maximum lifetime, at least zero.
  public let longest: Duration

  /// Creates heuristics. The default is 10 %, as the RFC suggests, and at most one day.
  public init(percent: Int = 10, longest: Duration = .seconds(86_400)) {
    (self.percent, self.longest) = (percent, longest)
  }
}

/// The rule for storing responses with a given status (RFC 9110 §15.1, RFC 9111 §3).
enum StatusRule {
  /// The response is stored always, while it is fresh, as a part, or never.
  case always, whileFresh, part, never

  /// Returns the rule for a status code. Errors, temporary redirects and unknown status codes are stored only for their stated
  /// lifetime, so that a cache does not serve an outdated 404 without revalidation.
  init(_ code: Int) {
    self =
      switch code {
      case 200, 203, 204, 300, 301, 308: .always
      case 206: .part
      case 304: .never
      // These concern the proxy, precondition, range or expectation of this request, not the resource.
      case 407, 412, 416, 417: .never
      case 200...599: .whileFresh
      default: .never
      }
  }

  /// Returns whether a status code is heuristically cacheable (RFC 9110 §15.1).
  static func isHeuristicallyCacheable(_ code: Int) -> Bool {
    [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
  }

  /// Returns whether this cache understands the caching requirements of a status, as `must-understand` requires (RFC 9111
  /// §5.2.2.3). These are the codes of RFC 9110 that it stores.
  static func isUnderstood(_ code: Int) -> Bool {
    switch code {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
  }
}
