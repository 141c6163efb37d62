internal import CacheCore
internal import HTTPTypes

/// A caller's request, the request that was sent for it, the header of the response, their times, and what both state about
/// caching.
struct Exchange {
  let request: HTTPRequest
  /// The request that was sent, with the conditions and the range that the plan added.
  let sent: HTTPRequest
  let response: HTTPResponse
  let requestTime: Timestamp
  let responseTime: Timestamp
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
    status = response.status.code
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
    return URIReference(line.value).resolved(against: request).flatMap(ResourceID.uri(of:)) == target
  }

  /// The resources that a successful unsafe request has changed (RFC 9111 §4.4): its target, and those that `Location` and
  /// `Content-Location` name, in each of their lines. The latter must have the same origin, so that no site can invalidate
  /// another's entries.
  var changedResources: [String] {
    guard (200...399).contains(status), let target = ResourceID.uri(of: request) else { return [] }
    var resources = [target]
    for line in response.headerFields where line.name == .location || line.name == .contentLocation {
      guard resources.count < Self.mostChangedResources, let named = URIReference(line.value).resolved(against: request),
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
