internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Limits the time that loads wait for the durable store. Longer work continues without the load.
///
/// A slow disk must not delay a load that already has the network's response, and a disk that hangs must not stop a load that
/// the network can satisfy. One task watches all calls with the same limit, and runs only while a load waits. A timer for each
/// call would cost as much as the work that it watches.
final class StoreDeadline: Sendable {
  /// A call of the store whose time is not over.
  private struct Call {
    /// The limit of its load.
    let limit: Duration
    /// The number of checks until its time is over.
    var checks: Int
    /// The load that waits for the end, if it waits already and was not cancelled.
    var waiter: Resumption<Void>?
    var isCancelled = false
  }

  private struct State {
    var last = 0
    var calls: [Int: Call] = [:]
    /// The calls that continue after their time, with the limits of their loads, which do not wait for them any more.
    var leftBehind: [Int: Duration] = [:]
    /// The tasks that watch the calls with the same limit.
    var watches: [Duration: Task<Void, Never>] = [:]
    /// The calls of ``StoreDeadline/idle()``, with the number of checks until their time is over.
    var closers: [(limit: Duration, checks: Int, waiter: Resumption<Bool>)] = []

    var isIdle: Bool { calls.isEmpty && leftBehind.isEmpty }
    var longestLimit: Duration { max(calls.values.lazy.map(\.limit).max() ?? .zero, leftBehind.values.max() ?? .zero) }

    mutating func endUnusedWatch(_ limit: Duration) {
      let isUsed = calls.values.contains { $0.limit == limit } || closers.contains { $0.limit == limit }
      if !isUsed { watches[limit] = nil }
    }
  }

  /// The number of calls without a load at which the store counts as full. Each call holds memory until it ends, so further work
  /// that needs much memory is not begun.
  static let mostLeftBehind = 256

  /// The multiple of the limit after which a store counts as hung. Work that a load would rather wait for is given up then.
  static let hangFactor = 100

  private let state = Lock(State())
  private let clock: any CacheClock
  /// The time that loads without a limit of their own wait, or `nil` if they wait until the work has ended.
  private let limit: Duration?

  init(clock: any CacheClock, limit: Duration?) {
    self.clock = clock
    self.limit = limit
  }

  /// Whether so many calls continue without a load that no more should begin, unless a load waits until they have ended.
  var isOverloaded: Bool { state.withLock { $0.leftBehind.count >= Self.mostLeftBehind } }

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
    guard let limit = isRead ? load.environment.storeReadTimeout : load.environment.storeWriteTimeout, load.store != nil else {
      return await work()
    }
    let result = Lock<Value?>(nil)
    let times = load.destination.isStore && !isRead ? Self.hangFactor : times
    let number = state.withLock { state in
      state.last += 1
      state.calls[state.last] = Call(limit: limit, checks: 2 * times)
      return state.last
    }
    // Most work that a store does at once needs no other thread. A task on the engine's executor, for a load that does not run
    // there, would wake two threads at the end of other work: that of the engine, and that of the load.
    let hasExecutor = withUnsafeCurrentTask { $0?.unownedTaskExecutor != nil }
    let executor = hasExecutor ? load.downloader?.preferredExecutor : nil
    let task = Task.begun(on: executor, priority: Task.currentPriority) { [self] in
      let value = await work()
      result.withLock { $0 = value }
      ended(number)
    }
    if let value = result.withLock({ $0 }) { return value }
    await withTaskCancellationHandler {
      await end(of: number)
    } onCancel: {
      guard isRead else { return }
      task.cancel()
      state.withLock { state -> Resumption<Void>? in
        state.calls[number]?.isCancelled = true
        return state.calls[number]?.waiter.take()
      }?.resume()
    }
    return result.withLock { $0 }
  }

  /// Waits until a call has ended, its time is over, or its load is cancelled.
  private func end(of number: Int) async {
    await withResumption { continuation in
      let waits = state.withLock { state in
        guard let call = state.calls[number] else { return false }
        watch(&state, call.limit)
        if !call.isCancelled { state.calls[number]?.waiter = continuation }
        return !call.isCancelled
      }
      if !waits { continuation.resume() }
    }
  }

  private func ended(_ number: Int) {
    let (waiter, closers) = state.withLock { state in
      let call = state.calls.removeValue(forKey: number)
      if call == nil { state.leftBehind[number] = nil }
      defer { if state.isIdle { state.closers = [] } }
      return (call?.waiter, state.isIdle ? state.closers : [])
    }
    waiter?.resume()
    for closer in closers { closer.waiter.resume(returning: true) }
  }

  // MARK: Watching

  private func watch(_ state: inout State, _ limit: Duration) {
    guard state.watches[limit] == nil else { return }
    state.watches[limit] = Task.detached { [self] in
      repeat {
        // A clock that fails without a cancellation must not keep loads waiting.
        guard (try? await clock.sleep(for: limit / 2)) != nil || !Task.isCancelled else { return }
        await Task.yield()
      } while releaseLate(limit)
    }
  }

  /// Releases the loads with this limit whose time is over.
  ///
  /// - Returns: Whether any call is left to watch.
  private func releaseLate(_ limit: Duration) -> Bool {
    let (waiters, closers, continues) = state.withLock { state in
      var waiters: [Resumption<Void>] = []
      // Another task may be watching by now.
      if Task.isCancelled { return (waiters, [Resumption<Bool>](), false) }
      for (number, call) in state.calls where call.limit == limit {
        state.calls[number]?.checks -= 1
        guard call.checks <= 1 else { continue }
        if let waiter = call.waiter { waiters.append(waiter) }
        state.calls[number] = nil
        state.leftBehind[number] = limit
      }
      for index in state.closers.indices where state.closers[index].limit == limit { state.closers[index].checks -= 1 }
      let closers = state.closers.filter { $0.checks <= 0 }.map(\.waiter)
      state.closers.removeAll { $0.checks <= 0 }
      state.endUnusedWatch(limit)
      return (waiters, closers, state.watches[limit] != nil)
    }
    for waiter in waiters { waiter.resume() }
    for closer in closers { closer.resume(returning: false) }
    return continues
  }

  /// Returns when all work has ended, at the latest after ``hangFactor`` times the limit. Without a limit, the longest one of the
  /// loads applies. The watches then have no calls, and stop.
  ///
  /// - Returns: Whether all work has ended.
  @discardableResult
  func idle() async -> Bool {
    let isIdle = await withResumption { continuation in
      let isIdle = state.withLock { state in
        if state.isIdle { return true }
        let limit = limit ?? state.longestLimit
        state.closers.append((limit, 2 * Self.hangFactor, continuation))
        watch(&state, limit)
        return false
      }
      if isIdle { continuation.resume(returning: true) }
    }
    // Work that began since then still needs the watch.
    let watches = state.withLock { state in
      defer { if state.isIdle { state.watches = [:] } }
      return state.isIdle ? Array(state.watches.values) : []
    }
    for watch in watches { watch.cancel() }
    return isIdle
  }
}

