internal import CacheCore
internal import HTTPTypes

extension ETagValidator {
  /// What is to be stored of an exchange, or nil when it must not, or need not, be (RFC 9111 §3).
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

  /// The request as it may be stored: what names the resource, without user information, and the selecting fields, secrets as
  /// digests. A GET: what answers a POST and may be stored, answers later GETs (RFC 9110 §9.3.3).
  func storedRequest(_ request: HTTPRequest, selectedBy response: HTTPResponse, part: ContentRange?) -> HTTPRequest {
    let selecting = SelectingFields(of: request, vary: Vary(response.headerFields), secret: secret, mode: rules.mode)
    var fields = selecting.fields
    if let part { fields.replace(.range, with: HTTPField(name: .range, value: part.asked)) }
    return HTTPRequest(
      method: .get, scheme: request.scheme, authority: request.authority.map(HostPort.withoutUserInformation), path: request.path,
      headerFields: fields)
  }

  /// What directives forbid: `no-store`, which `must-understand` overrides for a status that is understood and only for such (RFC
  /// 9111 §5.2.2.3); in a shared cache `private`, and answers to a request with `Authorization` that are not said to be for
  /// everybody (§3.5).
  private func allowsStoring(_ directives: ResponseDirectives, _ exchange: Exchange) -> Bool {
    let stated = directives.stated
    guard stated.mustUnderstand ? StatusRule.isUnderstood(exchange.status) : !stated.noStore else { return false }
    guard !directives.isOthers else { return false }
    // For everybody who has not logged in it would be the answer to who has.
    if rules.mode == .shared, exchange.status == 401 { return false }
    return directives.allowsAuthorised || !exchange.request.headerFields.contains(.authorization)
  }

  /// Whether the status, and what the answer says of its lifetime, let it be stored (RFC 9111 §3).
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

  /// The bytes of a 206 that may be stored: a single range of a known length, with a strong validator, that was asked for (RFC
  /// 9111 §3.3, RFC 9110 §15.3.7).
  private func storablePart(_ exchange: Exchange) -> ContentRange? {
    let fields = exchange.response.headerFields
    guard parts != .ignored, exchange.status == 206, exchange.request.headerFields.contains(.range),
      EntityTag.strong(of: fields) != nil
    else { return nil }
    return ContentRange(fields)
  }
}
