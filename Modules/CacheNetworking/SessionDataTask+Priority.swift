internal import CacheCore
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDataTask {
  /// Raises the platform's priority. Never lowers it, because the request may have been raised meanwhile. It has no effect on
  /// Linux.
  func raise(to level: LoadPriority.Level) {
    let value = Self.platformPriority(level)
    let isHigher = state.withLock { state in
      guard value > state.priority else { return false }
      state.priority = value
      return true
    }
    if isHigher { task.priority = value }
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
