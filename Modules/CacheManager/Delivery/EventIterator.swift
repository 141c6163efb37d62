package import CacheCore

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
