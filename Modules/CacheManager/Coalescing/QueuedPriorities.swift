internal import CacheCore

/// The priorities of loads that wait for their turn, by what they are going to load: they rise when somebody asks for the same
/// thing.
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

  /// Somebody asks for it, at this level.
  func raise(_ load: @autoclosure () -> ResolvedRequest, to level: LoadPriority.Level) {
    // Mostly nobody queues, and then the key is not worth making.
    guard !queued.withLock({ $0.isEmpty }) else { return }
    let key = load().resourceKey
    for priority in queued.withLock({ $0[key] ?? [] }) { priority.raise(to: level) }
  }
}
