import CacheCore
import ETagValidation
import HTTPTypes

/// A complete cache as a value. It carries out the validator's decisions, with a closure as its origin and a time that tests set.
struct CacheFixture {
  struct Entry {
    var variant: String
    var metadata: StoredMetadata
  }

  /// The source of a load's response.
  enum Source: Equatable { case cache, revalidated, network, completed, generated, standIn, failure }

  struct Outcome {
    var source: Source
    var response: HTTPResponse?
    var revision: Revision?
    var background: Source?
    /// The reply from a stored response.
    var reply: StoredReply?
  }

  typealias Origin = (HTTPRequest) -> Result<HTTPResponse, CacheError>

  static let start = Timestamp(seconds: 1_767_225_600)

  var now = CacheFixture.start
  var validator = ETagValidator(digestSecret: DigestSecret(high: 1, low: 2))
  var entries: [Entry] = []
  var sent: [HTTPRequest] = []
  var invalidated: [String] = []
  var shareable: [Bool] = []
  var latency = Duration.zero
  /// The length of the next body.
  var length: Int64?
  /// The combinations of parts that were planned.
  var combinations: [PartCombination] = []
  private var minted: UInt64 = 0

  var stored: [StoredMetadata] { entries.map(\.metadata) }

  mutating func advance(_ seconds: Int64) { now = now + .seconds(seconds) }

  mutating func load(_ request: HTTPRequest = .page(), _ policy: LoadPolicy = .standard, from origin: Origin) -> Outcome {
    switch validator.plan(request, policy: policy, stored: stored, now: now) {
    case .respond(let response):
      return Outcome(source: .generated, response: response)
    case .use(let index, let revalidation):
      let shown = entries[index].metadata
      let background = revalidation.map { forward($0, for: request, fallback: nil, from: origin).source }
      return Outcome(
        source: .cache, response: shown.response, revision: shown.revision, background: background, reply: reply(request, shown))
    case .fetch(let head, let fallback, _):
      return forward(head, for: request, fallback: fallback, from: origin)
    case .combine(let combination):
      combinations.append(combination)
      return combine(combination, for: request, from: origin)
    }
  }

  /// Requests the missing bytes in one piece each, or the first byte if the parts are stale and none is missing. If the origin
  /// sends something else, sends the request itself.
  private mutating func combine(_ combination: PartCombination, for request: HTTPRequest, from origin: Origin) -> Outcome {
    if combination.requiresValidation, !combination.isIncomplete {
      var (caller, sent) = (request, combination.request)
      (caller.headerFields[.range], sent.headerFields[.range], length) = ("bytes=0-0", "bytes=0-0", 1)
      guard forward(sent, for: caller, fallback: nil, from: origin).response?.status == .partialContent else {
        return forward(request, for: request, fallback: nil, from: origin)
      }
    }
    var next = combination.wanted.lowerBound
    let ends = combination.parts.map(\.bytes) + [combination.wanted.upperBound..<combination.wanted.upperBound]
    for part in ends {
      let end = min(part.lowerBound, combination.wanted.upperBound)
      if next < end {
        let range = "bytes=\(next)-\(end - 1)"
        var (caller, sent) = (request, combination.request)
        (caller.headerFields[.range], sent.headerFields[.range]) = (range, range)
        length = end - next
        let outcome = forward(sent, for: caller, fallback: nil, from: origin)
        guard outcome.response?.status == .partialContent else {
          return forward(request, for: request, fallback: nil, from: origin)
        }
      }
      next = max(next, part.upperBound)
    }
    if combination.wanted == 0..<(combination.whole.bodyLength ?? 0) {
      entries.removeAll { $0.metadata.response.status == .partialContent }
      entries.append(Entry(variant: combination.variant, metadata: combination.whole))
    }
    return Outcome(
      source: .completed, response: combination.whole.response, revision: combination.whole.revision,
      reply: reply(request, combination.whole))
  }

