internal import CacheCore
internal import Synchronization

/// The identity of a flight. Equal work has equal keys.
enum FlightKey: Hashable, Sendable {
  /// The bytes of a request.
  case bytes(CoalescingKey)
  /// The value that a transform makes from a request's bytes.
  case value(CoalescingKey, Transform)
  /// A load into the durable store alone.
  case store(CoalescingKey)
  /// The revalidation of a response that was already delivered.
  case revalidation(CacheKey, stores: [ComponentID?])
  /// A step of a transform: the body, and the transform up to this step.
  case step(Revision, Transform)

  struct Transform: Hashable, Sendable {
    var id: String
    var value: ObjectIdentifier
    /// The executor on which the value is made, if the load names one. The load retains it, so the identifier stays valid.
    var executor: ObjectIdentifier?
    /// The storage policy, if the transform's values can be stored. Loads with different policies share the bytes and the steps,
    /// but not the value.
    var storagePolicy: StoragePolicy?

    init<Value>(
      _ id: String, of value: Value.Type, on executor: (any TaskExecutor)?, _ storagePolicy: StoragePolicy? = nil
    ) {
      self.id = id
      self.value = ObjectIdentifier(value)
      self.executor = executor.map { ObjectIdentifier($0) }
      self.storagePolicy = storagePolicy
    }
  }

  /// The resource that the work requests, or `nil` if it requests none by itself.
  var resource: String? {
    switch self {
    case .bytes(let key), .value(let key, _), .store(let key): key.resource
    case .revalidation, .step: nil
    }
  }

  /// The resource that a revalidation requests, or `nil` for other work.
  fileprivate var revalidatedResource: String? { if case .revalidation(let key, _) = self { key.resource } else { nil } }

  fileprivate var isStore: Bool { if case .store = self { true } else { false } }
}

/// The work of a manager that is running, by its identity. This one table knows whether equal work is already running: for bytes,
/// values, loads into the store, revalidations and steps of transforms.
final class Flights: Sendable {
  private struct State {
    /// The flights that waiters may join.
    var open: [FlightKey: any AnyFlight] = [:]
    /// All flights whose work has not ended.
    var running: [ObjectIdentifier: any AnyFlight] = [:]
    /// The numbers of running revalidations in the background, by the host that they ask.
    var revalidations: [String: Int] = [:]
    /// The resources that callers are looking up, and whether work for the resource has ended in the meantime.
    var lookups: [String: Bool] = [:]
    /// The number of the latest flight.
    var last = 0
    /// Whether every load has been ended. A load that was accepted before then cannot join a flight any more.
    var isDismissed = false
    /// The calls of ``Flights/close()`` that wait until nothing runs.
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  /// The maximum number of revalidations in the background. Beyond it, the next request for the resource tries again.
  static let maximumRevalidations = 256
  /// The maximum number of these that ask one host. A silent host thus delays no revalidations of other hosts.
  static let maximumRevalidationsOfHost = 64

  private let state = Lock(State())
  private let invalidations: InvalidationLog
  private let ended = Atomic<Int>(0)
  /// The number of open flights into the durable store alone. It changes under the lock.
  private let storing = Atomic<Int>(0)
  /// Twice the number of running loads, plus 1 if the manager accepts no more.
  private let loads = Atomic<Int>(0)

  init(_ invalidations: InvalidationLog) { self.invalidations = invalidations }

  /// The number of flights that accept no more waiters. If it has changed since a lookup, a flight may have stored what the
  /// lookup did not find.
  var endPosition: Int { ended.load(ordering: .acquiring) }

  // MARK: Loads

  var isClosed: Bool { loads.load(ordering: .acquiring) & 1 == 1 }

  /// Accepts a load, until ``endLoad()``. ``close()`` waits for it, whatever it waits for.
  ///
  /// - Returns: `false` if the manager is closed.
  func beginLoad() -> Bool {
    guard loads.add(2, ordering: .acquiringAndReleasing).oldValue & 1 == 1 else { return true }
    endLoad()
    return false
  }

  func endLoad() {
    if loads.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 { resumeClosersIfIdle() }
  }

  // MARK: Lookups by callers

  /// Records that a load is looked up in the task of its caller, until ``endLookup(of:)``.
  ///
  /// - Returns: `false` if another caller is looking up the resource, or if there is a flight to join.
  func beginLookup(of load: ResolvedRequest) -> Bool {
    // Often no flight is open. Making the key costs more than finding it.
    let key = state.withLock({ $0.open.isEmpty }) ? nil : FlightKey.bytes(CoalescingKey(load))
    let resource = load.settings.resource
    return state.withLock { state in
      guard state.lookups[resource] == nil, key.flatMap({ state.open[$0] }) == nil else { return false }
      state.lookups[resource] = false
      return true
    }
  }

