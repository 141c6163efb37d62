internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// What is to be stored of an exchange, or nil when it must not, or need not, be (RFC 9111 §3).
  func storable(_ exchange: Exchange, revision: Revision) -> StoredMetadata? {
    let (request, fields) = (exchange.request, exchange.response.headerFields)
    let directives = CacheControl(fields)
    guard request.method == .get, !request.headerFields.contains(.range), !CacheControl(request: request).noStore,
      allowsStoring(directives, status: exchange.response.status.code), !Vary(fields).matchesNothing
    else { return nil }
    let facts = facts(of: exchange.response, requestTime: exchange.requestTime, responseTime: exchange.responseTime)
    let rule = StatusRule(exchange.response.status.code)
    switch rule {
    case .always: break
    case .whileFresh:
      guard hasExplicitLifetime(fields, directives), exchange.responseTime < facts.freshUntil else { return nil }
    case .never: return nil
    }
    var response = exchange.response
    response.headerFields = fields.withoutHopByHop()
    return StoredMetadata(
      request: storedRequest(exchange.request, selectedBy: response), response: response, requestTime: exchange.requestTime,
      responseTime: exchange.responseTime, revision: revision, facts: facts,
      expiration: rule == .whileFresh ? .at(facts.freshUntil) : nil)
  }

  /// The request as it may be stored: what names the resource, without user information, and the selecting fields, secrets as digests.
  func storedRequest(_ request: HTTPRequest, selectedBy response: HTTPResponse) -> HTTPRequest {
    let selecting = SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret)
    let authority = request.authority.map { authority in
      authority.lastIndex(of: "@").map { String(authority[authority.index(after: $0)...]) } ?? authority
    }
    return HTTPRequest(
      method: request.method, scheme: request.scheme, authority: authority, path: request.path,
      headerFields: selecting.fields)
  }

  /// `no-store`, which `must-understand` overrides for a status that is understood and only for such (RFC 9111 §5.2.2.3).
  private func allowsStoring(_ directives: CacheControl, status: Int) -> Bool {
    directives.mustUnderstand ? StatusRule.isUnderstood(status) : !directives.noStore
  }

  private func hasExplicitLifetime(_ fields: HTTPFields, _ directives: CacheControl) -> Bool {
    directives.maxAge != nil || fields.contains(.expires)
  }
}
