internal import CacheCore
internal import HTTPTypes

/// What a flight brings: bytes, or a value made from them in one transform.
struct FlightID: Hashable, Sendable {
  var request: FlightKey
  /// Nil for bytes.
  var transform: String?
  var value: ObjectIdentifier?
  /// Where the value is made: who asks for a place gets it there. The flight's load holds the executor.
  var executor: ObjectIdentifier?
  /// What is stored of a transform that can be. Who wants another thing stored shares the bytes and the steps, not this.
  var storagePolicy: StoragePolicy?

  /// The transform of flights into the durable store alone. Transforms of users' are printable.
  static let storing = "\u{1F}store"
  /// The transform of flights into callers' files.
  static let file = "\u{1F}file"
}

/// The flights of a manager: those that may be joined, and all whose work has not ended.
final class FlightTable: Sendable {
  private struct State {
    var open: [FlightID: any AnyFlight] = [:]
    /// How many of them go into the durable store alone.
    var storing = 0
    var running: [ObjectIdentifier: any AnyFlight] = [:]
    /// The number of the latest flight.
    var last = 0
    var isClosed = false
    /// Every load has been ended, so none that was accepted before may begin again.
    var isDismissed = false
  }

  private let state = Lock(State())

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Whether anything is on its way into the durable store alone.
  var isStoring: Bool { state.withLock { $0.storing > 0 } }

  /// Joins a flight that is under way, or a new one, which `begin` starts.
  ///
  /// - Parameters:
  ///   - alone: a follower who has to ask for itself: nobody joins it. It was accepted before, so it is also when the manager
  ///     closes meanwhile.
  ///   - task: linked to the flight before it begins.
  /// - Returns: whether another one's flight was joined; nil when the manager is closed.
  func join<Output: Shareable>(
    _ id: FlightID, _ load: ResolvedLoad, alone: Bool, task: LoadTask, waiter: Flight<Output>.Waiter,
    begin: (Flight<Output>) -> Void
  ) -> Bool? {
    let isShared = !alone && load.head.method == .get && load.body == nil
    while true {
      guard let (flight, isNew) = flight(id, load, as: Output.self, isShared: isShared, isAccepted: alone) else { return nil }
      guard let token = flight.join(waiter) else {
        forget(flight, id)
        continue
      }
      if let demand = flight.demand, demand !== load.demand { demand.add(load.demand) }
      follow(flight, task, token)
      if isNew { begin(flight) }
      return !isNew
    }
  }

  /// Joins a flight that is under way, as one who wants something else of it than the others; false when there is none.
  ///
  /// - Parameter number: that of the flight which waits. A later one is not joined: two that look for each other at the same
  ///   moment would both wait, for ever.
  func joinOpen<Output: Shareable>(
    _ id: FlightID, before number: Int, task: LoadTask, waiter: Flight<Output>.Waiter, _ removals: RemovalEpoch
  ) -> Bool {
    guard let flight = state.withLock({ $0.open[id] as? Flight<Output> }), flight.number < number,
      !removals.mayHaveMet(id.request.resource, since: flight.epoch),
      let token = flight.join(waiter)
    else { return false }
    flight.demand?.add(nil)
    follow(flight, task, token)
    return true
  }

  /// The flight is as urgent as its most urgent waiter.
  private func follow<Output: Shareable>(_ flight: Flight<Output>, _ task: LoadTask, _ token: Int) {
    if task.isHandedOut { task.observePriority { [weak flight] in flight?.priority.raise(to: $0) } }
    // After the observer is there: an earlier raise was not told to it.
    flight.priority.raise(to: task.priority.level)
    task.link { flight.leave(token, $0) }
  }

  private func flight<Output: Shareable>(
    _ id: FlightID, _ load: ResolvedLoad, as output: Output.Type, isShared: Bool, isAccepted: Bool
  ) -> (Flight<Output>, isNew: Bool)? {
    state.withLock { state in
      if state.isClosed, !isAccepted || state.isDismissed { return nil }
      // What was asked for before a removal is not for who comes after it.
      if isShared, let flight = state.open[id] as? Flight<Output>,
        !load.removals.mayHaveMet(load.parts.resource, since: flight.epoch)
      {
        return (flight, false)
      }
      state.last += 1
      let flight = Flight<Output>(
        number: state.last, epoch: load.removals.current, priority: LoadPriority(load.priority),
        demand: load.demand,
        // Strong: a flight lives in `running` no longer than its work, and until then the table has to be there.
        onClose: { flight in if isShared { self.forget(flight, id) } },
        onOver: { flight in
          _ = self.state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(flight)) }
        })
      if isShared {
        if id.transform == FlightID.storing, state.open[id] == nil { state.storing += 1 }
        state.open[id] = flight
      }
      state.running[ObjectIdentifier(flight)] = flight
      return (flight, true)
    }
  }

  private func forget(_ flight: any AnyFlight, _ id: FlightID) {
    state.withLock { state in
      guard state.open[id] === flight else { return }
      state.open[id] = nil
      if id.transform == FlightID.storing { state.storing -= 1 }
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
    for flight in running { flight.dismissWaiters(error) }
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
      for flight in running { flight.retire() }
      for flight in running { await flight.ended() }
    }
  }
}
