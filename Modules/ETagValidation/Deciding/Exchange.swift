internal import CacheCore
internal import HTTPTypes

/// A request of the caller's, what was sent for it, the head that came, and when.
struct Exchange {
  let request: HTTPRequest
  /// With the conditions and the range that the plan added.
  let sent: HTTPRequest
  let response: HTTPResponse
  let requestTime: Timestamp
  let responseTime: Timestamp

  var status: Int { response.status.code }

  /// Whether a POST's answer is the target's own representation, so that it may answer a later GET (RFC 9110 §9.3.3).
  var representsTarget: Bool {
    guard let line = response.headerFields.first(.contentLocation), let target = ResourceID.uri(of: request) else { return false }
    return URIReference(line.value).resolved(against: request).flatMap(ResourceID.uri(of:)) == target
  }

  /// What an unsafe request that did not fail has changed (RFC 9111 §4.4): its target, and what `Location` and `Content-Location`
  /// name, as far as they are of the same origin, so that nobody can clear another's entries.
  var changedResources: [String] {
    guard (200...399).contains(response.status.code), let target = ResourceID.uri(of: request) else { return [] }
    var resources = [target]
    for name in [HTTPField.Name.location, .contentLocation] {
      guard let line = response.headerFields.first(name),
        let named = URIReference(line.value).resolved(against: request), named.origin == request.origin,
        let resource = ResourceID.uri(of: named), !resources.contains(resource)
      else { continue }
      resources.append(resource)
    }
    return resources
  }
}

extension HTTPRequest {
  /// Scheme, host and port in normal form (RFC 6454 §4).
  fileprivate var origin: String? {
    guard authority != nil else { return nil }
    return ResourceID.uri(of: HTTPRequest(method: .get, scheme: scheme, authority: authority, path: "/"))
  }
}
