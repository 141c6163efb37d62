public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads the bytes of a URL and calls `completion` once.
  ///
  /// ```swift
  /// let task = manager.load(url) { progress in
  ///   bar.fraction = progress.fraction
  /// } completion: { result in
  ///   if case .success(let resource) = result { show(resource.data) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - url: The URL to load.
  ///   - options: The options of this load.
  ///   - progress: Called on the same queue as `completion`. On a serial queue the calls are in order and never after
  ///     `completion`. Several reports are merged into the last of them if bytes arrive faster than reports are passed on.
  ///   - completion: Called exactly once, on the `CallbackQueue` of the options or of the manager. A cancelled load receives
  ///     `CacheError.cancelled`.
  @discardableResult
  public func load(
    _ url: URL, options: RequestOptions = RequestOptions(), progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Data>, CacheError>) -> Void
  ) -> LoadTask {
    load(ResourceRequest(url, options: options), as: .bytes, progress: progress, completion: completion)
  }

  /// Loads the bytes of a request and calls `completion` once: see ``load(_:options:progress:completion:)``.
  @discardableResult
  public func load(
    _ request: ResourceRequest, progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Data>, CacheError>) -> Void
  ) -> LoadTask {
    load(request, as: .bytes, progress: progress, completion: completion)
  }

  /// Loads a URL, transforms its bytes, and calls `completion` once: see ``load(_:options:progress:completion:)``.
  ///
  /// ```swift
  /// manager.load(url, as: greeting) { result in
  ///   if case .success(let resource) = result { print(resource.value) }
  /// }
  /// ```
  @discardableResult
  public func load<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions(),
    progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) -> LoadTask {
    load(ResourceRequest(url, options: options), as: transform, progress: progress, completion: completion)
  }

  /// Loads a request, transforms its bytes, and calls `completion` once: see ``load(_:options:progress:completion:)``.
  @discardableResult
  public func load<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>, progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) -> LoadTask {
    let task = LoadTask(priority: LoadPriority(request.options.priority))
    let callbacks = CallbackDelivery(
      queue: request.options.callbackQueue ?? configuration.callbackQueue, progress: progress, completion: completion)
    do throws(CacheError) {
      if let hit = core.hit(request, transform, id: task.id) {
        task.finish()
        callbacks.complete(.success(hit))
      } else {
        let load = try ResolvedRequest(request, core, id: task.id)
        core.start(load, transform, task, event: { callbacks.report($0) }, end: { callbacks.complete($0) })
      }
    } catch {
      task.finish()
      callbacks.complete(.failure(error))
    }
    return task
  }
}

/// A running load, as returned by the calls that take a completion handler. Releasing the task does not end the load.
public final class LoadTask: Sendable {
  private enum Phase {
    case running(cancel: (@Sendable () -> Void)?)
    case cancelled
    case ended
  }

  private let phase = Lock(Phase.running(cancel: nil))
  /// The identifier of the load in the events that an observer receives.
  public let id: LoadID
  /// The priority of the load, which can be raised while the load runs.
  public let priority: LoadPriority

  init(id: LoadID = LoadID(), priority: LoadPriority) {
    self.id = id
    self.priority = priority
  }

  /// Ends the load with a cancellation. The transfer stops if no other load waits for it. Does nothing after the load has ended.
  public func cancel() {
    let cancel = phase.withLock { phase -> (@Sendable () -> Void)? in
      guard case .running(let cancel) = phase else { return nil }
      phase = .cancelled
      return cancel
    }
    cancel?()
  }

  /// Whether ``cancel()`` was called before the load ended.
  public var isCancelled: Bool { phase.withLock { if case .cancelled = $0 { true } else { false } } }

  /// Sets the work that cancels the load, instead of earlier work. Runs it at once if the task is cancelled already.
  func onCancel(_ work: @escaping @Sendable () -> Void) {
    // The former work is released outside the lock, as in `finish()`.
    let former = phase.withLock { phase in
      defer { if case .running = phase { phase = .running(cancel: work) } }
      return phase
    }
    if case .cancelled = former { work() }
  }

  /// Ends the task after the load has its result.
  func finish() {
    // The former phase is released outside the lock, because it may hold the last reference to a user's object.
    let former = phase.withLock { phase in
      defer { if case .running = phase { phase = .ended } }
      return phase
    }
    withExtendedLifetime(former) {}
  }
}

/// The callbacks of one load, which run on their queue.
final class CallbackDelivery<Value: Sendable>: Sendable {
  private let queue: CallbackQueue
  private let progress: (@Sendable (LoadProgress) -> Void)?
  private let completion: @Sendable (Result<Resource<Value>, CacheError>) -> Void
  private let isCompleted = Lock(false)

  init(
    queue: CallbackQueue, progress: (@Sendable (LoadProgress) -> Void)?,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) {
    self.queue = queue
    self.progress = progress
    self.completion = completion
  }

  func report(_ event: ResourceEvent<Value>) {
    guard let progress, case .progress(let report) = event else { return }
    queue.execute {
      // The completion may have overtaken this report. A queue that is not serial can run the calls in any order, and
      // reports that were queued before it run later.
      guard !self.isCompleted.withLock({ $0 }) else { return }
      progress(report)
    }
  }

  func complete(_ result: Result<Resource<Value>, CacheError>) {
    queue.execute {
      self.isCompleted.withLock { $0 = true }
      self.completion(result)
    }
  }
}
