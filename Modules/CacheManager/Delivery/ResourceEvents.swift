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
  let start: @Sendable (EventChannel<ResourceEvent<Value>>) -> Void

  /// Returns an iterator, whose first step starts the load.
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
  fileprivate static func merge(_ earlier: Self, _ later: Self) -> Self? {
    if case .progress = earlier, case .progress = later { return later }
    return nil
  }
}
