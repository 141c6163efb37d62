public import CacheCore

/// An observer that records every event, and can wait for one.
///
/// ```swift
/// let observer = RecordingObserver()
/// configuration.observer = observer
/// _ = try await ResourceManager(configuration).load(url)
/// await observer.first { if case .workEnded = $0 { true } else { false } }
/// ```
public final class RecordingObserver: LoadObserver {
  private struct Watcher {
    var matches: @Sendable (CacheEvent) -> Bool
    var continuation: Resumption<CacheEvent>
  }

  /// A view's wait for its image.
  public struct Wait: Sendable {
    /// The identifier of the wait.
    public let id: LoadID
    /// The URL of the image.
    public let url: LoadURL
    /// The source of the image or the error, or `nil` if the view still waits.
    public internal(set) var result: Result<ResourceSource, CacheError>?
    /// The time of the wait, or zero if the view still waits.
    public internal(set) var duration = Duration.zero
  }

  private struct State {
    var records: [(load: LoadID, event: CacheEvent)] = []
    var waits: [Wait] = []
    var watchers: [Watcher] = []
  }

  public let id = ComponentID.unique(RecordingObserver.self)
  private let state = Lock(State())

  /// Creates an observer without events.
  public init() {}

  /// The events of all loads, in the order in which they were received.
  public var events: [CacheEvent] { state.withLock { $0.records.map(\.event) } }

  /// The loads that had an event, in the order of their first events.
  public var loads: [LoadID] {
    state.withLock { state in
      var seen: Set<LoadID> = []
      return state.records.map(\.load).filter { seen.insert($0).inserted }
    }
  }

  /// The events of one load, in the order in which they were received.
  public func events(of load: LoadID) -> [CacheEvent] {
    state.withLock { $0.records.filter { $0.load == load }.map(\.event) }
  }

  /// The waits of views for their images, in the order in which they began.
  public var waits: [Wait] { state.withLock { $0.waits } }

  /// Records the start of a view's wait.
  public func viewWaits(_ wait: LoadID, for url: LoadURL) { state.withLock { $0.waits.append(Wait(id: wait, url: url)) } }

  /// Records the end of a view's wait.
  public func viewEndsWait(
    _ wait: LoadID, for url: LoadURL, with result: Result<ResourceSource, CacheError>, after duration: Duration
  ) {
    state.withLock { state in
      guard let index = state.waits.firstIndex(where: { $0.id == wait }) else { return }
      (state.waits[index].result, state.waits[index].duration) = (result, duration)
    }
  }

  /// Records an event.
  public func observe(_ event: CacheEvent, of load: LoadID) {
    let satisfied = state.withLock { state in
      state.records.append((load, event))
      let satisfied = state.watchers.filter { $0.matches(event) }
      state.watchers.removeAll { $0.matches(event) }
      return satisfied
    }
    for watcher in satisfied { watcher.continuation.resume(returning: event) }
  }

  /// Returns the first event that matches, already recorded or future.
  @discardableResult
  public func first(where matches: @escaping @Sendable (CacheEvent) -> Bool) async -> CacheEvent {
    await withResumption { continuation in
      let past: CacheEvent? = state.withLock { state in
        if let past = state.records.first(where: { matches($0.event) }) { return past.event }
        state.watchers.append(Watcher(matches: matches, continuation: continuation))
        return nil
      }
      if let past { continuation.resume(returning: past) }
    }
  }
}
