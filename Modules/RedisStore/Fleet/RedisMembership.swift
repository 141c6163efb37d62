#if Redis
internal import CacheCore

/// A member of a fleet, which asks the server for messages at a fixed interval.
///
/// The server knows the last message that each member has handled, and the time of its last request. A broadcast waits for the
/// members that have asked within the time limit. A member that could not ask within that time is no longer current, by its own
/// clock. So no member serves a purged response after the broadcast has returned.
final class RedisMembership: FleetMembership {
  /// The latest messages that the server keeps. A member that has missed more of them treats all stored responses as outdated.
  static let messageLimit = 1_000
  /// The maximum number of messages in one reply.
  static let batch = 100

  private struct State {
    /// The end of the time for which this member is current.
    var currentUntil: ContinuousClock.Instant?
    var isLeft = false
  }

  /// The position of a member in the messages.
  private struct Position {
    /// The identity of the server's data, which changes when the server has lost it.
    var epoch: String
    /// The number of the last message that the member has handled.
    var number: Int64
  }

  private let name: String
  private let isNamed: Bool
  private let engine: RedisEngine
  private let timeout: Duration
  private let state = Lock(State())
  private let polling = Lock<Task<Void, Never>?>(nil)

  init(
    _ name: String?, _ engine: RedisEngine, timeout: Duration,
    receive: @escaping @Sendable (String) async throws(CacheError) -> Void,
    missed: @escaping @Sendable () async throws(CacheError) -> Void
  ) {
    self.name = name ?? Hexadecimal.text(Revision.random().low)
    isNamed = name != nil
    (self.engine, self.timeout) = (engine, timeout)
    // The task does not retain the membership, so that a released one leaves.
    let task = Task { [weak self] in
      var position: Position?
      var interval = Duration.zero
      while (try? await Task.sleep(for: interval)) != nil, let self {
        let hasMore = (try? await self.poll(&position, receive, missed)) ?? false
        interval = hasMore ? .zero : self.timeout / 20
      }
    }
    polling.withLock { $0 = task }
  }

  deinit { leave() }

  var isCurrent: Bool {
    guard let end = state.withLock({ $0.currentUntil }) else { return false }
    return ContinuousClock.now < end
  }

  func leave() {
    let isFirst = state.withLock { state in
      defer { (state.currentUntil, state.isLeft) = (nil, true) }
      return !state.isLeft
    }
    guard isFirst else { return }
    let polling = polling.withLock { $0 }
    polling?.cancel()
    Task { [engine, name, isNamed] in
      await polling?.value
      // A named member returns, and catches up.
      _ = try? await engine.run(
        .leaveFleet, keys: engine.names.fleet.keys, [.text(name), .number(isNamed ? 1 : 0)], for: engine.names.fleet.tag)
    }
  }

  // MARK: Messages

  /// Asks for messages and handles them.
  ///
  /// - Returns: Whether the member has to ask again at once, because there are more messages or to confirm the handled ones.
  private func poll(
    _ position: inout Position?, _ receive: (String) async throws(CacheError) -> Void,
    _ missed: () async throws(CacheError) -> Void
  ) async throws(CacheError) -> Bool {
    let sent = ContinuousClock.now
    let (tag, keys) = engine.names.fleet
    let reply = try await engine.run(
      .pollFleet, keys: keys,
      [
        .text(name), .text(position?.epoch ?? ""), .text("\(position?.number ?? 0)"), .number(Self.batch),
        .milliseconds(timeout),
      ], for: tag)
    guard case .array(let parts) = reply, parts.count == 4, let epoch = parts[0].text, let last = parts[1].integer,
      let known = parts[2].integer, let entries = parts[3].array
    else { throw CacheError(.storeUnavailable, reason: "the Redis server sent an unexpected reply about the fleet") }
    var messages: [(sender: String, text: String)] = []
    for entry in entries {
      // An entry of the stream has a number and one field: the sender and the text.
      guard let parts = entry.array, parts.count == 2, let number = parts[0].text, let field = parts[1].array, field.count == 2,
        let sender = field[0].text, let text = field[1].text, number == "\(known + Int64(messages.count) + 1)-0"
      else { break }
      messages.append((sender, text))
    }
    guard known >= 0, known == last || !messages.isEmpty else {
      // The server does not know this member, or it has lost messages.
      position = nil
      try await missed()
      position = Position(epoch: epoch, number: last)
      return true
    }
    let hasJoined = position != nil
    do throws(CacheError) {
      // After a restart, the member may not have carried out its own messages.
      for message in messages where message.sender != name || !hasJoined { try await receive(message.text) }
    } catch {
      // The server repeats the messages after the last confirmed one, and no broadcast waits for a member that is not current.
      state.withLock { $0.currentUntil = nil }
      position = nil
      throw error
    }
    position = Position(epoch: epoch, number: known + Int64(messages.count))
    guard messages.isEmpty, hasJoined else { return true }
    state.withLock { if !$0.isLeft { $0.currentUntil = sent + timeout } }
    return false
  }

  func broadcast(_ message: String) async throws(CacheError) {
    let (tag, keys) = engine.names.fleet
    let reply = try await engine.run(
      .sendToFleet, keys: keys, [.text(message), .number(Self.messageLimit), .text(name)], for: tag)
    guard case .array(let parts) = reply, parts.count == 2, let epoch = parts[0].text, let number = parts[1].integer else {
      throw CacheError(.storeUnavailable, reason: "the Redis server sent an unexpected reply about the fleet")
    }
    while true {
      let waiting = try await engine.run(
        .awaitFleet, keys: keys, [.text(name), .text(epoch), .text("\(number)"), .milliseconds(timeout)], for: tag)
      switch waiting.integer {
      case 0: return
      case let count? where count > 0: break
      default:
        throw CacheError(.storeUnavailable, reason: "the Redis server has lost the message before every process has handled it")
      }
      do {
        try await Task.sleep(for: .milliseconds(5))
      } catch {
        throw .cancelled
      }
    }
  }
}
#endif
