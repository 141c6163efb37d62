internal import CacheCore
internal import HTTPTypes

/// What a coalesced load brings: bytes, or a value made from them in one transform.
struct CoalescedLoadID: Hashable, Sendable {
  var request: CoalescingKey
  /// Nil for bytes.
  var transform: String?
  var value: ObjectIdentifier?
  /// Where the value is made: who asks for a place gets it there. The coalesced load's load holds the executor.
  var executor: ObjectIdentifier?
  /// What is stored of a transform that can be. Who wants another thing stored shares the bytes and the steps, not this.
  var storagePolicy: StoragePolicy?

  /// The transform of coalesced loads into the durable store alone. Transforms of users' are printable.
  static let storing = "\u{1F}store"
  /// The transform of coalesced loads into callers' files.
  static let file = "\u{1F}file"
}

/// The coalesced loads of a manager: those that may be joined, and all whose work has not ended.
final class RequestCoalescer: Sendable {
  private struct State {
    var open: [CoalescedLoadID: any AnyCoalescedLoad] = [:]
    /// How many of them go into the durable store alone.
    var storing = 0
    var running: [ObjectIdentifier: any AnyCoalescedLoad] = [:]
    /// The number of the latest coalesced load.
    var last = 0
    var isClosed = false
    /// Every load has been ended, so none that was accepted before may begin again.
    var isDismissed = false
  }

  private let state = Lock(State())

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Whether anything is on its way into the durable store alone.
  var isStoring: Bool { state.withLock { $0.storing > 0 } }

  /// Joins a coalesced load that is under way, or a new one, which `begin` starts.
  ///
  /// - Parameters:
  ///   - alone: a follower who has to ask for itself: nobody joins it. It was accepted before, so it is also when the manager
  ///     closes meanwhile.
  ///   - task: linked to the coalesced load before it begins.
  /// - Returns: whether another one's coalesced load was joined; nil when the manager is closed.
  func join<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, alone: Bool, task: LoadTask, waiter: CoalescedLoad<Output>.Waiter,
    begin: (CoalescedLoad<Output>) -> Void
  ) -> Bool? {
    let isShared = !alone && load.head.method == .get && load.body == nil
    while true {
      guard let (coalesced, isNew) = coalesced(id, load, as: Output.self, isShared: isShared, isAccepted: alone) else {
        return nil
      }
      guard let token = coalesced.join(waiter) else {
        forget(coalesced, id)
        continue
      }
      if let representation = coalesced.representation, representation !== load.representation {
        representation.add(load.representation)
      }
      follow(coalesced, task, token)
      if isNew { begin(coalesced) }
      return !isNew
    }
  }

  /// Joins a coalesced load that is under way, as one who wants something else of it than the others; false when there is none.
  ///
  /// - Parameter number: that of the coalesced load which waits. A later one is not joined: two that look for each other at the
  ///   same moment would both wait, for ever.
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

  /// The coalesced load is as urgent as its most urgent waiter.
  private func follow<Output: Shareable>(_ coalesced: CoalescedLoad<Output>, _ task: LoadTask, _ token: Int) {
    if task.isHandedOut { task.observePriority { [weak coalesced] in coalesced?.priority.raise(to: $0) } }
    // After the observer is there: an earlier raise was not told to it.
    coalesced.priority.raise(to: task.priority.level)
    task.link { coalesced.leave(token, $0) }
  }

  private func coalesced<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, as output: Output.Type, isShared: Bool, isAccepted: Bool
  ) -> (CoalescedLoad<Output>, isNew: Bool)? {
    state.withLock { state in
      if state.isClosed, !isAccepted || state.isDismissed { return nil }
      // What was asked for before a removal is not for who comes after it.
      if isShared, let coalesced = state.open[id] as? CoalescedLoad<Output>,
        !load.invalidations.mayHaveMet(load.settings.resource, since: coalesced.logPosition)
      {
        return (coalesced, false)
      }
      state.last += 1
      let coalesced = CoalescedLoad<Output>(
        number: state.last, logPosition: load.invalidations.current, priority: LoadPriority(load.priority),
        representation: load.representation,
        // Strong: a coalesced load lives in `running` no longer than its work, and until then the table has to be there.
        onClose: { coalesced in if isShared { self.forget(coalesced, id) } },
        onOver: { coalesced in
          _ = self.state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(coalesced)) }
        })
      if isShared {
        if id.transform == CoalescedLoadID.storing, state.open[id] == nil { state.storing += 1 }
        state.open[id] = coalesced
      }
      state.running[ObjectIdentifier(coalesced)] = coalesced
      return (coalesced, true)
    }
  }

  private func forget(_ coalesced: any AnyCoalescedLoad, _ id: CoalescedLoadID) {
    state.withLock { state in
      guard state.open[id] === coalesced else { return }
      state.open[id] = nil
      if id.transform == CoalescedLoadID.storing { state.storing -= 1 }
    }
  }

  /// Lets nobody join what is under way any more: it was asked for before now. Who waits already goes on waiting.
  func closeToOthers() {
    state.withLock { state in
      state.open = [:]
      state.storing = 0
    }
  }

  /// Takes no more loads.
  func refuseNew() { state.withLock { $0.isClosed = true } }

  /// Ends every load with `error`, and with them the work that they wait for.
  func dismissWaiters(_ error: CacheError) {
    let running = state.withLock { state in
      state.isDismissed = true
      return Array(state.running.values)
    }
    for coalesced in running { coalesced.dismissWaiters(error) }
  }

  /// Takes no more loads, stops what nobody waits for, and returns when everything that ran has ended, also what was started by
  /// those who had to ask for themselves meanwhile.
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
