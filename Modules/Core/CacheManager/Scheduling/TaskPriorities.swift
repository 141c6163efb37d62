internal import CacheCore

extension Task where Failure == Never, Success == Void {
  /// Begins work on the caller's thread, or on another one where callers are often on the main thread.
  static func begun(
    on executor: (any TaskExecutor)? = nil, priority: TaskPriority, isImmediate: Bool = true,
    _ work: @escaping @Sendable @isolated(any) () async -> Void
  ) -> Task {
    #if !canImport(Darwin)
    if isImmediate { return Task.immediateDetached(priority: priority, executorPreference: executor, operation: work) }
    #endif
    return Task.detached(executorPreference: executor, priority: priority, operation: work)
  }

  /// Raises the priority of the task, on systems that can raise it from outside the task.
  func escalate(to level: LoadPriority.Level) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) { escalatePriority(to: TaskPriority(level)) }
  }
}

extension TaskPriority {
  /// The priority of a task that works for a load of this level.
  ///
  /// On systems that cannot raise a task from outside, the priority is at least medium, because a visible load may join.
  init(_ level: LoadPriority.Level) {
    let priority: TaskPriority =
      switch level {
      case .veryLow: .background
      case .low: .utility
      case .normal: .medium
      case .high, .veryHigh: .high
      }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      self = priority
    } else {
      self = max(priority, .medium)
    }
  }
}
