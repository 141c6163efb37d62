public import CacheCore

/// Keeps every event, and can wait for one.
public final class RecordingObserver: LoadObserver {
  private struct Watcher {
    var matches: @Sendable (CacheEvent) -> Bool
    var continuation: CheckedContinuation<CacheEvent, Never>
  }

  private struct State {
    var events: [CacheEvent] = []
    var watchers: [Watcher] = []
  }

  public let id = ComponentID.unique(RecordingObserver.self)
  private let state = Lock(State())

  /// An observer that has seen nothing.
  public init() {}

  /// Everything so far, in order.
  public var events: [CacheEvent] { state.withLock { $0.events } }

  public func observe(_ event: CacheEvent) {
    let content = state.withLock { state in
      state.events.append(event)
      let content = state.watchers.filter { $0.matches(event) }
      state.watchers.removeAll { $0.matches(event) }
      return content
    }
    for watcher in content { watcher.continuation.resume(returning: event) }
  }

  /// The first event that matches: one that has come already, or the next that comes.
  @discardableResult
  public func first(where matches: @escaping @Sendable (CacheEvent) -> Bool) async -> CacheEvent {
    await withCheckedContinuation { continuation in
      let past: CacheEvent? = state.withLock { state in
        if let past = state.events.first(where: matches) { return past }
        state.watchers.append(Watcher(matches: matches, continuation: continuation))
        return nil
      }
      if let past { continuation.resume(returning: past) }
    }
  }
}
