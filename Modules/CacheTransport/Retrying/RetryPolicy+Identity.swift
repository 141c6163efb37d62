internal import CacheCore
internal import HTTPTypes

extension RetryPolicy {
  /// Returns the ID of a downloader that applies the policy to `base`. IDs are equal if the rules and the base downloaders are.
  ///
  /// Hooks and network monitors cannot be compared, so a policy with one of them gets a unique ID. The random numbers are
  /// ignored, because they affect only the time of a response.
  func id(of type: Any.Type, around base: any Downloader) -> ComponentID {
    guard !reopenBody.isSet, !judge.isSet, !onRetry.isSet, network == nil else { return .unique(type) }
    let rules = [
      "\(maximumAttempts)", "\(backoff.base) \(backoff.cap) \(backoff.multiplier)",
      timeLimit.map { "\($0)" } ?? "", "\(maximumRetryAfter) \(networkWaitLimit)",
      methods.map(\.rawValue).sorted().joined(separator: " "), statuses.sorted().map(String.init).joined(separator: " "),
      errors.map(\.rawValue).sorted().joined(separator: " "),
    ]
    return ComponentID(type, rules.joined(separator: ","), around: base.id)
  }
}
