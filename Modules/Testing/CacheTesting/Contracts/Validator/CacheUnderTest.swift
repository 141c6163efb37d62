internal import CacheCore
internal import HTTPTypes

extension ValidatorContract {
  /// The decisions about a request.
  struct Decisions {
    var outcome: Outcome
    /// The request that the cache sent, possibly in the background.
    var sent: HTTPRequest?
    var reply: HTTPResponse?
    var content: StoredReply.Content?

    var isForwarded: Bool {
      switch outcome {
      case .used, .usedWhileRevalidated, .gatewayTimeout: false
      case .forwarded, .validated, .stored, .passed, .completed, .repeated, .servedStale: true
      }
    }
  }

  /// A cache of headers that carries out the decisions of a validator.
  struct CacheUnderTest {
    private let validator: any ResponseValidator
    /// The stored responses of each resource, with their variants.
    private var entries: [String: [(variant: String, metadata: StoredMetadata)]] = [:]
    private var revisions: UInt64 = 0

    init(_ validator: any ResponseValidator) { self.validator = validator }

    /// Carries out a step and returns the decisions.
    mutating func perform(_ step: Step) throws -> Decisions {
      let (request, now) = (step.request, start + step.time)
      let resource = ResourceID.uri(of: request) ?? ""
      let stored = (entries[resource] ?? []).map(\.metadata)
      switch validator.plan(request, policy: step.policy, stored: stored, now: now) {
      case .use(let index, let revalidation):
        let outcome = revalidation == nil ? Outcome.used : .usedWhileRevalidated
        return reply(outcome, to: request, from: try element(index, of: stored), sent: revalidation, at: now)
      case .respond(let response):
        return Decisions(outcome: .gatewayTimeout, reply: response)
      case .fetch(let sent, let fallback, _):
        return try judge(step, request, sent, fallback, resource, stored)
      case .combine(let combination):
        return try combine(step, combination, resource, stored)
      }
    }

    /// Requests the first missing bytes. Without missing bytes, the parts are used, and the first byte confirms stale ones.
    private mutating func combine(
      _ step: Step, _ combination: PartCombination, _ resource: String, _ stored: [StoredMetadata]
    ) throws -> Decisions {
      let (request, now) = (step.request, start + step.time)
      for part in combination.parts { _ = try element(part.index, of: stored) }
      guard let missing = combination.firstMissing ?? (combination.requiresValidation ? 0..<1 : nil) else {
        return reply(.used, to: request, from: combination.whole, sent: nil, at: now)
      }
      // The whole response, and an error, belong to the client's request.
      guard let response = step.response, response.status == .partialContent else {
        return try judge(step, request, request, nil, resource, stored)
      }
      var (client, sent) = (request, combination.request)
      let range = "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)"
      (client.headerFields[.range], sent.headerFields[.range]) = (range, range)
      guard response.headerFields[.eTag] == sent.headerFields[.ifRange], let received = ContentRange(response.headerFields),
        received.bytes == missing, received.completeLength == combination.whole.bodyLength
      else {
        try apply(StoreChanges(drops: combination.parts.map(\.index)), to: resource)
        return Decisions(outcome: .repeated, sent: sent)
      }
      _ = try judge(step, client, sent, nil, resource, stored)
      if combination.wanted == 0..<(combination.whole.bodyLength ?? 0) {
        entries[resource]?.removeAll { $0.metadata.response.status == .partialContent }
        add(combination.variant, combination.whole, to: resource)
      }
      return reply(.completed, to: request, from: combination.whole, sent: sent, at: now)
    }

    private mutating func judge(
      _ step: Step, _ request: HTTPRequest, _ sent: HTTPRequest, _ fallback: Int?, _ resource: String,
      _ stored: [StoredMetadata]
    ) throws -> Decisions {
      let requestTime = start + step.time
      let now = requestTime + step.delay
      let unreachable = CacheError(.connectionRefused, reason: "the origin of the contract cannot be reached")
      revisions += 1
      let verdict = validator.judge(
        step.response.map { .success($0) } ?? .failure(unreachable), to: request, sent: sent, fallback: fallback, stored: stored,
        requestTime: requestTime, now: now, revision: Revision(high: 0, low: revisions))
      switch verdict {
      case .update(let index, let metadata, let changes):
        _ = try element(index, of: stored)
        try apply(changes, to: resource, replacing: (index, metadata))
        return reply(.validated, to: request, from: metadata, sent: sent, at: now)
      case .store(let variant, var metadata, let changes):
        metadata.bodyLength = Self.length(of: metadata.response)
        try apply(changes, to: resource)
        add(variant, metadata, to: resource)
        return Decisions(outcome: .stored, sent: sent, reply: step.response)
      case .pass(let changes, _):
        try apply(changes, to: resource)
        return Decisions(outcome: .passed, sent: sent, reply: step.response)
      case .refetch:
        return Decisions(outcome: .repeated, sent: sent)
      case .serveStale(let index):
        return reply(.servedStale, to: request, from: try element(index, of: stored), sent: sent, at: now)
      }
    }

    private func reply(
      _ outcome: Outcome, to request: HTTPRequest, from metadata: StoredMetadata, sent: HTTPRequest?, at now: Timestamp
    ) -> Decisions {
      let reply = validator.reply(to: request, from: metadata, now: now)
      return Decisions(outcome: outcome, sent: sent, reply: reply.head, content: reply.content)
    }

    private mutating func apply(
      _ changes: StoreChanges, to resource: String, replacing replacement: (Int, StoredMetadata)? = nil
    ) throws {
      var kept = entries[resource] ?? []
      if let (index, metadata) = replacement { kept[index].metadata = metadata }
      for (index, metadata) in changes.updates {
        _ = try element(index, of: kept)
        kept[index].metadata = metadata
      }
      if let copy = changes.copy { kept.append((copy.variant, copy.metadata)) }
      for index in Set(changes.drops).sorted(by: >) {
        _ = try element(index, of: kept)
        kept.remove(at: index)
      }
      entries[resource] = kept
      for resource in changes.invalidations { entries[resource] = nil }
    }

    private mutating func add(_ variant: String, _ metadata: StoredMetadata, to resource: String) {
      entries[resource, default: []].removeAll { $0.variant == variant }
      entries[resource, default: []].append((variant, metadata))
    }

    private func element<Element>(_ index: Int, of stored: [Element]) throws -> Element {
      guard stored.indices.contains(index) else {
        throw ContractViolation("the index \(index) was returned, and \(stored.count) responses are stored")
      }
      return stored[index]
    }

    private static func length(of response: HTTPResponse) -> Int64 {
      response.headerFields[.contentLength].flatMap { Int64($0) } ?? 100
    }
  }
}

extension PartCombination {
  /// The positions of the first wanted bytes that no part has, or `nil` if the parts have all of them.
  fileprivate var firstMissing: Range<Int64>? {
    var next = wanted.lowerBound
    for part in parts where next < wanted.upperBound {
      if part.bytes.lowerBound > next { return next..<min(part.bytes.lowerBound, wanted.upperBound) }
      next = max(next, part.bytes.upperBound)
    }
    return next < wanted.upperBound ? next..<wanted.upperBound : nil
  }
}