  /// Returns the current ``endPosition``, or `nil` if work for the resource has ended since ``beginLookup(of:)``. That work may
  /// have stored a response.
  func positionIfCurrent(lookupOf resource: String) -> Int? {
    state.withLock { $0.lookups[resource] == false ? endPosition : nil }
  }

  func endLookup(of resource: String) { state.withLock { _ = $0.lookups.removeValue(forKey: resource) } }

  // MARK: Joining

  /// Joins the open flight with this key, or creates a flight, which the caller starts.
  ///
  /// - Parameters:
  ///   - key: The key, or `nil` if the waiter needs a flight of its own.
  ///   - load: The load that waits.
  ///   - needs: The needs of the load.
  ///   - lookup: The resource whose lookup by the caller ends here: see ``endLookup(of:)``.
  /// - Returns: `nil` if every load has been ended.
  func join<Output: Shareable>(
    _ key: FlightKey?, _ load: ResolvedRequest, _ needs: WaiterNeeds<Output>, endingLookupOf lookup: String? = nil
  ) -> (waiter: Waiter<Output>, isNew: Bool)? {
    // After the first pass, the lookup may be that of another caller.
    var lookup = lookup
    while true {
      let joined = state.withLock { state -> (Flight<Output>, isNew: Bool)? in
        if let lookup = lookup.take() { state.lookups[lookup] = nil }
        guard !state.isDismissed else { return nil }
        if let flight = self.open(key, in: state, as: Output.self) { return (flight, false) }
        let flight = create(
          key, of: load.settings.resource, &state, id: load.id, priority: LoadPriority(load.priority),
          representation: load.representation, first: needs)
        return (flight, true)
      }
      guard let (flight, isNew) = joined else { return nil }
      if isNew { return (Waiter(flight: flight, number: 0, needs: needs), true) }
      guard let waiter = flight.join(needs) else {
        close(flight)
        continue
      }
      if let representation = flight.representation, representation !== load.representation {
        representation.add(load.representation)
      }
      if needs.priority == nil { flight.raise(to: load.priority) }
      return (waiter, false)
    }
  }

  /// Joins a waiter whose purpose differs from that of the other waiters to an open flight. Returns `nil` if there is none.
  ///
  /// - Parameter number: The number of the flight that waits. It joins only an earlier one. Otherwise two flights that look for
  ///   each other at the same moment would both wait forever.
  func joinOpen<Output: Shareable>(_ key: FlightKey, before number: Int, _ needs: WaiterNeeds<Output>) -> Waiter<Output>? {
    guard let flight = state.withLock({ open(key, in: $0, as: Output.self) }), flight.number < number,
      let waiter = flight.join(needs)
    else { return nil }
    flight.representation?.add(nil)
    return waiter
  }

  /// Returns the output of work that one of its callers does, and that the other callers wait for. The work becomes as urgent as
  /// its most urgent caller. The output is passed to the waiters and is not cached.
  ///
  /// - Parameters:
  ///   - key: The work.
  ///   - id: The caller's load.
  ///   - priority: The priority of the caller.
  ///   - joining: Called with the load that does the work, before the caller waits for it.
  ///   - work: The work.
  /// - Throws: The error of the work. A cancellation affects only the cancelled caller. If the caller that does the work is
  ///   cancelled, another caller does it instead.
  func output<Output: Shareable>(
    of key: FlightKey, for id: LoadID, _ priority: LoadPriority, joining: (LoadID) -> Void = { _ in },
    leading work: () async throws(CacheError) -> Output
  ) async throws(CacheError) -> Output {
    while true {
      let (flight, isNew) = state.withLock { state -> (Flight<Output>, Bool) in
        if let flight = self.open(key, in: state, as: Output.self) { return (flight, false) }
        return (create(key, of: key.revalidatedResource, &state, id: id, priority: priority, first: nil), true)
      }
      if isNew {
        let result: Result<Output, CacheError>
        do throws(CacheError) {
          result = .success(try await work())
        } catch {
          result = .failure(error)
        }
        flight.end(result)
        return try result.get()
      }
      guard let waiter = flight.join(WaiterNeeds(priority: priority)) else {
        close(flight)
        continue
      }
      let ending = await waiter.ending(joined: { joining(flight.id) })
      if Task.isCancelled { throw .cancelled }
      switch ending {
      case .output(let output): return output
      case .failed(let error) where error.isCancellation: continue
      case .failed(let error): throw error
      case .alone, .expired: throw .cancelled
      }
    }
  }

