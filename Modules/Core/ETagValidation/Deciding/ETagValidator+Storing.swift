internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// Returns the metadata to store, or `nil` if the response must not or need not be stored (RFC 9111 §3).
  func storable(_ received: JudgedResponse, revision: Revision) -> StoredMetadata? {
    let (request, summary) = (received.request, received.summary)
    guard received.method == .get || received.method == .post, !received.requestDirectives.noStore else { return nil }
    guard allowsStoring(received), !summary.vary.matchesNothing else { return nil }
    let freshness = summary.freshness(of: received.response, requestTime: received.requestTime, rules)
    let part = storablePart(received)
    guard isWorthStoring(received, freshness, isPart: part != nil) else { return nil }
    var response = received.response
    response.headerFields = response.headerFields.withoutHopByHop().without(summary.leftOut)
    return StoredMetadata(
      request: storedRequest(request, selectedBy: summary.vary, part: part), response: response,
      requestTime: received.requestTime, responseTime: received.responseTime, revision: revision, freshness: freshness,
      expiration: StatusRule(received.status) == .whileFresh ? .at(freshness.freshUntil) : nil)
  }

  /// Returns the request as it is stored: the URI without user information, and the selecting fields, with secrets as digests.
  /// The method is GET, because a stored response to a POST serves later GETs (RFC 9110 §9.3.3). The range of a part is the one
  /// that it has, which can differ from the requested one.
  func storedRequest(_ request: HTTPRequest, selectedBy vary: Vary, part: Range<Int64>?) -> HTTPRequest {
    let selecting = SelectingFields(of: request, vary: vary, secret: secret, mode: rules.mode)
    var fields = selecting.fields
    if let part {
      fields.replace(.range, with: HTTPField(name: .range, value: "bytes=\(part.lowerBound)-\(part.upperBound - 1)"))
    }
    // A copy shares the URI with the request. Its parts would be checked again to make a new one.
    var stored = request
    stored.headerFields = fields
    if stored.method != .get { stored.method = .get }
    if let authority = stored.authority {
      let host = HostPort.withoutUserInformation(authority)
      if host.utf8.count != authority.utf8.count { stored.authority = host }
    }
    if stored.extendedConnectProtocol != nil { stored.extendedConnectProtocol = nil }
    return stored
  }

  /// Returns whether the directives allow storing. They forbid it with `no-store`, which `must-understand` overrides for known
  /// status codes (RFC 9111 §5.2.2.3). In a shared cache they also forbid it with `private`, and if they do not permit sharing
  /// the response of one user.
  private func allowsStoring(_ received: JudgedResponse) -> Bool {
    let stated = received.summary.directives
    guard stated.mustUnderstand ? StatusRule.isUnderstood(received.status) : !stated.noStore else { return false }
    guard !received.summary.forbidsSharedStorage else { return false }
    // Other users, who may be signed in, must not receive this response.
    if rules.mode == .shared, received.status == 401 { return false }
    // The response to a request with `Authorization` needs a directive that permits sharing (RFC 9111 §3.5). One with
    // `Set-Cookie`, or to a request with `Cookie`, needs `public` or a lifetime. RFC 9111 §7.3 leaves this to the cache. An
    // origin that says nothing about caching often made the page for a session, and Varnish does not store it either.
    return !needsPermission(received) && !isForOneSession(received, received.summary)
  }

  /// Returns whether this cache may use a stored response. A validator with other settings may have stored one for one user,
  /// which a shared cache would not have stored.
  ///
  /// The stored fields decide. They do not show that the request had cookies, unless `Vary` lists them.
  func accepts(_ metadata: StoredMetadata) -> Bool {
    guard rules.mode == .shared, mayBelongToOneUser(metadata) else { return true }
    let received = JudgedResponse(
      request: metadata.request, sent: metadata.request, response: metadata.response, requestTime: metadata.requestTime,
      responseTime: metadata.responseTime, rules)
    let leftOut = received.summary.leftOut
    return allowsStoring(received) && !metadata.response.headerFields.contains { leftOut.contains($0.name.canonicalName) }
  }

  /// Returns whether the directives of a response must be read, because a stored response with one of these fields may belong to
  /// one user. Most responses have none, and every lookup asks.
  private func mayBelongToOneUser(_ metadata: StoredMetadata) -> Bool {
    let (selecting, fields) = (metadata.request.headerFields, metadata.response.headerFields)
    return metadata.response.status == .unauthorized || selecting.contains(.authorization) || selecting.contains(.cookie)
      || (0..<fields.count).contains { position in
        let name = fields[position].name
        switch name.canonicalName.utf8.count {
        case 10 where name == .setCookie: return true
        case 13 where name == .cacheControl: return fields[position].mayName("private")
        default: return rules.targets.contains(name) && fields[position].mayName("private")
        }
      }
  }

  /// Returns whether the request has credentials, and the response does not permit sharing.
  func needsPermission(_ received: JudgedResponse) -> Bool {
    rules.mode == .shared && !received.summary.allowsAuthorized && received.request.headerFields.contains(.authorization)
  }

  /// Returns whether a response with these fields may belong to one session.
  func isForOneSession(_ received: JudgedResponse, _ fields: ResponseSummary) -> Bool {
    guard rules.mode == .shared, !rules.ignoresCookies, !fields.directives.isPublic,
      fields.setsCookie || received.request.headerFields.contains(.cookie)
    else { return false }
    return fields.directives.noCache || fields.statedLifetime ?? .zero <= .zero
  }

  /// Returns whether the status and the lifetime of the response allow storing (RFC 9111 §3).
  private func isWorthStoring(_ received: JudgedResponse, _ freshness: Freshness, isPart: Bool) -> Bool {
    let isStated = received.summary.statedLifetime != nil
    let isFresh = received.responseTime < freshness.freshUntil
    guard received.method == .get else {
      return received.status == 200 && isStated && isFresh && received.representsTarget
    }
    switch StatusRule(received.status) {
    case .always: return true
    case .whileFresh:
      let isGuessed = rules.heuristics != nil && StatusRule.isHeuristicallyCacheable(received.status)
      return isFresh && (isStated || isGuessed || received.summary.allowsAnyStatus)
    case .part: return isPart
    case .never: return false
    }
  }

  /// Returns the range of a 206 that may be stored: a requested single range of a known length, with a strong validator (RFC 9111
  /// §3.3, RFC 9110 §15.3.7).
  private func storablePart(_ received: JudgedResponse) -> Range<Int64>? {
    let fields = received.response.headerFields
    guard parts != .ignored, received.response.isSinglePart, received.request.headerFields.contains(.range),
      RangeValidator(fields, now: received.responseTime) != nil, let range = ContentRange(fields), range.completeLength != nil
    else { return nil }
    return range.bytes
  }
}

