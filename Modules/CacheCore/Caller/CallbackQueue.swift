public import Dispatch

/// Where callbacks are called.
public enum CallbackQueue: Sendable {
  /// On the main queue, later.
  case mainAsync
  /// At once when already on the main thread, else on the main queue.
  case mainCurrentOrAsync
  /// Where the work happened to end.
  case untouched
  /// On a queue of the caller's, later.
  case dispatch(DispatchQueue)

  /// The main queue on Apple platforms; where it stands elsewhere, since a server has no live main queue.
  public static var platformDefault: CallbackQueue {
    #if canImport(Darwin)
    .mainCurrentOrAsync
    #else
    .untouched
    #endif
  }

  /// Runs `work` there.
  public func execute(_ work: @escaping @Sendable () -> Void) {
    switch self {
    case .mainAsync: DispatchQueue.main.async(execute: work)
    case .mainCurrentOrAsync:
      if Self.isMain { work() } else { DispatchQueue.main.async(execute: work) }
    case .untouched: work()
    case .dispatch(let queue): queue.async(execute: work)
    }
  }

  /// A mark on the main queue: unlike `Thread.isMainThread` it needs no Foundation, and it also tells the truth on Linux, where the main
  /// queue may be served by another thread.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static var isMain: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