  /// Starts a revalidation in the background, unless one is running for the same resource, too many are running, or the manager
  /// is closed.
  func startRevalidation(
    _ key: FlightKey, at host: String, id: LoadID, _ priority: LoadPriority, _ work: @escaping @Sendable () async -> Void
  ) {
    let flight = state.withLock { state -> Flight<Done>? in
      guard !isClosed, state.open[key] == nil, state.revalidations.values.reduce(0, +) < Self.maximumRevalidations,
        state.revalidations[host, default: 0] < Self.maximumRevalidationsOfHost
      else { return nil }
      state.revalidations[host, default: 0] += 1
      return create(key, of: key.revalidatedResource, &state, id: id, priority: priority, first: nil)
    }
    // The caller has a response to pass on first.
    flight?.start(isImmediate: false) { [self] _ in
      await work()
      state.withLock { state in
        let count = state.revalidations[host, default: 1] - 1
        state.revalidations[host] = count > 0 ? count : nil
      }
      return .success(Done())
    }
  }

  /// The output of work without a result.
  struct Done: Shareable {
    var isShareable: Bool { true }
  }

  private func open<Output>(_ key: FlightKey?, in state: State, as output: Output.Type) -> Flight<Output>? {
    guard let key, let flight = state.open[key] as? Flight<Output> else { return nil }
    // A response that was requested before a removal is not for a waiter that arrives after it.
    if let resource = key.resource, invalidations.mayHaveMatched(resource, since: flight.logPosition) { return nil }
    return flight
  }

  private func create<Output: Shareable>(
    _ key: FlightKey?, of resource: String?, _ state: inout State, id: LoadID, priority: LoadPriority,
    representation: RequestedRepresentation? = nil, first needs: WaiterNeeds<Output>?
  ) -> Flight<Output> {
    state.last += 1
    let flight = Flight<Output>(
      self, key, of: resource, id: id, number: state.last, logPosition: invalidations.current, priority: priority,
      representation: representation, isRetired: isClosed, first: needs)
    if let key {
      if key.isStore, state.open[key] == nil { storing.add(1, ordering: .releasing) }
      // An assignment would keep the key of the former flight, and the end of this one would release the former load under the
      // lock. The former flight still runs, and has the key too.
      if let index = state.open.index(forKey: key) { state.open.remove(at: index) }
      state.open[key] = flight
    }
    state.running[ObjectIdentifier(flight)] = flight
    return flight
  }

  /// Whether the only destination of an open flight is the durable store.
  var isStoring: Bool { storing.load(ordering: .acquiring) > 0 }

  // MARK: Ending

  /// Removes a flight that accepts no more waiters from those that waiters can find. The result of a lookup of its resource that
  /// is in progress becomes invalid.
  func close(_ flight: any AnyFlight) { state.withLock { close(flight, &$0) } }

  private func close(_ flight: any AnyFlight, _ state: inout State) {
    if let resource = flight.resource {
      if state.lookups[resource] != nil { state.lookups[resource] = true }
      // A flight that was closed to other waiters may store its response all the same.
      ended.add(1, ordering: .releasing)
    }
    guard let key = flight.key, let index = state.open.index(forKey: key), state.open[index].value === flight else { return }
    state.open.remove(at: index)
    if key.isStore { storing.subtract(1, ordering: .releasing) }
  }

  /// Closes and removes a flight whose work has ended.
  ///
  /// - Returns: The calls of ``close()`` to resume when the waiters have the output.
  func end(_ flight: any AnyFlight) -> [CheckedContinuation<Void, Never>] {
    state.withLock { state in
      close(flight, &state)
      state.running[ObjectIdentifier(flight)] = nil
      return closersIfIdle(&state)
    }
  }

  /// Stops waiters from joining the running flights, which were requested before now. The present waiters continue to wait.
  func closeToOthers() {
    state.withLock { state in
      state.open = state.open.filter { $0.key.resource == nil }
      storing.store(0, ordering: .releasing)
    }
  }

  /// Refuses new loads.
  func refuseNew() { _ = loads.bitwiseOr(1, ordering: .acquiringAndReleasing) }

  /// Ends every load with `error`, and cancels the work that the loads are waiting for.
  func dismissWaiters(_ error: CacheError) {
    let running = state.withLock { state in
      state.isDismissed = true
      return Array(state.running.values)
    }
    for flight in running { flight.dismissWaiters(error) }
  }

