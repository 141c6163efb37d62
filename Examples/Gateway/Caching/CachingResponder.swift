#if Gateway
import CacheCore
import CacheManager
import HTTPTypes

/// Answers as an HTTP cache does, and forgets what it is told to: the package's facade, as its users have it.
struct CachingResponder: Responder, Purging {
  let manager: ResourceManager

  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer {
    let response = try await manager.respond(to: request.head, body: request.body)
    return ProxyAnswer(head: response.head, body: response.body, outcome: CacheOutcome(response))
  }

  func purge(_ request: HTTPRequest) async throws(CacheError) -> Int {
    guard let url = request.absoluteURL else { throw CacheError(.invalidURL, reason: "the target is no URL") }
    return try await manager.purge(.url(url))
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
#endif
