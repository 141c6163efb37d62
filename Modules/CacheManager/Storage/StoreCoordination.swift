internal import CacheCore
internal import Synchronization

/// The limits and the order of a manager's calls of the durable store.
final class StoreCoordination: Sendable {
  let writes: StoreDeadline
  let reads: StoreDeadline
  let order = CommitOrder()

  init(_ configuration: ResourceManager.Configuration) {
    writes = StoreDeadline(clock: configuration.clock, limit: configuration.storeWriteTimeout)
    reads = StoreDeadline(clock: configuration.clock, limit: configuration.storeReadTimeout)
  }
}

extension ResolvedRequest {
  var writeDeadline: StoreDeadline { settings.stores.writes }
  var readDeadline: StoreDeadline { settings.stores.reads }
}

/// Limits the time that loads wait for the durable store. Longer work continues without the load.
///
/// A slow disk must not delay a load that already has the network's response, and a disk that hangs must not stop a load that
/// the network can satisfy. One task watches all calls, and runs only while a load waits. A timer for each call would cost as
/// much as the work that it watches.
final class StoreDeadline: Sendable {
  /// A call of the store whose time is not over.
  private struct Call {
    /// The number of checks until its time is over.
    var checks: Int
    /// The load that waits for the end, if it waits already and was not cancelled.
    var waiter: UnsafeContinuation<Void, Never>?
    var isCancelled = false
  }

  private struct State {
    var last = 0
    var calls: [Int: Call] = [:]
    /// The calls that continue after their time. No load waits for them any more.
    var leftBehind: Set<Int> = []
    var watch: Task<Void, Never>?
    /// The calls of ``StoreDeadline/idle()``, with the number of checks until their time is over.
    var closers: [(checks: Int, waiter: UnsafeContinuation<Bool, Never>)] = []

    var isIdle: Bool { calls.isEmpty && leftBehind.isEmpty }
  }

  /// The number of calls without a load at which the store counts as full. Each call holds memory until it ends, so further work
  /// that needs much memory is not begun.
  static let mostLeftBehind = 256

  /// The multiple of the limit after which a store counts as hung. Work that a load would rather wait for is given up then.
  static let hangFactor = 100

  private let state = Lock(State())
  private let clock: any CacheClock
  /// The time that a load waits, or `nil` to wait until the work has ended.
  let limit: Duration?

  init(clock: any CacheClock, limit: Duration?) {
    self.clock = clock
    self.limit = limit
  }

  /// Whether so many calls continue without a load that no more should begin.
  var isFull: Bool { state.withLock { $0.leftBehind.count >= Self.mostLeftBehind } }

  /// Runs `work` and waits for it until the deadline. A write is completed even if the load ends. A load into the store alone
  /// waits ``hangFactor`` times as long for it.
  ///
  /// - Parameters:
  ///   - load: The load that waits.
  ///   - times: The factor by which the usual limit is multiplied.
  ///   - isRead: Whether the work only reads. A cancellation of the load's task then ends the wait at once and cancels the work.
  ///   - work: The work of the store.
  /// - Returns: The result of the work, or `nil` if the work has not ended yet.
  func wait<Value: Sendable>(
    _ load: ResolvedRequest, times: Int = 1, isRead: Bool = false, for work: @escaping @Sendable () async -> Value
  ) async -> Value? {
    guard let limit, load.store != nil else { return await work() }
    let result = Lock<Value?>(nil)
    let times = load.destination.isStore && !isRead ? Self.hangFactor : times
    let number = state.withLock { state in
      state.last += 1
      state.calls[state.last] = Call(checks: 2 * times)
      return state.last
    }
    // Most work that a store does at once needs no other thread.
    let task = Task.begun(on: load.downloader?.preferredExecutor, priority: Task.currentPriority) { [self] in
      let value = await work()
      result.withLock { $0 = value }
      ended(number)
    }
    if let value = result.withLock({ $0 }) { return value }
    await withTaskCancellationHandler {
      await end(of: number, limit)
    } onCancel: {
      guard isRead else { return }
      task.cancel()
      state.withLock { state -> UnsafeContinuation<Void, Never>? in
        state.calls[number]?.isCancelled = true
        return state.calls[number]?.waiter.take()
      }?.resume()
    }
    return result.withLock { $0 }
  }

