public import CacheCore
public import HTTPTypes

/// The rules of HTTP caching for a `ResponseValidator`, as a table of plain values for any test framework: RFC 9111, with the
/// parts of RFC 9110, RFC 5861, RFC 8246 and RFC 9213 that concern a cache.
///
/// ```swift
/// @Test(arguments: ValidatorContract.cases(for: .private))
/// func myValidator(_ rule: ValidatorContract.Case) throws {
///   try rule.run(on: MyValidator())
/// }
/// ```
///
/// A case is one requirement: requests at given times, the responses of the origin, and the expected decisions. ``Case/level``
/// states how binding it is. A validator that stores or uses less than it may is correct. It fails the cases of ``Level/may``
/// that it makes no use of.
public enum ValidatorContract {
  /// A requirement, and the requests that show whether a validator satisfies it.
  public struct Case: Sendable, CustomStringConvertible {
    /// The section that states the requirement, such as `RFC 9111 §4.2.4`.
    public let section: String
    /// The level of the requirement.
    public let level: Level
    /// The requirement as a sentence.
    public let requirement: String
    /// The kinds of caches that the requirement concerns.
    public let caches: Set<CacheKind>
    /// The requests, in order. The first ones usually make the cache store responses, and the last one shows the effect.
    public let steps: [Step]

    /// The section and the requirement.
    public var name: String { "\(section): \(requirement)" }

    public var description: String { name }

    /// Checks the requirement with a new, empty cache.
    ///
    /// The validator must be one for a cache of a kind in ``caches``.
    ///
    /// - Throws: ``ContractViolation`` with the number of the step that the validator violates.
    public func run(on validator: any ResponseValidator) throws {
      var cache = CacheUnderTest(validator)
      for (index, step) in steps.enumerated() {
        do {
          try step.check(try cache.perform(step))
        } catch let violation as ContractViolation {
          throw ContractViolation("step \(index + 1), \(step): \(violation.description)")
        }
      }
    }
  }

  /// The level of a requirement (RFC 2119).
  public enum Level: String, Hashable, Sendable, CaseIterable {
    /// An absolute requirement or prohibition.
    case must = "MUST"
    /// A recommendation.
    case should = "SHOULD"
    /// A permission. A cache that makes no use of it sends more requests.
    case may = "MAY"
  }

  /// The kind of a cache (RFC 9111 §1).
  public enum CacheKind: String, Hashable, Sendable, CaseIterable {
    /// A cache for a single user.
    case `private`
    /// A cache for many users.
    case shared
  }

  /// The use of the stored responses and of the origin for a request.
  public enum Outcome: String, Hashable, Sendable, CaseIterable {
    /// A stored response is used, and no request is sent.
    case used
    /// A stored response is used, and revalidated in the background.
    case usedWhileRevalidated
    /// A request is sent, with any result.
    case forwarded
    /// A request is sent, and its 304 confirms a stored response, which is used.
    case validated
    /// A request is sent, and its response is returned and stored.
    case stored
    /// A request is sent, and its response or error is returned and not stored.
    case passed
    /// A request for the bytes that stored parts lack is sent, and the reply has the bytes of all parts.
    case completed
    /// A request is sent, and its response leads to another request, with only the client's own conditions and range.
    case repeated
    /// A request is sent, and a stored response is used in place of the origin's error.
    case servedStale
    /// No request is sent, and no stored response is used: the reply is a 504.
    case gatewayTimeout
  }

  /// A request, the origin's response if the request reaches the origin, and the expected decisions.
  public struct Step: Sendable {
    /// The time of the request after the start of the case.
    public let time: Duration
    /// The client's request.
    public let request: HTTPRequest
    /// The policy of the request.
    public let policy: LoadPolicy
    /// The time between the request and the response.
    public let delay: Duration
    /// The header of the origin's response, or `nil` if the origin cannot be reached. The body has as many bytes as its
    /// `Content-Length` states, or 100.
    public let response: HTTPResponse?
    /// The expected outcome.
    public let outcome: Outcome
    /// The expected fields of the request that the cache sends. The value is `nil` for a field that must be absent.
    public let sent: [HTTPField.Name: String?]
    /// The expected status of the reply to the client, or `nil` for any.
    public let status: Int?
    /// The expected fields of the reply to the client. The value is `nil` for a field that must be absent.
    public let fields: [HTTPField.Name: String?]
    /// The expected bytes of the stored body that the client receives, or `nil` for any.
    public let content: StoredReply.Content?
  }

  /// All requirements.
  public static let cases: [Case] = Array(
    [
      storing, permissions, statuses, fieldsInStore, reuse, variants, lifetimes, heuristics, ages, staleness, revalidating,
      conditions, confirmations, updates, invalidation, ranges, partialContent, requestDirectives, responseDirectives, extensions,
    ].joined())

  /// Returns the requirements for a kind of cache.
  public static func cases(for cache: CacheKind) -> [Case] { cases.filter { $0.caches.contains(cache) } }

  /// The time at which each case starts: 1 January 2026, 00:00 UTC.
  public static let start = Timestamp(seconds: 1_767_225_600)
}

