public import Dispatch

/// The queue on which completion handlers and progress handlers are called.
public enum CallbackQueue: Sendable {
  /// The main queue, asynchronously.
  case mainAsync
  /// The main queue. The call is immediate if the caller is already on that queue, and asynchronous otherwise.
  case mainCurrentOrAsync
  /// No queue: immediately, on the thread that completed the work.
  case immediate
  /// The given queue, asynchronously.
  case dispatch(DispatchQueue)

  /// The default queue: ``mainCurrentOrAsync`` on Apple platforms, ``immediate`` elsewhere, because servers usually run no main
  /// queue.
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

  /// A key that marks the main queue. Unlike `Thread.isMainThread` it needs no Foundation. It is also correct on Linux, where
  /// another thread may serve the main queue.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static var isMain: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
