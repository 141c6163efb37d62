internal import CacheCore
internal import Synchronization

/// The work of a manager that is running, by its identity. This one table knows whether equal work is already running: for bytes,
/// values, loads into the store, revalidations and steps of transforms.
final class Flights: Sendable {
  private struct State {
    /// The latest flight of each key that is not closed. A removal may have outdated it: see ``isOutdated(_:_:)``.
    var open: [FlightKey: any AnyFlight] = [:]
    /// The flights that plain loads may join, each with the position of its resource's epoch at a lookup that found no hit.
    var listed: [CacheKey: (flight: Flight<Exchange>, position: UInt64)] = [:]
    /// All flights whose work has not ended.
    var running: [ObjectIdentifier: any AnyFlight] = [:]
    /// The names by which callers cancel a running flight, if they are not only its resource.
    var names: [ObjectIdentifier: Set<CacheKey>] = [:]
    /// The hosts that the running revalidations in the background ask.
    var revalidations: [ObjectIdentifier: String] = [:]
    /// The resources that callers are looking up, and whether work for the resource has ended in the meantime.
    var lookups: [String: Bool] = [:]
    /// The number of the latest flight.
    var last = 0
    /// Whether every load has been ended. A load that was accepted before then cannot join a flight any more.
    var isDismissed = false
    /// The cancellations of loads, which a load that began before one of them cannot escape by joining later.
    var cancellations = CancellationLog()
    /// The calls of ``Flights/close()`` that wait until nothing runs.
    var closers: [Resumption<Void>] = []
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
  /// Whether ``State/listed`` has any. It changes under the lock.
  private let isListing = Atomic(false)
  /// Twice the number of running loads, plus 1 if the manager accepts no more.
  private let loads = Atomic<Int>(0)
  /// The number of the latest cancellation. It changes under the lock.
  private let lastCancellation = Atomic<UInt64>(0)

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

  func endLoad() { endLoads(1) }

