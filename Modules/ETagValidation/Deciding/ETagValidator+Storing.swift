internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// Returns the metadata to store for an exchange, or `nil` if its response must not or need not be stored (RFC 9111 §3).
  func storable(_ exchange: Exchange, revision: Revision) -> StoredMetadata? {
    let (request, fields) = (exchange.request, exchange.response.headerFields)
    guard request.method == .get || request.method == .post, !CacheControl(request: request).noStore else { return nil }
    let directives = rules.directives(of: fields)
    guard allowsStoring(directives, exchange), !Vary(fields).matchesNothing else { return nil }
    let freshness = FreshnessRules(rules: rules).freshness(
      of: exchange.response, directives, requestTime: exchange.requestTime, responseTime: exchange.responseTime)
    let part = storablePart(exchange)
    guard isWorthStoring(exchange, directives, freshness, isPart: part != nil) else { return nil }
    var response = exchange.response
    response.headerFields = fields.withoutHopByHop()
    response.headerFields.leaveOut(directives.leftOut)
    return StoredMetadata(
      request: storedRequest(request, selectedBy: response, part: part), response: response,
      requestTime: exchange.requestTime, responseTime: exchange.responseTime, revision: revision, freshness: freshness,
      expiration: StatusRule(exchange.status) == .whileFresh ? .at(freshness.freshUntil) : nil)
  }

  /// Returns the request as it is stored: the URI without user information, and the selecting fields, with secrets as digests.
  /// The method is GET, because a stored response to a POST serves later GETs (RFC 9110 §9.3.3). The range of a part is the one
  /// that it has, which can differ from the requested one.
  func storedRequest(_ request: HTTPRequest, selectedBy response: HTTPResponse, part: Range<Int64>?) -> HTTPRequest {
    let selecting = SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret, mode: rules.mode)
    var fields = selecting.fields
    if let part {
      fields.replace(.range, with: HTTPField(name: .range, value: "bytes=\(part.lowerBound)-\(part.upperBound - 1)"))
    }
    return HTTPRequest(
      method: .get, scheme: request.scheme, authority: request.authority.map(HostPort.withoutUserInformation), path: request.path,
      headerFields: fields)
  }

  /// Returns whether the directives allow storing. They forbid it with `no-store`, which `must-understand` overrides for known
  /// status codes (RFC 9111 §5.2.2.3). In a shared cache they also forbid it with `private`, and if they do not permit sharing
  /// the response of one user.
  private func allowsStoring(_ directives: ResponseDirectives, _ exchange: Exchange) -> Bool {
    let stated = directives.stated
    guard stated.mustUnderstand ? StatusRule.isUnderstood(exchange.status) : !stated.noStore else { return false }
    guard !directives.forbidsSharedStorage else { return false }
    // Other users, who may be signed in, must not receive this response.
    if rules.mode == .shared, exchange.status == 401 { return false }
    return !isForOneUser(exchange, directives)
  }

  /// Returns whether this cache may use a stored response. A validator with other settings may have stored one for one user,
  /// which a shared cache would not have stored.
  ///
  /// The stored fields decide. They do not show that the request had cookies, unless `Vary` lists them.
  func accepts(_ metadata: StoredMetadata) -> Bool {
    guard rules.mode == .shared, mayBelongToOneUser(metadata) else { return true }
    let directives = rules.directives(of: metadata.response.headerFields)
    let exchange = Exchange(
      request: metadata.request, sent: metadata.request, response: metadata.response, requestTime: metadata.requestTime,
      responseTime: metadata.responseTime)
    return allowsStoring(directives, exchange)
      && !metadata.response.headerFields.contains { directives.leftOut.contains($0.name.canonicalName) }
  }

  /// Returns whether the directives of a response must be read, because a stored response with one of these fields may belong to
  /// one user. Most responses have none, and every lookup asks.
  private func mayBelongToOneUser(_ metadata: StoredMetadata) -> Bool {
    let selecting = metadata.request.headerFields
    return metadata.response.status == .unauthorized || selecting.contains(.authorization) || selecting.contains(.cookie)
      || metadata.response.headerFields.contains { field in
        switch field.name.canonicalName.utf8.count {
        case 10 where field.name == .setCookie: true
        case 13 where field.name == .cacheControl: field.value.mayName("private")
        default: rules.targets.contains(field.name) && field.value.mayName("private")
        }
      }
  }

  /// Returns whether a shared cache must not store, update or share anything of the response, because it may belong to one user.
  ///
  /// The response to a request with `Authorization` needs a directive that permits sharing (RFC 9111 §3.5). One with
  /// `Set-Cookie`, or to a request with `Cookie`, needs `public` or a lifetime. RFC 9111 §7.3 leaves this to the cache. An origin
  /// that says nothing about caching often made the page for a session, and Varnish does not store it either.
  func isForOneUser(_ exchange: Exchange, _ directives: ResponseDirectives) -> Bool {
    needsPermission(exchange, directives) || isForOneSession(exchange, exchange.response.headerFields, directives)
  }

  /// Returns whether the request has credentials, and the response does not permit sharing.
  func needsPermission(_ exchange: Exchange, _ directives: ResponseDirectives) -> Bool {
    rules.mode == .shared && !directives.allowsAuthorized && exchange.request.headerFields.contains(.authorization)
  }

  /// Returns whether a response with these fields may belong to one session.
  func isForOneSession(_ exchange: Exchange, _ fields: HTTPFields, _ directives: ResponseDirectives) -> Bool {
    guard rules.mode == .shared, !rules.ignoresCookies, !directives.stated.isPublic,
      fields.contains(.setCookie) || exchange.request.headerFields.contains(.cookie)
    else { return false }
    let (now, date) = (exchange.responseTime, fields.date(receivedAt: exchange.responseTime))
    let lifetime = FreshnessRules.explicitLifetime(of: fields, directives, date: date ?? now, receivedAt: now)
    return directives.stated.noCache || lifetime ?? .zero <= .zero
  }

  /// Returns whether the status and the lifetime of the response allow storing (RFC 9111 §3).
  private func isWorthStoring(
    _ exchange: Exchange, _ directives: ResponseDirectives, _ freshness: Freshness, isPart: Bool
  ) -> Bool {
    let fields = exchange.response.headerFields
    let isStated = directives.lifetime != nil || (!directives.isTargeted && fields.contains(.expires))
    let isFresh = exchange.responseTime < freshness.freshUntil
    guard exchange.request.method == .get else {
      return exchange.status == 200 && isStated && isFresh && exchange.representsTarget
    }
    switch StatusRule(exchange.status) {
    case .always: return true
    case .whileFresh:
      let isGuessed = rules.heuristics != nil && StatusRule.isHeuristicallyCacheable(exchange.status)
      return isFresh && (isStated || isGuessed || directives.allowsAnyStatus)
    case .part: return isPart && isStated && isFresh
    case .never: return false
    }
  }

  /// Returns the range of a 206 that may be stored: a requested single range of a known length, with a strong validator (RFC 9111
  /// §3.3, RFC 9110 §15.3.7).
  private func storablePart(_ exchange: Exchange) -> Range<Int64>? {
    let fields = exchange.response.headerFields
    guard parts != .ignored, exchange.status == 206, exchange.request.headerFields.contains(.range),
      EntityTag.strong(of: fields) != nil, let range = ContentRange(fields), range.completeLength != nil
    else { return nil }
    return range.bytes
  }
}

extension String {
  /// Returns whether the text contains a name in any case, also as a part of another name.
  fileprivate func mayName(_ name: StaticString) -> Bool {
    let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    var text = self
    return text.withUTF8 { bytes in
      guard bytes.count >= name.count else { return false }
      return (0...(bytes.count - name.count)).contains { start in
        name.indices.allSatisfy { bytes[start + $0] | 0x20 == name[$0] }
      }
    }
  }
}