extension RequestSettings {
  var writeDeadline: StoreDeadline { environment.writeDeadline }
  /// Whether the load must begin no more writes that need much memory. A load without a limit waits for its own writes.
  var isStoreOverloaded: Bool { environment.storeWriteTimeout != nil && environment.writeDeadline.isOverloaded }
}

/// Reads of the durable store, which end even if the store hangs.
extension TieredCache {
  /// Runs a read of the durable store, and waits for it until the deadline.
  ///
  /// - Throws: The error of the store, `CacheError.Code.overloaded` if the store is too slow, or a cancellation, at once.
  func read<Value: Sendable>(
    _ read: @escaping @Sendable () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let deadline = request.environment.readDeadline
    guard request.environment.storeReadTimeout != nil else { return try await read() }
    if deadline.isOverloaded { throw .overloadedStore }
    let result = await deadline.wait(request, isRead: true) { () async -> Result<Value, CacheError> in
      do throws(CacheError) {
        return .success(try await read())
      } catch {
        return .failure(error)
      }
    }
    guard let result else { throw Task.isCancelled ? .cancelled : .slowStore }
    return try result.get()
  }

  /// Returns a stored body whose reads end even if the store hangs.
  func bounded(_ body: ResourceBody) -> ResourceBody {
    guard body.data == nil, request.environment.storeReadTimeout != nil else { return body }
    return ResourceBody(length: body.length, source: BoundedBody(body.source, self))
  }

  private final class BoundedBody: ResourceBody.Source {
    private let base: any ResourceBody.Source
    private let cache: TieredCache

    init(_ base: any ResourceBody.Source, _ cache: TieredCache) { (self.base, self.cache) = (base, cache) }

    var trailers: HTTPFields? { base.trailers }

    func next() async throws(CacheError) -> Data? {
      try await cache.read { [base] () throws(CacheError) in try await base.next() }
    }

    func cancel() { base.cancel() }
  }
}

extension CacheError {
  /// The error of a call that the durable store has not ended in time.
  static let slowStore = CacheError(.overloaded, reason: "the store is too slow")
  /// The error of a call that is not begun, because the durable store has not ended earlier ones.
  static let overloadedStore = CacheError(
    .overloaded, reason: "the store has not ended \(StoreDeadline.mostLeftBehind) earlier calls")
}