  /// Refuses new loads, stops the work that no waiter needs, and returns when all loads and all work have ended. This includes
  /// flights that start in the meantime for loads that were accepted before.
  func close() async {
    refuseNew()
    for flight in state.withLock({ Array($0.running.values) }) { flight.retire() }
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.running.isEmpty, loads.load(ordering: .acquiring) == 1 { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
  }

  private func resumeClosersIfIdle() {
    for closer in state.withLock({ closersIfIdle(&$0) }) { closer.resume() }
  }

  private func closersIfIdle(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
    guard !state.closers.isEmpty, state.running.isEmpty, loads.load(ordering: .acquiring) == 1 else { return [] }
    defer { state.closers = [] }
    return state.closers
  }
}

/// The needs of a load, or of a flight, that waits for flights.
struct WaiterNeeds<Output: Shareable>: Sendable {
  /// The priority if it can be raised while the waiter waits, otherwise `nil`.
  var priority: LoadPriority?
  /// Whether the waiter needs the body itself, and not only stored values.
  var wantsBytes = true
  /// Whether the waiter receives progress.
  var wantsProgress = false
  /// Whether a stale output is the end for the waiter.
  var endsWithStale = true
  /// Whether a flight calls ``Flights/endLoad()`` when the waiter gets its last event. The executor of a caller may be blocked,
  /// so its load does not count until the caller resumes.
  var isCounted = false
  /// Receives ``FlightEvent/foundFallback`` and ``FlightEvent/inFlight(_:)``, for a flight that waits for another one.
  var forward: (@Sendable (FlightEvent<Output>) -> Void)?

  /// Whether an output satisfies the needs of the waiter.
  func accepts(_ output: Output) -> Bool { !(wantsBytes && output.isBodyLeft) }

  /// Whether the waiter waits for no other flight after an ending.
  func isLast(_ ending: Waiter<Output>.Ending) -> Bool {
    switch ending {
    case .output(let output): accepts(output)
    case .failed: true
    case .expired(_, let hasFallback, _): !hasFallback
    case .alone: false
    }
  }
}

/// A waiter of one flight, which keeps its events until a task pulls them one by one. So no code of a caller runs under a lock.
///
/// A load may need several flights, one after the other: one of its own if an output was for another waiter alone, or one
/// without requests after its deadline. It is a new waiter in each.
struct Waiter<Output: Shareable>: Sendable {
  enum Event: Sendable {
    case progress(LoadProgress)
    case stale(Output)
    /// The last event.
    case ended(Ending)
  }

  enum Ending: Sendable {
    case output(Output)
    case failed(CacheError)
    /// The output is for another waiter alone. This waiter needs a flight of its own.
    case alone
    /// The deadline has passed, which is this error.
    ///
    /// - Parameters:
    ///   - hasFallback: Whether a stored response may be used.
    ///   - isInFlight: Whether a request is in flight, whose failure the deadline then is.
    case expired(CacheError, hasFallback: Bool, isInFlight: Bool)
  }

  let flight: Flight<Output>
  /// The number of the waiter in its flight.
  let number: Int
  let needs: WaiterNeeds<Output>

  /// Waits for the end of the flight in the calling task, whose cancellation ends the wait.
  ///
  /// - Parameters:
  ///   - joined: Called when a cancellation, or a raise of the priority, reaches the flight.
  ///   - progress: Called with the progress.
  ///   - stale: Called with a stale output that is not the end for the waiter.
  func ending(
    joined: () -> Void = {}, progress: (LoadProgress) -> Void = { _ in }, stale: (Output) async -> Void = { _ in }
  ) async -> Ending {
    let observation = needs.priority?.onRaise { [weak flight] in flight?.raise(to: $0) }
    defer { observation?.cancel() }
    // The raise follows the registration, because the observer does not receive earlier raises.
    if let priority = needs.priority { flight.raise(to: priority.level) }
    return await withTaskCancellationHandler {
      joined()
      while true {
        switch await next() {
        case .progress(let report): progress(report)
        case .stale(let output): await stale(output)
        case .ended(let ending): return ending
        }
      }
    } onCancel: {
      leave(.cancelled)
    }
  }

  /// Waits for the next event.
  func next() async -> Event { await flight.next(number) }

  /// Leaves the flight with an error. Does nothing if the flight has ended for the waiter, or if its waiters can no longer leave.
  func leave(_ error: CacheError, atDeadline: Bool = false) { flight.leave(number, error, atDeadline: atDeadline) }
}