  /// Waits until a call has ended, its time is over, or its load is cancelled.
  private func end(of number: Int, _ limit: Duration) async {
    await withUnsafeContinuation { continuation in
      let waits = state.withLock { state in
        guard let call = state.calls[number] else { return false }
        watch(&state, every: limit / 2)
        if !call.isCancelled { state.calls[number]?.waiter = continuation }
        return !call.isCancelled
      }
      if !waits { continuation.resume() }
    }
  }

  private func ended(_ number: Int) {
    let (waiter, closers) = state.withLock { state in
      let call = state.calls.removeValue(forKey: number)
      if call == nil { state.leftBehind.remove(number) }
      defer { if state.isIdle { state.closers = [] } }
      return (call?.waiter, state.isIdle ? state.closers : [])
    }
    waiter?.resume()
    for closer in closers { closer.waiter.resume(returning: true) }
  }

  // MARK: Watching

  private func watch(_ state: inout State, every interval: Duration) {
    guard state.watch == nil else { return }
    state.watch = Task.detached { [self] in
      repeat {
        // A clock that fails without a cancellation must not keep loads waiting.
        guard (try? await clock.sleep(for: interval)) != nil || !Task.isCancelled else { return }
        await Task.yield()
      } while releaseLate()
    }
  }

  /// Releases the loads whose time is over.
  ///
  /// - Returns: Whether any call is left to watch.
  private func releaseLate() -> Bool {
    let (waiters, closers, continues) = state.withLock { state in
      var waiters: [UnsafeContinuation<Void, Never>] = []
      // Another task may be watching by now.
      if Task.isCancelled { return (waiters, [UnsafeContinuation<Bool, Never>](), false) }
      for (number, call) in state.calls {
        state.calls[number]?.checks -= 1
        guard call.checks <= 1 else { continue }
        if let waiter = call.waiter { waiters.append(waiter) }
        state.calls[number] = nil
        state.leftBehind.insert(number)
      }
      for index in state.closers.indices { state.closers[index].checks -= 1 }
      let closers = state.closers.filter { $0.checks <= 0 }.map(\.waiter)
      state.closers.removeAll { $0.checks <= 0 }
      if state.calls.isEmpty, state.closers.isEmpty { state.watch = nil }
      return (waiters, closers, state.watch != nil)
    }
    for waiter in waiters { waiter.resume() }
    for closer in closers { closer.resume(returning: false) }
    return continues
  }

  /// Returns when all work has ended, at the latest after ``hangFactor`` times the limit. The watch then has no calls, and stops.
  ///
  /// - Returns: Whether all work has ended.
  @discardableResult
  func idle() async -> Bool {
    let isIdle = await withUnsafeContinuation { continuation in
      let isIdle = state.withLock { state in
        guard !state.isIdle, let limit else { return true }
        state.closers.append((2 * Self.hangFactor, continuation))
        watch(&state, every: limit / 2)
        return false
      }
      if isIdle { continuation.resume(returning: true) }
    }
    // Work that began since then still needs the watch.
    state.withLock { $0.isIdle ? $0.watch.take() : nil }?.cancel()
    return isIdle
  }
}

/// The order in which the responses of this process are stored in durable stores. An older response never replaces a later one,
/// however late its body ends.
///
/// Two requests for one resource can run at once, for example after a purge or with the policy `reload`. Each response takes a
/// ticket when its head arrives. For each key, one ticket at a time changes the stores, and none after a ticket of a later
/// response. A key is forgotten with its last ticket.
final class CommitOrder: Sendable {
  /// A key in one durable store.
  fileprivate struct Subject: Hashable {
    let key: CacheKey
    let store: ComponentID
  }

