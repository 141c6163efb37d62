import CacheCore
import CacheManager
import HTTPServing
import HTTPTypes

/// A responder that is an HTTP cache: `ResourceManager.respond(to:)` and `purge(_:)`.
struct CachingResponder: Responder, Purging {
  let manager: ResourceManager
  /// The host of requests without `Host`, which HTTP/1.0 allows.
  let defaultAuthority: String

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    let response = try await manager.respond(to: named(request.head), body: request.body) { request.sendInterimResponse($0) }
    return ProxyAnswer(head: response.head, body: response.body, outcome: CacheOutcome(response), source: response.source)
  }

  func purge(_ request: HTTPRequest) async throws(CacheError) -> Int {
    guard let url = named(request).absoluteURL else { throw CacheError(.invalidURL, reason: "invalid target") }
    return try await manager.purge(.url(url))
  }

  private func named(_ request: HTTPRequest) -> HTTPRequest {
    guard request.authority == nil else { return request }
    var request = request
    request.authority = defaultAuthority
    return request
  }
}

extension CacheOutcome {
  init(_ response: CachedResponse) {
    let status = response.status
    if status.isHit {
      self = status.lifetimeLeft ?? .zero < .zero ? .stale : .hit
    } else if status.forward == nil {
      self = .local
    } else if status.isCollapsed, status.lifetimeLeft ?? .zero >= .zero {
      self = .collapsed
    } else if response.source == .memory || response.source == .disk {
      self = status.forwardStatus == 304 ? .revalidated : .stale
    } else {
      self = .miss
    }
  }
}
