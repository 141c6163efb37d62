internal import CacheCore

extension StoreFolder {
  /// The number of checks before the counters are considered abandoned, about half a second in all.
  private static let checkCount = 25

  /// Replaces counters that a process left unequal when it ended during a change. Otherwise they would never be trusted again.
  ///
  /// A process that uses the old counters sees them unequal for good, reads the file system, and finds the new ones at its next
  /// check. A process that changes something increments both.
  ///
  /// - Returns: Whether the counters were replaced.
  func renewCounters() -> Bool {
    for _ in 0..<Self.checkCount {
      guard let (_, counts) = generationNow, !counts.isQuiet else { return false }
      calls.pause()
    }
    guard !hasLostGeneration, let lock = try? FileDescriptor(root, .folder), lock.lockExclusively() else {
      return false
    }
    let isNew = withExtendedLifetime(lock) {
      // An index file refers to counters, and the new ones start again at zero.
      removeIndex()
      guard calls.unlink("\(root)/generation") == nil else { return false }
      return (try? Generation("\(root)/generation", calls)) != nil
    }
    lock.unlock()
    adoptGeneration()
    return isNew
  }
}
