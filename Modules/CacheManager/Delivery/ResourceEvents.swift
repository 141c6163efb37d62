public import CacheCore

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
  public typealias Element = ResourceEvent<Value>
  public typealias Failure = CacheError

  let start: @Sendable (EventChannel<ResourceEvent<Value>>) -> Void

  /// An iterator that pulls one event after the other.
  public final class AsyncIterator: AsyncIteratorProtocol {
    private let start: @Sendable (EventChannel<ResourceEvent<Value>>) -> Void
    private let channel = EventChannel<ResourceEvent<Value>>(merging: ResourceEvent.merge)
    private var isStarted = false

    init(start: @escaping @Sendable (EventChannel<ResourceEvent<Value>>) -> Void) { self.start = start }

    deinit { channel.abandon() }

    public func next() async throws(CacheError) -> ResourceEvent<Value>? {
      if !isStarted {
        isStarted = true
        start(channel)
      }
      return try await channel.next()
    }

    public func next(isolation actor: isolated (any Actor)?) async throws(CacheError) -> ResourceEvent<Value>? {
      try await next()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(start: start) }
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
  fileprivate static func merge(_ earlier: Self, _ later: Self) -> Self? {
    if case .progress = earlier, case .progress = later { return later }
    return nil
  }
}
