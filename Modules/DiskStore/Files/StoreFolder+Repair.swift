internal import CacheCore

extension StoreFolder {
  /// How often the counters are looked at before they are taken for left behind, with a pause in between: half a second.
  private static let looks = 25

  /// Makes counters anew that somebody has left unequal who ended in the middle of a change: nobody would ever trust them again.
  ///
  /// Whoever has the old ones mapped sees them unequal for good, asks the file system, and finds the new ones at its next look;
  /// who changes something raises both.
  ///
  /// - Returns: whether they were made anew.
  func renewCounters() -> Bool {
    for _ in 0..<Self.looks {
      guard let (_, counts) = generationNow, !counts.isQuiet else { return false }
      calls.pause()
    }
    guard !hasLostGeneration, let lock = try? FileDescriptor(root, .folder), lock.lockExclusively() else {
      return false
    }
    let isNew = withExtendedLifetime(lock) {
      // An index goes by counters, and these begin again.
      removeIndex()
      guard calls.unlink("\(root)/generation") == nil else { return false }
      return (try? Generation("\(root)/generation", calls)) != nil
    }
    lock.unlock()
    adoptGeneration()
    return isNew
  }
}
