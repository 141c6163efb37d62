internal import CacheCore
internal import HTTPTypes

/// The identity of a coalesced load, whose output is bytes or a value made from them by one transform.
struct CoalescedLoadID: Hashable, Sendable {
  var request: CoalescingKey
  /// The transform, or `nil` for bytes.
  var transform: String?
  var value: ObjectIdentifier?
  /// The executor on which the value is made. A load that names an executor has its value made there. The request in ``request``
  /// holds the executor.
  var executor: ObjectIdentifier?
  /// The storage policy of a transform whose values can be stored. Loads with another policy share the bytes and the steps, but
  /// not this coalesced load.
  var storagePolicy: StoragePolicy?

  /// The transform of coalesced loads into the durable store alone. It cannot equal a user's transform, because those are
  /// printable.
  static let storing = "\u{1F}store"
  /// The transform of coalesced loads into callers' files.
  static let file = "\u{1F}file"
}

/// The coalesced loads of a manager: the open ones, which waiters may join, and all whose work has not ended.
final class RequestCoalescer: Sendable {
  private struct State {
    var open: [CoalescedLoadID: any AnyCoalescedLoad] = [:]
    /// The number of ``open`` loads that go into the durable store alone.
    var storing = 0
    var running: [ObjectIdentifier: any AnyCoalescedLoad] = [:]
    /// The number of the latest coalesced load.
    var last = 0
    var isClosed = false
    /// Whether every load was ended. A load that was accepted before may then not begin again.
    var isDismissed = false
  }

  private let state = Lock(State())

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Whether any open load goes into the durable store alone.
  var isStoring: Bool { state.withLock { $0.storing > 0 } }

  /// Joins a running coalesced load, or a new one, which `begin` starts.
  ///
  /// - Parameters:
  ///   - alone: Whether the waiter needs a load of its own, which no other waiter joins. Such a waiter was accepted before, so it
  ///     is accepted also if the manager closes meanwhile.
  ///   - task: The task that is linked to the coalesced load before the load begins.
  /// - Returns: `false` if the manager is closed.
  func join<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, alone: Bool, task: LoadTask, waiter: CoalescedLoad<Output>.Waiter,
    begin: (CoalescedLoad<Output>) -> Void
  ) -> Bool {
    let isShared = !alone && load.head.method == .get && load.body == nil
    while true {
      guard
        let (coalesced, isNew): (CoalescedLoad<Output>, Bool) = coalesced(
          id, load, for: task, isShared: isShared, isAccepted: alone)
      else {
        return false
      }
      guard let token = coalesced.join(waiter) else {
        forget(coalesced, id)
        continue
      }
      if let representation = coalesced.representation, representation !== load.representation {
        representation.add(load.representation)
      }
      follow(coalesced, task, token)
      if isNew { begin(coalesced) } else { load.observe(.joined(url: load.address, to: coalesced.id)) }
      return true
    }
  }

  /// Joins a running coalesced load for a waiter with another purpose than its other waiters. Returns `false` if there is no load
  /// that may be joined.
  ///
  /// - Parameter number: The number of the coalesced load that waits. A later load is not joined, because two loads that look for
  ///   each other at the same moment would both wait forever.
  func joinOpen<Output: Shareable>(
    _ id: CoalescedLoadID, before number: Int, task: LoadTask, waiter: CoalescedLoad<Output>.Waiter,
    _ invalidations: InvalidationLog
  ) -> Bool {
    guard let coalesced = state.withLock({ $0.open[id] as? CoalescedLoad<Output> }), coalesced.number < number,
      !invalidations.mayHaveMet(id.request.resource, since: coalesced.logPosition),
      let token = coalesced.join(waiter)
    else { return false }
    coalesced.representation?.add(nil)
    follow(coalesced, task, token)
    return true
  }

  /// Links a task to a coalesced load. The load has the priority of its most urgent waiter.
  private func follow<Output: Shareable>(_ coalesced: CoalescedLoad<Output>, _ task: LoadTask, _ token: Int) {
    if task.isHandedOut { task.observePriority { [weak coalesced] in coalesced?.raise(to: $0) } }
    // The raise follows the registration, because the observer is not told of earlier raises.
    coalesced.raise(to: task.priority.level)
    task.link { coalesced.leave(token, $0) }
  }

  private func coalesced<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, for task: LoadTask, isShared: Bool, isAccepted: Bool
  ) -> (CoalescedLoad<Output>, isNew: Bool)? {
    state.withLock { state in
      if state.isClosed, !isAccepted || state.isDismissed { return nil }
      // A response that was requested before a removal is not for a waiter that comes after it.
      if isShared, let coalesced = state.open[id] as? CoalescedLoad<Output>,
        !load.invalidations.mayHaveMet(load.settings.resource, since: coalesced.logPosition)
      {
        return (coalesced, false)
      }
      state.last += 1
      let coalesced = CoalescedLoad<Output>(
        id: load.id, in: self, as: id, number: state.last, logPosition: load.invalidations.current,
        // No caller raises the priority of a task that none has, so the coalesced load can take it over.
        priority: task.isHandedOut ? LoadPriority(load.priority) : task.priority, representation: load.representation)
      if isShared {
        if id.transform == CoalescedLoadID.storing, state.open[id] == nil { state.storing += 1 }
        state.open[id] = coalesced
      }
      state.running[ObjectIdentifier(coalesced)] = coalesced
      return (coalesced, true)
    }
  }

  /// Removes a load that takes no more waiters. Does nothing for a load that no waiter could find.
  func forget(_ coalesced: any AnyCoalescedLoad, _ id: CoalescedLoadID) {
    state.withLock { state in
      guard state.open[id] === coalesced else { return }
      state.open[id] = nil
      if id.transform == CoalescedLoadID.storing { state.storing -= 1 }
    }
  }

  /// Removes a load whose work has ended and whose waiters have the outcome.
  func remove(_ coalesced: any AnyCoalescedLoad) {
    _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(coalesced)) }
  }

  /// Stops waiters from joining the running loads, which were requested before now. The present waiters go on waiting.
  func closeToOthers() {
    state.withLock { state in
      state.open = [:]
      state.storing = 0
    }
  }

  /// Refuses new loads.
  func refuseNew() { state.withLock { $0.isClosed = true } }

  /// Ends every load with `error`, and cancels the work that the loads wait for.
  func dismissWaiters(_ error: CacheError) {
    let running = state.withLock { state in
      state.isDismissed = true
      return Array(state.running.values)
    }
    for coalesced in running { coalesced.dismissWaiters(error) }
  }

  /// Refuses new loads, stops the work that no waiter needs, and returns when all work has ended. This includes the loads that
  /// were started meanwhile for waiters that needed a load of their own.
  func close() async {
    while true {
      let running = state.withLock { state in
        state.isClosed = true
        return Array(state.running.values)
      }
      guard !running.isEmpty else { return }
      for coalesced in running { coalesced.retire() }
      for coalesced in running { await coalesced.ended() }
    }
  }
}
