internal import CacheCore

/// The priorities of queued loads, by the resource that they will load. A priority rises when another load requests the same
/// resource.
final class QueuedPriorities: Sendable {
  private let queued = Lock<[CoalescingKey: [LoadPriority]]>([:])

  func add(_ priority: LoadPriority, for key: CoalescingKey) {
    queued.withLock { $0[key, default: []].append(priority) }
  }

  func remove(_ priority: LoadPriority, for key: CoalescingKey) {
    queued.withLock { queued in
      queued[key]?.removeAll { $0 === priority }
      if queued[key]?.isEmpty == true { queued[key] = nil }
    }
  }

  /// Raises the queued loads of the resource that `load` requests to `level`.
  func raise(_ load: @autoclosure () -> ResolvedRequest, to level: LoadPriority.Level) {
    // Usually no load is queued, and the key is not needed.
    guard !queued.withLock({ $0.isEmpty }) else { return }
    let key = load().resourceKey
    for priority in queued.withLock({ $0[key] ?? [] }) { priority.raise(to: level) }
  }
}