  func endLoads(_ count: Int) {
    if loads.subtract(2 * count, ordering: .acquiringAndReleasing).newValue == 1 { resumeClosersIfIdle() }
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

  /// Ends the lookup of a load in the task of its caller.
  ///
  /// - Returns: The current ``endPosition``, or `nil` if work for the resource has ended since ``beginLookup(of:)`` and may have
  ///   stored a response.
  func endLookup(of resource: String) -> Int? {
    state.withLock { $0.lookups.removeValue(forKey: resource) == false ? endPosition : nil }
  }

  // MARK: Joining

  /// Joins the open flight with this key, or creates a flight, which the caller starts.
  ///
  /// - Parameters:
  ///   - key: The key, or `nil` if the waiter needs a flight of its own.
  ///   - load: The load that waits.
  ///   - needs: The needs of the load.
  /// - Returns: `nil` if every load has been ended, or this one has been cancelled.
  func join<Output: Shareable>(
    _ key: FlightKey?, _ load: ResolvedRequest, _ needs: WaiterNeeds<Output>
  ) -> (waiter: Waiter<Output>, isNew: Bool)? {
    while true {
      let joined = state.withLock { state -> (Flight<Output>, isNew: Bool)? in
        guard !state.isDismissed, !isCancelled(load, in: state) else { return nil }
        if let flight = self.open(key, in: state, as: Output.self) {
          addName(of: load, to: flight, &state)
          return (flight, false)
        }
        let flight = create(
          key, of: load.settings.resource, &state, id: load.id, priority: LoadPriority(load.priority),
          representation: load.representation, first: needs)
        if load.statedName != nil { state.names[ObjectIdentifier(flight)] = [CacheKey(resource: load.settings.name)] }
        return (flight, true)
      }
      guard let (flight, isNew) = joined else { return nil }
      if isNew { return (Waiter(flight: flight, number: 0, needs: needs), true) }
      guard let waiter = flight.join(needs) else {
        close(flight)
        continue
      }
      guard isCurrent(waiter, of: key, needs) else { continue }
      if let representation = flight.representation, representation !== load.representation {
        representation.add(load.representation)
      }
      if needs.priority == nil { flight.raise(to: load.priority) }
      return (waiter, false)
    }
  }

  /// Notes the name of a load that joins a flight, if an interceptor may have changed the request of either.
  private func addName(of load: ResolvedRequest, to flight: any AnyFlight, _ state: inout State) {
    let id = ObjectIdentifier(flight)
    guard let resource = flight.resource, load.statedName != nil || state.names[id] != nil else { return }
    state.names[id, default: [CacheKey(resource: resource)]].insert(CacheKey(resource: load.settings.name))
  }

  // MARK: Plain loads

  /// Whether ``listed(_:)`` may find any flight.
  var hasListed: Bool { isListing.load(ordering: .acquiring) }

  /// Lets further plain loads find a flight that a plain load has joined, and so has the priority and the representation that
  /// they need.
  ///
  /// - Parameter position: A position of the resource's epoch after which a lookup in memory found no hit.
  func list(_ flight: Flight<Exchange>, for key: CacheKey, at position: UInt64) {
    state.withLock { state in
      // The flight may have ended, or a later one may have replaced it after a removal.
      guard let open = flight.key.flatMap({ state.open[$0] }), open === flight else { return }
      // The former flight is still running, so this releases no last reference to it.
      state.listed[key] = (flight, position)
      isListing.store(true, ordering: .releasing)
    }
  }

  /// Returns the flight that a plain load may join without a lookup, or `nil` if there is none. Memory has no hit while the epoch
  /// of the resource has not advanced.
  func listed(_ key: CacheKey) -> Flight<Exchange>? {
    guard let (flight, position) = state.withLock({ $0.listed[key] }), position == ResourceEpoch(of: key).position,
      !isOutdated(flight, key.resource)
    else { return nil }
    return flight
  }

  private func unlist(_ flight: any AnyFlight, _ state: inout State) {
    guard !state.listed.isEmpty, let resource = flight.key?.resource, case let key = CacheKey(resource: resource),
      state.listed[key]?.flight === flight
    else { return }
    state.listed[key] = nil
    isListing.store(!state.listed.isEmpty, ordering: .releasing)
  }

  private func unlistAll(_ state: inout State) {
    state.listed = [:]
    isListing.store(false, ordering: .releasing)
  }

  /// Joins a waiter whose purpose differs from that of the other waiters to an open flight. Returns `nil` if there is none.
  ///
  /// - Parameter number: The number of the flight that waits. It joins only an earlier one. Otherwise two flights that look for
  ///   each other at the same moment would both wait forever.
  func joinOpen<Output: Shareable>(_ key: FlightKey, before number: Int, _ needs: WaiterNeeds<Output>) -> Waiter<Output>? {
    guard let flight = state.withLock({ open(key, in: $0, as: Output.self) }), flight.number < number,
      let waiter = flight.join(needs), isCurrent(waiter, of: key, needs)
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
  /// is closed. A caller cancels it by its name.
  func startRevalidation(
    _ key: FlightKey, of name: CacheKey, at host: String, id: LoadID, _ priority: LoadPriority,
    _ work: @escaping @Sendable () async -> Void
  ) {
    let flight: Flight<Done>? = state.withLock { state in
      guard !isClosed, state.open[key] == nil, state.revalidations.count < Self.maximumRevalidations,
        state.revalidations.values.lazy.filter({ $0 == host }).count < Self.maximumRevalidationsOfHost
      else { return nil }
      let flight: Flight<Done> = create(key, of: key.revalidatedResource, &state, id: id, priority: priority, first: nil)
      state.revalidations[ObjectIdentifier(flight)] = host
      state.names[ObjectIdentifier(flight)] = [name]
      return flight
    }
    // The caller has a response to pass on first.
    flight?.start(isImmediate: false) {
      await work()
      flight?.end(.success(Done()))
    }
  }

  /// The output of work without a result.
  struct Done: Shareable {
    var isShareable: Bool { true }
  }

  private func open<Output>(_ key: FlightKey?, in state: State, as output: Output.Type) -> Flight<Output>? {
    guard let key, let flight = state.open[key] as? Flight<Output> else { return nil }
    if let resource = key.resource, isOutdated(flight, resource) { return nil }
    return flight
  }

  /// Whether a removal may have affected the output of a flight. A response that was requested before a removal is not for a
  /// waiter that arrives after it.
  ///
  /// A removal of any resource since its start outdates a flight that has requested another URL. This includes removals before
  /// that request. Until the flight requests another URL, only removals of its own resource count.
  private func isOutdated(_ flight: any AnyFlight, _ resource: String) -> Bool {
    if flight.hasOtherURLs { return invalidations.mayHaveMatchedAny(since: flight.logPosition) }
    return invalidations.mayHaveMatched(resource, since: flight.logPosition)
  }

  /// Whether a flight may continue to wait for one that it has joined. Otherwise it leaves that one.
  ///
  /// The flight that joins knows of the other URLs only now. A removal just before could not outdate it.
  private func isCurrent<Output>(_ waiter: Waiter<Output>, of key: FlightKey?, _ needs: WaiterNeeds<Output>) -> Bool {
    guard needs.forward != nil, let resource = key?.resource, isOutdated(waiter.flight, resource) else { return true }
    waiter.leave(.cancelled)
    return false
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

  // MARK: Cancelling

  /// Ends the loads with a name, or all loads, that have begun before, and cancels their work. A load that has not joined a
  /// flight yet ends when it joins.
  ///
  /// A revalidation in the background ends, too, unless a load of another resource waits for it. A response that the caller
  /// stores is no load.
  func cancelLoads(of name: CacheKey?) {
    let running = state.withLock { state -> [any AnyFlight] in
      let number = LoadID().number
      state.cancellations.add(number, name)
      lastCancellation.store(number, ordering: .releasing)
      let flights = state.running.values.filter { flight in
        guard let resource = flight.resource, flight.key?.isFromCaller != true else { return false }
        guard let name else { return true }
        return state.names[ObjectIdentifier(flight)]?.contains(name) ?? (name == CacheKey(resource: resource))
      }
      // A load that begins as soon as one of the waiters has ended must not join a flight that ends next.
      for flight in flights { close(flight, &state) }
      return flights
    }
    // Later flights end first. A flight that waits for an earlier one is then cancelled before that one ends, so it does not
    // begin the work of that one itself.
    let loads = running.filter { $0.key?.revalidatedResource == nil }.sorted { $0.number > $1.number }
    for flight in loads {
      flight.retire()
      flight.dismissWaiters(.cancelled)
    }
    for flight in running where flight.key?.revalidatedResource != nil { flight.retire() }
  }

  /// Whether a load has been cancelled since it began.
  func isCancelled(_ load: ResolvedRequest) -> Bool {
    guard load.id.number < lastCancellation.load(ordering: .acquiring) else { return false }
    return state.withLock { isCancelled(load, in: $0) }
  }

  private func isCancelled(_ load: ResolvedRequest, in state: State) -> Bool {
    guard load.id.number < lastCancellation.load(ordering: .acquiring), !load.isFromCaller else { return false }
    return state.cancellations.includes(load.id.number, load.settings.name)
  }

  // MARK: Ending

  /// Removes a flight that accepts no more waiters from those that waiters can find. The result of a lookup of its resource that
  /// is in progress becomes invalid.
  func close(_ flight: any AnyFlight) { state.withLock { close(flight, &$0) } }

  private func close(_ flight: any AnyFlight, _ state: inout State) {
    unlist(flight, &state)
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
  func end(_ flight: any AnyFlight) -> [Resumption<Void>] {
    state.withLock { state in
      close(flight, &state)
      state.running[ObjectIdentifier(flight)] = nil
      if !state.names.isEmpty { state.names[ObjectIdentifier(flight)] = nil }
      if !state.revalidations.isEmpty { state.revalidations[ObjectIdentifier(flight)] = nil }
      return closersIfIdle(&state)
    }
  }

  /// Refuses new loads.
  func refuseNew() { _ = loads.bitwiseOr(1, ordering: .acquiringAndReleasing) }

  /// Ends every load with `error`, and cancels the work that the loads are waiting for.
  func dismissWaiters(_ error: CacheError) {
    let running = state.withLock { state in
      state.isDismissed = true
      unlistAll(&state)
      return Array(state.running.values)
    }
    for flight in running { flight.dismissWaiters(error) }
  }

  /// Refuses new loads, stops the work that no waiter needs, and returns when all loads and all work have ended. This includes
  /// flights that start in the meantime for loads that were accepted before.
  func close() async {
    refuseNew()
    for flight in state.withLock({ Array($0.running.values) }) { flight.retire() }
    await withResumption { continuation in
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

  private func closersIfIdle(_ state: inout State) -> [Resumption<Void>] {
    guard !state.closers.isEmpty, state.running.isEmpty, loads.load(ordering: .acquiring) == 1 else { return [] }
    defer { state.closers = [] }
    return state.closers
  }
}

/// The latest cancellations of loads. A load that began before one of them has a smaller number, and does not join a flight any
/// more.
struct CancellationLog {
  /// The latest cancellation of each name. Keys are compared byte by byte.
  private var latest: [CacheKey: UInt64] = [:]
  private var ofAll: UInt64 = 0

  /// The number of names to remember. Beyond it, a load that has still not joined a flight may miss its cancellation.
  private static let most = 1_024

  /// Adds the cancellation of the loads with a name, or of all loads.
  mutating func add(_ number: UInt64, _ name: CacheKey?) {
    guard let name else { return (ofAll, latest) = (number, [:]) }
    if latest.count >= Self.most {
      let oldest = latest.values.sorted()[Self.most / 2]
      latest = latest.filter { $0.value > oldest }
    }
    latest[name] = number
  }

  func includes(_ number: UInt64, _ name: String) -> Bool {
    number < max(ofAll, latest[CacheKey(resource: name)] ?? 0)
  }
}
