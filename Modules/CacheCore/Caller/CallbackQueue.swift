public import Dispatch

/// The queue on which completion handlers and progress handlers are called.
public enum CallbackQueue: Sendable {
  /// The main queue, asynchronously.
  case mainAsync
  /// Immediately if the caller is on the main queue already, otherwise the main queue, asynchronously.
  case mainCurrentOrAsync
  /// Immediately, on the thread that ended the work.
  case immediate
  /// The given queue, asynchronously.
  case dispatch(DispatchQueue)

  /// ``mainCurrentOrAsync`` on Apple platforms, ``immediate`` elsewhere, because servers usually run no main queue.
  public static var platformDefault: CallbackQueue {
    #if canImport(Darwin)
    .mainCurrentOrAsync
    #else
    .immediate
    #endif
  }

  /// Runs `work` on the queue.
  public func execute(_ work: @escaping @Sendable () -> Void) {
    switch self {
    case .mainAsync: DispatchQueue.main.async(execute: work)
    case .mainCurrentOrAsync:
      if Self.isMain { work() } else { DispatchQueue.main.async(execute: work) }
    case .immediate: work()
    case .dispatch(let queue): queue.async(execute: work)
    }
  }

  /// A mark on the main queue: unlike `Thread.isMainThread` it needs no Foundation, and it also tells the truth on Linux, where
  /// the main queue may be served by another thread.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static var isMain: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
