internal import CacheCore
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDataTask {
  /// The priority of the transfer. On Linux the platform's task does not get it.
  package var priority: Float { state.withLock { $0.priority } }

  /// Raises the priority of the transfer. Never lowers it, because the request may have been raised meanwhile.
  func raise(to level: LoadPriority.Level) {
    let value = Self.platformPriority(level)
    let isHigher = state.withLock { state in
      guard value > state.priority else { return false }
      state.priority = value
      return true
    }
    guard isHigher else { return }
    // A priority has no effect on Linux. Setting one there can delay a cancellation until the session has removed the task, and
    // Foundation traps on that.
    #if !canImport(FoundationNetworking)
    task.priority = value
    #endif
  }

  static func platformPriority(_ level: LoadPriority.Level) -> Float {
    switch level {
    case .veryLow: 0
    case .low: 0.25
    case .normal: 0.5
    case .high: 0.75
    case .veryHigh: 1
    }
  }
}
