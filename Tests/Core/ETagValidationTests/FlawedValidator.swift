import CacheCore
import ETagValidation
import HTTPTypes

/// A validator with one flaw that the contract must find.
struct FlawedValidator: ResponseValidator {
  enum Flaw: String, CaseIterable {
    case usesEverything, usesNothing, ignoresSelectingFields, ignoresRequestDirectives, staleWhileRevalidating
    case sendsNoConditions, ignoresOriginsConditions, dropsClientsConditions
    case storesEverything, storesNothing, forgetsFields, keepsTransportFields
    case servesStaleAlways, servesNothingStale
    case believesEvery304, keepsOldFields, storesNoNews, invalidatesNothing, invalidatesEverything
    case repliesWhole, ignoresIfRange, labelsNothing, combinesEverything, mistakesParts
    case hasOtherMode

    /// The statement that shows the flaw.
    var violates: String {
      switch self {
      case .usesEverything: "RFC 9111 §4.2: a response is stale when its age has reached its lifetime"
      case .usesNothing: "RFC 9111 §4.2: a response is used while its age is below its lifetime"
      case .ignoresSelectingFields: "RFC 9111 §4.1: a response is not used if a field that its Vary names differs"
      case .ignoresRequestDirectives: "RFC 9111 §5.2.1.4: no-cache requires validation"
      case .staleWhileRevalidating: "RFC 5861 §3: a stale response is not used after stale-while-revalidate"
      case .sendsNoConditions: "RFC 9111 §4.3.1: a validation has the stored tag in If-None-Match"
      case .ignoresOriginsConditions: "RFC 9111 §4.3.2: If-Match is left to the origin"
      case .dropsClientsConditions: "RFC 9111 §4.3.2: a condition without a stored response is left to the origin"
      case .storesEverything: "RFC 9111 §5.2.2.5: a response with no-store is not stored"
      case .storesNothing: "RFC 9111 §3: a 404 with a lifetime is stored"
      case .forgetsFields: "RFC 9111 §3.1: all fields are stored, including unknown ones"
      case .keepsTransportFields: "RFC 9111 §3.1: fields of a proxy are not stored"
      case .servesStaleAlways:
        "RFC 9111 §5.2.2.2: must-revalidate forbids a stale response, even without a connection"
      case .servesNothingStale: "RFC 9111 §4.2.4: a stale response is used if the origin cannot be reached"
      case .believesEvery304: "RFC 9111 §4.3.4: a 304 with another strong tag updates no stored response"
      case .keepsOldFields: "RFC 9111 §3.2: a 304 replaces all stored values of its fields, and adds new fields"
      case .storesNoNews: "RFC 9111 §4.3.5: a 200 to HEAD with the stored validator updates the stored response"
      case .invalidatesNothing: "RFC 9111 §4.4: a successful POST invalidates its target"
      case .invalidatesEverything: "RFC 9111 §4.4: an unsuccessful unsafe request invalidates nothing"
      case .repliesWhole: "RFC 9111 §4.3.2: If-None-Match with the stored tag gets a 304"
      case .ignoresIfRange: "RFC 9110 §13.1.5: If-Range is compared strongly"
      case .labelsNothing: "RFC 9110 §15.4.5: a 304 has the fields that the 200 would have for caches"
      case .combinesEverything: "RFC 9111 §3.4: parts with different tags are not combined"
      case .mistakesParts: "RFC 9111 §3.3: a part is not used for the whole response"
      case .hasOtherMode: "RFC 9111 §5.2.2.7: a shared cache does not store a private response"
      }
    }
  }

  let id = ComponentID.unique(FlawedValidator.self)
  let combinesParts = true
  private let sound: ETagValidator
  private let flaw: Flaw

