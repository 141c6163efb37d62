#if Redis
internal import CacheCore

/// A member of a fleet, which asks the server for messages at a fixed interval.
///
/// The server knows the last message that each member has handled. A broadcast waits until each member has handled its message,
/// or until the member's time limit has passed since the message was sent. A member that could not ask within that limit is no
/// longer current, by its own clock.
final class RedisMembership: FleetMembership {
  /// The latest messages that the server keeps. A member that has missed more of them treats all stored responses as outdated.
  static let messageLimit = 1_000
  /// The maximum number of messages in one reply.
  static let batch = 100

  /// The longest time in milliseconds for which a member may be current. A broadcast waits for no longer time that a server
  /// states.
  private static let longestTimeout: Int64 = 86_400_000

  private struct State {
    /// The end of the time for which this member is current.
    var currentUntil: ContinuousClock.Instant?
    var isLeft = false
    /// The identity of the server's data, and the time at which this member has seen it first.
    var epoch: (id: String, since: ContinuousClock.Instant)?
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
  /// The sender of this member's messages. Unlike the name, it is new after a restart.
  private let sender = Hexadecimal.text(Revision.random().low)
  private let engine: RedisEngine
  private let timeout: Duration
  private let state = Lock(State())
  private let polling = Lock<Task<Void, Never>?>(nil)
  private let left: @Sendable () -> Void

  /// - Parameter left: Called when the member leaves.
  init(
    _ name: String?, _ engine: RedisEngine, timeout: Duration, left: @escaping @Sendable () -> Void,
    receive: @escaping @Sendable (String, Bool) async throws(CacheError) -> Void,
    missed: @escaping @Sendable () async throws(CacheError) -> Void
  ) {
    self.name = name ?? sender
    isNamed = name != nil
    (self.engine, self.timeout, self.left) = (engine, timeout, left)
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

  deinit {
    if let departure = departure() { Task { await departure() } }
  }

  var isCurrent: Bool {
    guard let end = state.withLock({ $0.currentUntil }) else { return false }
    return ContinuousClock.now < end
  }

  func leave() async { await departure()?() }

  /// Ends the membership in this process. Returns the rest of the work, or `nil` if the member has left already.
  private func departure() -> (@Sendable () async -> Void)? {
    let isFirst = state.withLock { state in
      defer { (state.currentUntil, state.isLeft) = (nil, true) }
      return !state.isLeft
    }
    guard isFirst else { return nil }
    let polling = polling.withLock { $0 }
    polling?.cancel()
    return { [engine, name, isNamed, left] in
      await polling?.value
      // A named member returns, and catches up.
      let (tag, keys) = engine.names.fleet
      _ = try? await engine.run(.leaveFleet, keys: keys, [.text(name), .number(isNamed ? 1 : 0)], for: tag)
      left()
    }
  }

  // MARK: Messages

  /// Asks for messages and handles them.
  ///
  /// - Returns: Whether the member has to ask again at once, because there are more messages or to confirm the handled ones.
  private func poll(
    _ position: inout Position?, _ receive: (String, Bool) async throws(CacheError) -> Void,
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
    state.withLock { if $0.epoch?.id != epoch { $0.epoch = (epoch, .now) } }
    var messages: [(sender: String, text: String)] = []
    var number = known
    for entry in entries {
      // An entry of the stream has a number, and the number of the entry before, the sender and the text as fields.
      guard let parts = entry.array, parts.count == 2, let fields = parts[1].array?.compactMap(\.text), fields.count == 6,
        fields[1] == "\(number)", let next = parts[0].text?.split(separator: "-").first.flatMap({ Int64($0) })
      else { break }
      messages.append((fields[3], fields[5]))
      number = next
    }
    guard known >= 0, known == last || !messages.isEmpty else {
      // The server does not know this member, or it has lost messages. No broadcast waits for an unknown member until it has
      // joined again.
      state.withLock { $0.currentUntil = nil }
      position = nil
      try await missed()
      position = Position(epoch: epoch, number: last)
      return true
    }
    let hasJoined = position != nil
    do throws(CacheError) {
      for message in messages where message.sender != sender { try await receive(message.text, !isCurrent) }
    } catch {
      // The server repeats the messages after the last confirmed one, and no broadcast waits for a member that is not current.
      state.withLock { $0.currentUntil = nil }
      position = nil
      throw error
    }
    position = Position(epoch: epoch, number: number)
    guard messages.isEmpty, hasJoined else { return true }
    state.withLock { if !$0.isLeft { $0.currentUntil = sent + timeout } }
    return false
  }

  func broadcast(_ message: String) async throws(CacheError) {
    let (tag, keys) = engine.names.fleet
    let reply = try await engine.run(
      .sendToFleet, keys: keys, [.text(message), .number(Self.messageLimit), .text(sender)], for: tag)
    guard case .array(let parts) = reply, parts.count == 3, let epoch = parts[0].text, let number = parts[1].integer,
      let isSettled = parts[2].integer
    else { throw CacheError(.storeUnavailable, reason: "the Redis server sent an unexpected reply about the fleet") }
    // The clock of this process, because the server's may be changed.
    let start = ContinuousClock.now
    let isOld = state.withLock { $0.epoch.map { $0.id == epoch && $0.since + timeout < start } ?? false }
    while true {
      let longest = try await waiting(for: number, epoch, hasPassed: false)
      // The server does not know members that were current when it lost its data. They are not current any more after this time.
      let end = max(.milliseconds(longest), isSettled == 1 || isOld ? .zero : timeout)
      guard end > .zero else { return }
      if ContinuousClock.now - start > end {
        _ = try await waiting(for: number, epoch, hasPassed: true)
        return
      }
      do {
        try await Task.sleep(for: .milliseconds(5))
      } catch {
        throw .cancelled
      }
    }
  }

  /// Returns the longest time in milliseconds for which a member that has not handled a message may be current.
  private func waiting(for number: Int64, _ epoch: String, hasPassed: Bool) async throws(CacheError) -> Int64 {
    let (tag, keys) = engine.names.fleet
    let reply = try await engine.run(
      .awaitFleet, keys: keys, [.text(name), .text(epoch), .text("\(number)"), .number(hasPassed ? 1 : 0)], for: tag)
    guard let longest = reply.integer, (0...Self.longestTimeout).contains(longest) else {
      throw CacheError(.storeUnavailable, reason: "the Redis server has lost the message before every process has handled it")
    }
    return longest
  }
}
#endif