extension ValidatorContract.Step: CustomStringConvertible {
  /// The method and the time of the request.
  public var description: String { "\(request.method.rawValue) at \(time.components.seconds) s" }

  /// Checks what a cache did.
  func check(_ seen: ValidatorContract.Decisions) throws {
    let isAsExpected = outcome == .forwarded ? seen.isForwarded : seen.outcome == outcome
    guard isAsExpected else { throw ContractViolation("expected \(outcome.rawValue), saw \(seen.outcome.rawValue)") }
    if !sent.isEmpty {
      guard let request = seen.sent else { throw ContractViolation("no request was sent") }
      try Self.check(request.headerFields, sent, "of the request that was sent")
    }
    if let status { try ContractViolation.expectEqual(seen.reply?.status.code, status, "the status of the reply") }
    try Self.check(seen.reply?.headerFields ?? [:], fields, "of the reply")
    if let content { try ContractViolation.expectEqual(seen.content, content, "the bytes of the reply") }
  }

  private static func check(_ seen: HTTPFields, _ expected: [HTTPField.Name: String?], _ what: String) throws {
    for (name, value) in expected.sorted(by: { $0.key.canonicalName < $1.key.canonicalName }) {
      try ContractViolation.expectEqual(seen[name] ?? "none", value ?? "none", "the field \(name.rawName) \(what)")
    }
  }
}

// The notation of the table.
extension ValidatorContract {
  /// Returns a requirement.
  static func row(
    _ section: String, _ level: Level, _ requirement: String, in caches: Set<CacheKind> = Set(CacheKind.allCases),
    _ steps: Step...
  ) -> Case {
    Case(section: "RFC \(section)", level: level, requirement: requirement, caches: caches, steps: steps)
  }

  /// Returns a GET `time` seconds after the start.
  static func get(
    _ time: Int64, path: String = "/page", with fields: HTTPFields = [:], policy: LoadPolicy = .standard, delay: Int64 = 0,
    origin response: HTTPResponse? = nil, _ outcome: Outcome, sent: [HTTPField.Name: String?] = [:], status: Int? = nil,
    reply: [HTTPField.Name: String?] = [:], content: StoredReply.Content? = nil
  ) -> Step {
    Step(
      time: .seconds(time), request: request(.get, path, fields), policy: policy, delay: .seconds(delay), response: response,
      outcome: outcome, sent: sent, status: status, fields: reply, content: content)
  }

  /// Returns a request with another method.
  static func send(
    _ method: HTTPRequest.Method, _ time: Int64, with fields: HTTPFields = [:], origin response: HTTPResponse? = nil,
    _ outcome: Outcome, status: Int? = nil, reply: [HTTPField.Name: String?] = [:], content: StoredReply.Content? = nil
  ) -> Step {
    Step(
      time: .seconds(time), request: request(method, "/page", fields), policy: .standard, delay: .zero, response: response,
      outcome: outcome, sent: [:], status: status, fields: reply, content: content)
  }

  /// Returns a GET at the start whose 200 is stored.
  static func stored(_ fields: HTTPFields, to request: HTTPFields = [:]) -> Step {
    get(0, with: request, origin: ok(fields), .stored)
  }

  /// Returns a request for a range that reads no stored response, and a 206 for it with a lifetime of 60 s.
  static func part(
    _ range: String, at time: Int64 = 0, of length: Int = 100, tag: String, fields: HTTPFields = [:],
    _ outcome: Outcome = .forwarded
  ) -> Step {
    get(
      time, with: [.range: "bytes=\(range)"], policy: .reload, origin: partial(range, of: length, tag: tag, fields), outcome)
  }

  private static func request(_ method: HTTPRequest.Method, _ path: String, _ fields: HTTPFields) -> HTTPRequest {
    HTTPRequest(method: method, scheme: "https", authority: "example.com", path: path, headerFields: fields)
  }

  static func ok(_ fields: HTTPFields) -> HTTPResponse { HTTPResponse(status: .ok, headerFields: fields) }

  static func status(_ code: Int, _ fields: HTTPFields = [:]) -> HTTPResponse {
    HTTPResponse(status: .init(code: code), headerFields: fields)
  }

  static func partial(_ range: String, of length: Int = 100, tag: String, _ fields: HTTPFields = [:]) -> HTTPResponse {
    let ends = range.split(separator: "-").compactMap { Int($0) }
    let count = ends.count == 2 ? ends[1] - ends[0] + 1 : 0
    var response = status(
      206, [.eTag: tag, .cacheControl: "max-age=60", .contentRange: "bytes \(range)/\(length)", .contentLength: "\(count)"])
    response.headerFields.append(contentsOf: fields)
    return response
  }

  /// Returns the HTTP date `seconds` after the start.
  static func date(_ seconds: Int64) -> String { HTTPDate(start + .seconds(seconds)).description }

  /// Returns the name of a field for which HTTPTypes has no constant.
  static func name(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .server }

  static let custom = name("X-Custom")
  static let unknownMethod = HTTPRequest.Method("UNKNOWN") ?? .patch

  /// Strong tags, and a weak one.
  static let (a, b, weak) = ("\"a\"", "\"b\"", "W/\"a\"")
}
