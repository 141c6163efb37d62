internal import CacheCore

extension CacheError {
  /// Creates the error for one that a user's closure threw.
  init(provider error: any Error) {
    switch error {
    case let error as CacheError: self = error
    case is CancellationError: self = .cancelled
    default:
      self = Task.isCancelled ? .cancelled : CacheError(.other, reason: "the provider failed: \(error)", underlying: error)
    }
  }
}