extension HTTPField {
  /// Returns whether the value contains a name in any case, also as a part of another name.
  fileprivate func mayName(_ name: StaticString) -> Bool {
    let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    return withUnsafeBytesOfValue { bytes in
      guard bytes.count >= name.count else { return false }
      return (0...(bytes.count - name.count)).contains { start in
        name.indices.allSatisfy { bytes[start + $0] | 0x20 == name[$0] }
      }
    }
  }
}

/// The header of a received response with the caller's request, the request that was sent for it, their times, and what they
/// state about caching.
struct JudgedResponse {
  let request: HTTPRequest
  /// The request that was sent, with the conditions and the range that the plan added.
  let sent: HTTPRequest
  let response: HTTPResponse
  let requestTime: Timestamp
  let responseTime: Timestamp
  // The method and the status are read once, because each reading parses them.
  let method: HTTPRequest.Method
  let status: Int
  /// The directives of the caller's request.
  let requestDirectives: CacheControl
  let summary: ResponseSummary

  init(
    request: HTTPRequest, sent: HTTPRequest, response: HTTPResponse, requestTime: Timestamp, responseTime: Timestamp,
    _ rules: ResponseRules
  ) {
    (self.request, self.sent, self.response) = (request, sent, response)
    (self.requestTime, self.responseTime) = (requestTime, responseTime)
    (method, status) = (request.method, response.status.code)
    requestDirectives = CacheControl(request: request)
    summary = ResponseSummary(response.headerFields, rules, responseTime: responseTime)
  }

  /// The maximum number of resources that a response invalidates, because each costs a search of the stores.
  private static let mostChangedResources = 8

  /// Whether the response to a POST is a representation of the target, so that it may serve a later GET (RFC 9110 §9.3.3).
  var representsTarget: Bool {
    guard let line = response.headerFields.single(.contentLocation), let target = ResourceID.uri(of: request) else {
      return false
    }
    return request.resolving(line).flatMap(ResourceID.uri(of:)) == target
  }

  /// The resources that a successful unsafe request has changed (RFC 9111 §4.4): its target, and those that `Location` and
  /// `Content-Location` name, in each of their lines. The latter must have the same origin, so that no site can invalidate
  /// another's entries.
  var changedResources: [String] {
    guard (200...399).contains(status), let target = ResourceID.uri(of: request) else { return [] }
    var resources = [target]
    for line in response.headerFields where line.name == .location || line.name == .contentLocation {
      guard resources.count < Self.mostChangedResources, let named = request.resolving(line),
        named.origin == request.origin, let resource = ResourceID.uri(of: named), !resources.contains(resource)
      else { continue }
      resources.append(resource)
    }
    return resources
  }
}

extension HTTPRequest {
  /// The scheme, the host and the port in normal form (RFC 6454 §4).
  fileprivate var origin: String? {
    guard authority != nil else { return nil }
    return ResourceID.uri(of: HTTPRequest(method: .get, scheme: scheme, authority: authority, path: "/"))
  }
}