  /// The position of a response among those with the same key. Responses that arrived at the same time have the order of their
  /// tickets.
  fileprivate struct Position: Comparable {
    /// Whether the response is one that the caller stores. It counts as the latest until it is stored.
    var isFromCaller: Bool
    let responseTime: Timestamp
    let number: Int

    static func < (a: Position, b: Position) -> Bool {
      if a.isFromCaller != b.isFromCaller { return b.isFromCaller }
      return (a.responseTime, a.number) < (b.responseTime, b.number)
    }
  }

  /// The responses with one key that may still change the stores.
  private struct Commits {
    var tickets = 0
    /// The latest response that has begun to change the stores.
    var latest: Position?
    /// The number of responses that have begun to change the stores.
    var turns = 0
    var isBusy = false
    var waiting: [UnsafeContinuation<Void, Never>] = []

    mutating func turn(_ position: Position) -> Turn {
      if let latest, latest > position { return .over }
      latest = position
      guard !isBusy else { return .later }
      isBusy = true
      turns += 1
      return .own
    }

    /// Returns the continuations to resume.
    mutating func leave() -> [UnsafeContinuation<Void, Never>] {
      isBusy = false
      latest?.isFromCaller = false
      defer { waiting = [] }
      return waiting
    }
  }

  private enum Turn { case own, later, over }

  private let commits = Lock<[Subject: Commits]>([:])
  private let last = Atomic<Int>(0)

  /// Registers a response whose head has arrived.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - isFromCaller: Whether the response is one that the caller stores.
  ///   - store: The durable store that the order protects.
  func ticket(for key: CacheKey, _ responseTime: Timestamp, isFromCaller: Bool, in store: ComponentID) -> Ticket {
    let number = last.add(1, ordering: .relaxed).newValue
    let subject = Subject(key: key, store: store)
    change(subject) { $0.tickets += 1 }
    return Ticket(self, subject, Position(isFromCaller: isFromCaller, responseTime: responseTime, number: number))
  }

  /// Changes the responses with one key in place. An optional subscript would allocate memory for each access.
  private func change<Value>(_ subject: Subject, _ body: (inout Commits) -> Value) -> Value {
    commits.withLock { body(&$0[subject, default: Commits()]) }
  }

  private func removeTicket(of subject: Subject) {
    commits.withLock { commits in
      guard let index = commits.index(forKey: subject) else { return }
      if commits.values[index].tickets > 1 { commits.values[index].tickets -= 1 } else { commits.remove(at: index) }
    }
  }

  /// The right of one response to change the stores.
  final class Ticket: Sendable {
    private let order: CommitOrder
    private let subject: Subject
    private let position: Position

    fileprivate init(_ order: CommitOrder, _ subject: Subject, _ position: Position) {
      (self.order, self.subject, self.position) = (order, subject, position)
    }

    deinit { order.removeTicket(of: subject) }

    /// Whether a later response has begun to change the stores.
    var isSuperseded: Bool { order.change(subject) { $0.latest.map { $0 > position } ?? false } }

    /// Whether an earlier response may have changed the stores after this response's lookup. Valid between ``enter()`` and
    /// ``leave()``.
    var followsAnother: Bool { order.change(subject) { $0.turns } > 1 }

    /// Waits until no other response with the same key changes the stores.
    ///
    /// - Returns: Whether this response may change them now, until ``leave()``. `false` if a later response has begun to.
    func enter() async -> Bool {
      while true {
        switch order.change(subject, { $0.turn(position) }) {
        case .own: return true
        case .over: return false
        case .later: await wait()
        }
      }
    }

    private func wait() async {
      await withUnsafeContinuation { continuation in
        let isBusy = order.change(subject) { commits in
          if commits.isBusy { commits.waiting.append(continuation) }
          return commits.isBusy
        }
        if !isBusy { continuation.resume() }
      }
    }

    func leave() {
      for waiter in order.change(subject, { $0.leave() }) { waiter.resume() }
    }
  }
}
