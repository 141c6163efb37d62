public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads the bytes of a URL as a stream of events: progress, a stale cached response, and the final response.
  ///
  /// ```swift
  /// for try await event in manager.events(for: url) {
  ///   switch event {
  ///   case .progress(let progress): bar.fraction = progress.fraction
  ///   case .stale(let old): show(old.data)
  ///   case .final(let resource): show(resource.data)
  ///   }
  /// }
  /// ```
  ///
  /// The load starts with the first call of `next()`. Ending the iteration early cancels it.
  public func events(for url: URL, options: RequestOptions = RequestOptions()) -> ResourceEvents<Data> {
    events(for: ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads the bytes of a request as a stream of events: see ``events(for:options:)``.
  public func events(for request: ResourceRequest) -> ResourceEvents<Data> { events(for: request, as: .bytes) }

  /// Loads a URL, transforms its bytes, and returns a stream of events: see ``events(for:options:)``.
  ///
  /// ```swift
  /// for try await event in manager.events(for: url, as: greeting) {
  ///   if case .final(let resource) = event { print(resource.value) }
  /// }
  /// ```
  public func events<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> ResourceEvents<Value> {
    events(for: ResourceRequest(url, options: options), as: transform)
  }

  /// Loads a request, transforms its bytes, and returns a stream of events: see ``events(for:options:)``.
  public func events<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> ResourceEvents<Value> {
    ResourceEvents { [core] channel in
      do throws(CacheError) {
        if let hit = core.hit(request, transform) { return channel.finish(with: .success(hit)) }
        let load = try ResolvedRequest(request, core)
        let task = LoadTask(id: load.id, priority: LoadPriority(load.priority))
        channel.onAbandon { task.cancel() }
        core.start(
          load, transform, task, endsWithStale: false, event: { channel.send($0) }, end: { channel.finish(with: $0) })
      } catch {
        channel.fail(error)
      }
    }
  }
}

/// The events of one load, as an asynchronous sequence. Iterate it once.
///
/// The load starts when the first event is requested, so no load runs without a consumer. Ending the iteration early, or
/// cancelling its task, cancels the load. A cancelled consumer sees the cancellation as an error and never as a normal end.
///
/// ```swift
/// for try await event in manager.events(for: url) {
///   switch event {
///   case .progress(let progress): bar.fraction = progress.fraction
///   case .stale(let old): view.show(old.data)
///   case .final(let resource): view.show(resource.data)
///   }
/// }
/// ```
public struct ResourceEvents<Value: Sendable>: AsyncSequence, Sendable {
  /// Starts the load, which sends its events into the channel.
  package let start: @Sendable (EventChannel<ResourceEvent<Value>>) -> Void

  /// Returns an iterator. Its first step starts the load.
  public func makeAsyncIterator() -> some AsyncIteratorProtocol<ResourceEvent<Value>, CacheError> {
    EventIterator(merging: ResourceEvent.merge, start: start)
  }
}

extension EventChannel {
  /// Ends the channel with a load's outcome.
  func finish<Value: Sendable>(with result: Result<Resource<Value>, CacheError>) where Event == ResourceEvent<Value> {
    switch result {
    case .success(let resource): finish(with: .final(resource))
    case .failure(let error): fail(error)
    }
  }
}

extension ResourceEvent {
  /// Merges two consecutive progress reports into the later one, which makes the earlier one redundant.
  package static func merge(_ earlier: Self, _ later: Self) -> Self? {
    if case .progress = earlier, case .progress = later { return later }
    return nil
  }
}

/// An iterator over the events of one load, which starts when the first event is requested.
package final class EventIterator<Event: Sendable>: AsyncIteratorProtocol {
  private let channel: EventChannel<Event>
  private let start: @Sendable (EventChannel<Event>) -> Void
  private var isStarted = false

  /// - Parameters:
  ///   - merging: Returns one event that replaces two consecutive queued events, or `nil` if both stay queued.
  ///   - start: Starts the load, which sends its events into the channel.
  package init(
    merging merge: @escaping @Sendable (Event, Event) -> Event?, start: @escaping @Sendable (EventChannel<Event>) -> Void
  ) {
    channel = EventChannel(merging: merge)
    self.start = start
  }

  deinit { channel.abandon() }

  package func next() async throws(CacheError) -> Event? {
    if !isStarted {
      isStarted = true
      start(channel)
    }
    return try await channel.next()
  }

  package func next(isolation actor: isolated (any Actor)?) async throws(CacheError) -> Event? { try await next() }
}

/// A channel from callbacks to one consumer. It delivers events in order, and ends with an error or normally.
///
/// The consumer is a task that awaits ``next()``, or work that ``onReady(_:)`` sets and that calls ``takeNext(event:)``.
///
/// An `AsyncThrowingStream` would end normally for a cancelled consumer. It would also not merge progress reports that the
/// consumer has not taken yet.
package final class EventChannel<Event: Sendable>: Sendable {
  private typealias Consumer = Resumption<Result<Event?, CacheError>>

  private enum Ending { case finished, failed(CacheError) }

  private struct State {
    var queue: [Event] = []
    /// Whether the last event was sent. After it, only the ending is accepted.
    var hasLast = false
    var ending: Ending?
    var consumer: Consumer?
    var onReady: (@Sendable () -> Void)?
    var onAbandon: (@Sendable () -> Void)?
    var isAbandoned = false
  }

  private let state = Lock(State())
  private let merge: @Sendable (Event, Event) -> Event?

  /// - Parameter merging: Returns one event that replaces two consecutive queued events, or `nil` if both stay queued.
  package init(merging merge: @escaping @Sendable (Event, Event) -> Event? = { _, _ in nil }) { self.merge = merge }

  /// Sets the work to run when the consumer goes away. Runs it at once if the consumer has already gone.
  package func onAbandon(_ work: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      if !state.isAbandoned { state.onAbandon = work }
      return state.isAbandoned
    }
    if isLate { work() }
  }

  /// Sets the work of a consumer that is not a task. It runs after each event and after the end, on the thread that sent the
  /// event or the end. It is released after the end.
  package func onReady(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.onReady = work } }

  package func send(_ event: Event) { send(event, isLast: false) }

  private func send(_ event: Event, isLast: Bool) {
    let (consumer, onReady) = state.withLock { state -> (Consumer?, (@Sendable () -> Void)?) in
      guard state.ending == nil, !state.hasLast, !state.isAbandoned else { return (nil, nil) }
      state.hasLast = isLast
      if let consumer = state.consumer {
        state.consumer = nil
        return (consumer, nil)
      }
      if let last = state.queue.last, let merged = merge(last, event) {
        state.queue[state.queue.count - 1] = merged
      } else {
        state.queue.append(event)
      }
      return (nil, state.onReady)
    }
    consumer?.resume(returning: .success(event))
    onReady?()
  }

  /// Ends the channel, after `last` if there is one. No other event is delivered between `last` and the end. Later calls do
  /// nothing.
  package func finish(with last: Event? = nil) {
    if let last { send(last, isLast: true) }
    end(.finished)
  }

  package func fail(_ error: CacheError) { end(.failed(error)) }

  private func end(_ ending: Ending) {
    let (consumer, onReady) = state.withLock { state -> (Consumer?, (@Sendable () -> Void)?) in
      guard state.ending == nil else { return (nil, nil) }
      state.ending = ending
      state.onAbandon = nil
      defer { (state.consumer, state.onReady) = (nil, nil) }
      return (state.consumer, state.onReady)
    }
    consumer?.resume(returning: Self.result(of: ending))
    onReady?()
  }

  private static func result(of ending: Ending) -> Result<Event?, CacheError> {
    switch ending {
    case .finished: .success(nil)
    case .failed(let error): .failure(error)
    }
  }

  package func next() async throws(CacheError) -> Event? {
    let result = await withTaskCancellationHandler {
      await withResumption { continuation in
        let ready: Result<Event?, CacheError>? = state.withLock { state in
          if !state.queue.isEmpty { return .success(state.queue.removeFirst()) }
          if let ending = state.ending { return Self.result(of: ending) }
          if state.isAbandoned { return .failure(.cancelled) }
          state.consumer = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      abandon()
    }
    return try result.get()
  }

  /// Returns the next event, or the end if no event is queued, without waiting.
  ///
  /// - Parameter wantsEvent: Whether to take an event. Otherwise queued events stay in the queue, and a later event can merge
  ///   with the last one.
  /// - Returns: The event, `.success(nil)` or the error at the end, or `nil` if there is nothing to take yet.
  package func takeNext(event wantsEvent: Bool) -> Result<Event?, CacheError>? {
    state.withLock { state in
      if !state.queue.isEmpty { return wantsEvent ? .success(state.queue.removeFirst()) : nil }
      return state.ending.map(Self.result)
    }
  }

  /// Stops the work behind the channel and ends a pending ``next()`` with a cancellation, because the consumer went away.
  package func abandon() {
    // The work is returned too, so that it is released outside the lock: it may hold the last reference to a user's object.
    let (work, consumer, _) = state.withLock { state in
      state.isAbandoned = true
      defer { (state.onAbandon, state.consumer, state.onReady) = (nil, nil, nil) }
      return (state.onAbandon, state.consumer, state.onReady)
    }
    work?()
    consumer?.resume(returning: .failure(.cancelled))
  }
}

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