  private mutating func forward(_ head: HTTPRequest, for request: HTTPRequest, fallback: Int?, from origin: Origin) -> Outcome {
    sent.append(head)
    let requestTime = now
    let result = origin(head)
    now = now + latency
    minted += 1
    let verdict = validator.judge(
      result, to: request, sent: head, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
      revision: Revision(high: 0, low: minted))
    let response = try? result.get()
    switch verdict {
    case .update(let index, let metadata, let changes):
      apply(changes)
      entries[index].metadata = metadata
      if let copy = changes.copy { entries.append(Entry(variant: copy.variant, metadata: copy.metadata)) }
      return Outcome(
        source: .revalidated, response: metadata.response, revision: metadata.revision, reply: reply(request, metadata))
    case .store(let variant, let metadata, let changes):
      apply(changes)
      entries.removeAll { $0.variant == variant }
      var metadata = metadata
      if let length { metadata.bodyLength = length }
      entries.append(Entry(variant: variant, metadata: metadata))
      return Outcome(source: .network, response: response, revision: metadata.revision)
    case .pass(let changes, let shareable):
      apply(changes)
      self.shareable.append(shareable)
      return Outcome(source: response == nil ? .failure : .network, response: response)
    case .refetch(let plain):
      return forward(plain, for: request, fallback: nil, from: origin)
    case .serveStale(let index):
      let shown = entries[index].metadata
      return Outcome(source: .standIn, response: shown.response, revision: shown.revision, reply: reply(request, shown))
    }
  }
}

extension CacheFixture {
  private func reply(_ request: HTTPRequest, _ metadata: StoredMetadata) -> StoredReply {
    validator.reply(to: request, from: metadata, now: now)
  }

  private mutating func apply(_ changes: StoreChanges) {
    for (index, metadata) in changes.updates { entries[index].metadata = metadata }
    for index in changes.drops.sorted(by: >) { entries.remove(at: index) }
    invalidated += changes.invalidations
  }
}

/// The use of a stored response by a second request: without revalidation, after revalidation, or not at all.
enum CacheUse: String {
  case fullyCached, conditionallyCached, notCached
}

/// Loads `first`, advances the time by `seconds`, and loads again. Returns how the stored response was used. The origin confirms
/// every condition.
func cacheUse(
  of first: HTTPResponse, _ request: HTTPRequest = .page(), again: HTTPRequest? = nil, after seconds: Int64 = 0,
  _ policy: LoadPolicy = .standard, validator: ETagValidator? = nil
) -> CacheUse {
  var cache = CacheFixture()
  if let validator { cache.validator = validator }
  _ = cache.load(request) { _ in .success(first) }
  cache.advance(seconds)
  cache.sent = []
  let outcome = cache.load(again ?? request, policy) { head in
    let isConditional = head.headerFields[.ifNoneMatch] != nil || head.headerFields[.ifModifiedSince] != nil
    return .success(isConditional ? .head(304) : .ok())
  }
  switch outcome.source {
  case .cache where cache.sent.isEmpty: return .fullyCached
  case .revalidated: return .conditionallyCached
  default: return .notCached
  }
}

extension HTTPRequest {
  static func page(
    _ method: HTTPRequest.Method = .get, path: String = "/page", authority: String = "example.com", _ lines: String...
  ) -> HTTPRequest {
    HTTPRequest(method: method, scheme: "https", authority: authority, path: path, headerFields: HTTPFields(lines: lines))
  }
}

extension HTTPResponse {
  static func ok(_ lines: String...) -> HTTPResponse { HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines)) }

  static func head(_ status: Int, _ lines: String...) -> HTTPResponse {
    HTTPResponse(status: .init(code: status), headerFields: HTTPFields(lines: lines))
  }
}

extension HTTPFields {
  init(lines: [String]) {
    self.init()
    for line in lines {
      guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else { continue }
      append(HTTPField(name: name, value: line[line.index(after: colon)...].utf8.drop { $0 == 0x20 }))
    }
  }

  subscript(text name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }
}

/// Returns the HTTP date `seconds` after the start of the fixture's time.
func date(_ seconds: Int64) -> String { HTTPDate(CacheFixture.start + .seconds(seconds)).description }

/// SplitMix64 with a fixed seed, so that each run uses the same numbers.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }
}
