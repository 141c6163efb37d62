#if Tool
import Etagere

/// An observer that reports once that the cache cannot be used. The loads go on without it, so nothing else would show it.
final class CacheWatch: LoadObserver {
  let id = ComponentID.unique(CacheWatch.self)
  private let isTold = Lock(false)
  private let next: (any LoadObserver)?

  /// - Parameter next: An observer that receives every event too.
  init(next: (any LoadObserver)? = nil) { self.next = next }

  var hasFailed: Bool { isTold.withLock { $0 } }

  func observe(_ event: CacheEvent, of load: LoadID) {
    next?.observe(event, of: load)
    switch event {
    // An entry that is too large for the cache is a limit at work, not a cache at fault.
    case .storeFailed(_, let error), .readFailed(_, let error):
      guard error.code != .entryTooLarge else { return }
      let isFirst = isTold.withLock { isTold in
        defer { isTold = true }
        return !isTold
      }
      if isFirst { Console.complain("the cache can't be used, loading goes on without it: \(error)") }
    default: return
    }
  }
}
#endif
