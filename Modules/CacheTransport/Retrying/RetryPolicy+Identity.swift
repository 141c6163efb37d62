internal import CacheCore
internal import HTTPTypes

extension RetryPolicy {
  /// Of a downloader that carries the policy out around another one: equal where rules and downloaders are.
  ///
  /// Closures and networks can't be compared, so a policy with one of them makes a downloader that is like no other. The random
  /// numbers do not count: they change when an answer comes, and not which.
  func id(of type: Any.Type, around base: any Downloader) -> ComponentID {
    guard reopenBody == nil, judge == nil, onRetry == nil, network == nil else { return .unique(type) }
    let rules = [
      "\(maximumAttempts)", "\(backoff.base) \(backoff.cap) \(backoff.multiplier)",
      timeLimit.map { "\($0)" } ?? "", "\(maximumRetryAfter) \(networkWaitLimit)",
      methods.map(\.rawValue).sorted().joined(separator: " "), statuses.sorted().map(String.init).joined(separator: " "),
      errors.map(\.rawValue).sorted().joined(separator: " "),
    ]
    return ComponentID(type, rules.joined(separator: ","), around: base.id)
  }
}
