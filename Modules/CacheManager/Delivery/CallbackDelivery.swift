internal import CacheCore

/// The callbacks of one load, which are called on their queue.
final class CallbackDelivery<Value: Sendable>: Sendable {
  private let queue: CallbackQueue
  private let progress: (@Sendable (LoadProgress) -> Void)?
  private let completion: @Sendable (Result<Resource<Value>, CacheError>) -> Void
  private let isCompleted = Lock(false)

  init(
    queue: CallbackQueue, progress: (@Sendable (LoadProgress) -> Void)?,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) {
    self.queue = queue
    self.progress = progress
    self.completion = completion
  }

  func report(_ event: ResourceEvent<Value>) {
    guard let progress, case .progress(let report) = event else { return }
    queue.execute {
      // The completion may have overtaken this report. A cancellation on the main thread completes at once, and reports that were
      // queued before it run later.
      guard !self.isCompleted.withLock({ $0 }) else { return }
      progress(report)
    }
  }

  func complete(_ result: Result<Resource<Value>, CacheError>) {
    queue.execute {
      self.isCompleted.withLock { $0 = true }
      self.completion(result)
    }
  }
}