  init(_ sound: ETagValidator, _ flaw: Flaw) {
    self.flaw = flaw
    self.sound =
      flaw == .hasOtherMode
      ? ETagValidator(
        mode: sound.mode == .shared ? .private : .shared, heuristics: sound.heuristics, parts: sound.parts,
        negotiatesLanguages: true, digestSecret: DigestSecret(high: 1, low: 2))
      : sound
  }

  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    func sane(_ request: HTTPRequest, _ policy: LoadPolicy, _ stored: [StoredMetadata]) -> ValidationPlan {
      sound.plan(request, policy: policy, stored: stored, now: now)
    }
    switch flaw {
    case .usesEverything: return stored.isEmpty ? sane(request, policy, stored) : .use(0, thenRevalidate: nil)
    case .usesNothing: return .fetch(request, fallback: nil, reason: .miss)
    case .ignoresSelectingFields: return sane(request.without(.accept, .acceptEncoding, custom), policy, stored.map(\.unselected))
    case .ignoresRequestDirectives: return sane(request.without(.cacheControl, pragma), policy, stored)
    case .staleWhileRevalidating: return sane(request, policy == .standard ? .staleWhileRevalidate : policy, stored)
    case .ignoresOriginsConditions: return sane(request.without(.ifMatch, .ifUnmodifiedSince), policy, stored)
    case .dropsClientsConditions: return sane(request.without(.ifNoneMatch, .ifModifiedSince), policy, stored)
    case .sendsNoConditions:
      guard case .fetch(_, let fallback, let reason) = sane(request, policy, stored) else { return sane(request, policy, stored) }
      return .fetch(request, fallback: fallback, reason: reason)
    case .keepsOldFields:
      guard case .combine(var combination) = sane(request, policy, stored) else { return sane(request, policy, stored) }
      combination.whole.response.headerFields = stored[combination.parts[0].index].response.headerFields
      return .combine(combination)
    default: return sane(request, policy, stored)
    }
  }

  func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    let result = result.map(received)
    let verdict = sound.judge(
      result, to: request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
      revision: revision)
    let response = try? result.get()
    let isError = response.map { $0.status.code >= 400 } ?? true
    switch (flaw, verdict) {
    case (.storesEverything, .pass):
      guard let response else { return verdict }
      return .store(variant: "", .fresh(response, to: request, at: now, revision), .none)
    case (.storesNothing, .store): return .pass(.none, shareable: true)
    case (.forgetsFields, .store(let variant, var metadata, let changes)):
      metadata.response.headerFields = metadata.response.headerFields.filter { $0.name == .cacheControl || $0.name == .eTag }
      return .store(variant: variant, metadata, changes)
    case (.keepsTransportFields, .store(let variant, var metadata, let changes)):
      if let response { metadata.response.headerFields = response.headerFields }
      return .store(variant: variant, metadata, changes)
    case (.keepsTransportFields, .update(let index, var metadata, let changes)):
      if let response { metadata.response.headerFields.append(contentsOf: response.headerFields) }
      return .update(index, metadata, changes)
    case (.servesStaleAlways, _) where isError && !stored.isEmpty: return .serveStale(0)
    case (.servesNothingStale, .serveStale): return .pass(.none, shareable: true)
    case (.believesEvery304, _) where response?.status == .notModified && !stored.isEmpty:
      return .update(0, .fresh(stored[0].response, to: stored[0].request, at: now, stored[0].revision), .none)
    case (.keepsOldFields, .update(let index, _, _)):
      var metadata = stored[index]
      metadata.freshness = Freshness(generatedAt: now, freshUntil: now + .seconds(3_600))
      return .update(index, metadata, .none)
    case (.storesNoNews, .pass(let changes, let shareable)):
      return .pass(StoreChanges(drops: changes.drops, invalidations: changes.invalidations), shareable: shareable)
    case (.invalidatesNothing, .pass(let changes, let shareable)):
      return .pass(StoreChanges(updates: changes.updates, drops: changes.drops), shareable: shareable)
    case (.invalidatesEverything, .pass(_, let shareable)):
      let resources = ["/page", "/a", "/b"].map { "https://example.com\($0)" }
      return .pass(StoreChanges(invalidations: resources), shareable: shareable)
    default: return verdict
    }
  }

  /// Returns a response as the flawed validator sees it.
  private func received(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    switch flaw {
    case .ignoresSelectingFields: response.headerFields[.vary] = nil
    case .mistakesParts where response.status == .partialContent: response.status = .ok
    case .combinesEverything where response.status == .partialContent:
      response.headerFields[.eTag] = "\"a\""
      let isFirst = response.headerFields[.contentRange]?.hasPrefix("bytes 0-") == true
      if !isFirst { response.headerFields[.contentRange] = "bytes 40-99/100" }
    default: break
    }
    return response
  }

  func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    switch flaw {
    case .repliesWhole: return StoredReply(head: metadata.response, content: .whole)
    case .ignoresIfRange: return sound.reply(to: request.without(.ifRange, .ifNoneMatch), from: metadata, now: now)
    case .labelsNothing:
      var reply = sound.reply(to: request, from: metadata, now: now)
      if reply.head.status != .ok { reply.head.headerFields = [.contentType: "text/plain", .contentLength: "0"] }
      return reply
    default: return sound.reply(to: request, from: metadata, now: now)
    }
  }
}

private let custom = HTTPField.Name("X-Custom") ?? .server
private let pragma = HTTPField.Name("Pragma") ?? .server

extension HTTPRequest {
  fileprivate func without(_ names: HTTPField.Name...) -> HTTPRequest {
    var request = self
    for name in names { request.headerFields[name] = nil }
    return request
  }
}

extension StoredMetadata {
  /// The metadata without `Vary` and selecting fields.
  fileprivate var unselected: StoredMetadata {
    var metadata = self
    metadata.response.headerFields[.vary] = nil
    metadata.request.headerFields = metadata.request.headerFields.filter { $0.name == .range }
    return metadata
  }

  /// Metadata with a lifetime of an hour.
  fileprivate static func fresh(
    _ response: HTTPResponse, to request: HTTPRequest, at now: Timestamp, _ revision: Revision
  ) -> StoredMetadata {
    StoredMetadata(
      request: request, response: response, requestTime: now, responseTime: now, revision: revision,
      freshness: Freshness(generatedAt: now, freshUntil: now + .seconds(3_600)))
  }
}
