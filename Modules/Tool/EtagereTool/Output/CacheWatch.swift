#if Demo
import Etagere

/// An observer that reports once that the cache cannot be used. The loads continue without the cache, so nothing else shows it.
final class CacheWatch: LoadObserver {
  let id = ComponentID.unique(CacheWatch.self)
  private let isReported = Lock(false)
  private let next: (any LoadObserver)?

  /// - Parameter next: An observer that receives every event too.
  init(next: (any LoadObserver)? = nil) { self.next = next }

  var hasFailed: Bool { isReported.withLock { $0 } }

  func observe(_ event: CacheEvent, of load: LoadID) {
    next?.observe(event, of: load)
    switch event {
    case .storeFailed(_, let error), .readFailed(_, let error):
      // An entry above the size limit does not mean that the cache has failed.
      guard error.code != .entryTooLarge else { return }
      let isFirst = isReported.withLock { isReported in
        defer { isReported = true }
        return !isReported
      }
      if isFirst { Console.complain("cannot use the cache, loading without it: \(error)") }
    default: return
    }
  }
}
#endif
