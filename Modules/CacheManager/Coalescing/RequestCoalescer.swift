internal import CacheCore
internal import HTTPTypes
internal import Synchronization

/// The identity of a coalesced load, whose output is bytes or a value made from them by one transform.
struct CoalescedLoadID: Hashable, Sendable {
  var request: CoalescingKey
  /// The transform, or `nil` for bytes.
  var transform: String?
  var value: ObjectIdentifier?
  /// The executor on which the value is made, if the load names one. ``request`` retains the executor, so the identifier stays
  /// valid.
  var executor: ObjectIdentifier?
  /// The storage policy, if the transform's values can be stored. Loads with different policies share the bytes and the steps,
  /// but not this coalesced load.
  var storagePolicy: StoragePolicy?

  /// The transform of coalesced loads into the durable store alone. It never equals a user's transform, because those are
  /// printable.
  static let storing = "\u{1F}store"
  /// The transform of coalesced loads into callers' files.
  static let file = "\u{1F}file"
}

/// The coalesced loads of a manager: the open ones, which waiters may join, and all whose work is still running.
final class RequestCoalescer: Sendable {
  private struct State {
    var open: [CoalescedLoadID: any AnyCoalescedLoad] = [:]
    /// The number of ``open`` loads whose only destination is the durable store.
    var storing = 0
    var running: [ObjectIdentifier: any AnyCoalescedLoad] = [:]
    /// The resources that callers are looking up, and whether a load of the resource has ended in the meantime.
    var callerLookups: [String: Bool] = [:]
    /// The calls of ``close()`` that wait for the end of these lookups.
    var lookupWaiters: [CheckedContinuation<Void, Never>] = []
    /// The number of the latest coalesced load.
    var last = 0
    var isClosed = false
    /// Whether every load has been ended. A load that was accepted before then cannot start again.
    var isDismissed = false
  }

  private let state = Lock(State())
  private let ended = Atomic<Int>(0)

  /// The number of loads that accept no more waiters. If it has changed since a lookup, a load may have stored what the lookup
  /// did not find.
  var endPosition: Int { ended.load(ordering: .acquiring) }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Whether the only destination of an open load is the durable store.
  var isStoring: Bool { state.withLock { $0.storing > 0 } }

  // MARK: Lookups by callers

  /// Records that a load is looked up in the task of its caller, until ``endLookup(of:)``. ``close()`` waits for it.
  ///
  /// - Returns: `false` if another caller is looking up the resource, or if there is a load to join. The load must then use a
  ///   coalesced load.
  func beginLookup(of load: ResolvedRequest) -> Bool {
    // Often no load is open. Making the key costs more than finding it.
    let id = state.withLock({ $0.open.isEmpty }) ? nil : CoalescedLoadID(request: CoalescingKey(load))
    let resource = load.settings.resource
    return state.withLock { state in
      guard !state.isClosed, state.callerLookups[resource] == nil, id.flatMap({ state.open[$0] }) == nil else { return false }
      state.callerLookups[resource] = false
      return true
    }
  }

  /// Returns the current ``endPosition``, or `nil` if a load of the resource has ended since ``beginLookup(of:)``. That load may
  /// have stored a response.
  func positionIfCurrent(lookupOf resource: String) -> Int? {
    state.withLock { $0.callerLookups[resource] == false ? endPosition : nil }
  }

  func endLookup(of resource: String) {
    let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.callerLookups[resource] = nil
      guard state.callerLookups.isEmpty, !state.lookupWaiters.isEmpty else { return [] }
      defer { state.lookupWaiters = [] }
      return state.lookupWaiters
    }
    for waiter in waiters { waiter.resume() }
  }

  private func waitForLookups() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.callerLookups.isEmpty { state.lookupWaiters.append(continuation) }
        return state.callerLookups.isEmpty
      }
      if isOver { continuation.resume() }
    }
  }

  // MARK: Coalesced loads

  /// Joins a running coalesced load, or creates one, which `begin` starts.
  ///
  /// - Parameters:
  ///   - alone: Whether the waiter needs a load of its own, which no other waiter joins. Such a waiter was accepted before.
  ///   - isAccepted: Whether the waiter was accepted before. It is then accepted even if the manager has closed in the meantime.
  ///     A load with an outage was accepted before its deadline.
  ///   - task: The task to link to the coalesced load before the load begins.
  /// - Returns: `false` if the manager is closed.
  func join<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, alone: Bool, isAccepted: Bool = false, task: LoadTask,
    waiter: CoalescedLoad<Output>.Waiter, begin: (CoalescedLoad<Output>) -> Void
  ) -> Bool {
    let isShared = !alone && load.head.method == .get && load.body == nil
    while true {
      guard
        let (coalesced, isNew) = coalesced(
          id, load, for: task, waiter, isShared: isShared, isAccepted: alone || isAccepted || load.outage != nil)
      else {
        return false
      }
      guard let token = isNew ? CoalescedLoad<Output>.firstToken : coalesced.join(waiter) else {
        forget(coalesced, id)
        continue
      }
      if let representation = coalesced.representation, representation !== load.representation {
        representation.add(load.representation)
      }
      follow(coalesced, task, token)
      if isNew { begin(coalesced) } else { load.observe(.joined(url: load.observedURL, to: coalesced.id)) }
      return true
    }
  }

  /// Joins a running coalesced load for a waiter whose purpose differs from that of the other waiters. Returns `false` if there
  /// is no load to join.
  ///
  /// - Parameter number: The number of the coalesced load that waits. It joins only an earlier load. Otherwise two loads that
  ///   look for each other at the same moment would both wait forever.
  func joinOpen<Output: Shareable>(
    _ id: CoalescedLoadID, before number: Int, task: LoadTask, waiter: CoalescedLoad<Output>.Waiter,
    _ invalidations: InvalidationLog
  ) -> Bool {
    guard let coalesced = state.withLock({ $0.open[id] as? CoalescedLoad<Output> }), coalesced.number < number,
      !invalidations.mayHaveMatched(id.request.resource, since: coalesced.logPosition),
      let token = coalesced.join(waiter)
    else { return false }
    coalesced.representation?.add(nil)
    follow(coalesced, task, token)
    return true
  }

  /// Links a task to a coalesced load. The load has the priority of its most urgent waiter.
  private func follow<Output: Shareable>(_ coalesced: CoalescedLoad<Output>, _ task: LoadTask, _ token: Int) {
    if task.isHandedOut { task.observePriority { [weak coalesced] in coalesced?.raise(to: $0) } }
    // The raise follows the registration, because the observer does not receive earlier raises.
    coalesced.raise(to: task.priority.level)
    task.link { coalesced.leave(token, $0) }
  }

  /// Returns a load that the waiter may join, or a new one that has it as its first waiter. From then on, the manager can end the
  /// load.
  private func coalesced<Output: Shareable>(
    _ id: CoalescedLoadID, _ load: ResolvedRequest, for task: LoadTask, _ waiter: CoalescedLoad<Output>.Waiter, isShared: Bool,
    isAccepted: Bool
  ) -> (CoalescedLoad<Output>, isNew: Bool)? {
    state.withLock { state in
      if state.isClosed, !isAccepted || state.isDismissed { return nil }
      // A response that was requested before a removal is not for a waiter that arrives after it.
      if isShared, let coalesced = state.open[id] as? CoalescedLoad<Output>,
        !load.invalidations.mayHaveMatched(load.settings.resource, since: coalesced.logPosition)
      {
        return (coalesced, false)
      }
      state.last += 1
      let coalesced = CoalescedLoad<Output>(
        id: load.id, in: self, as: id, number: state.last, logPosition: load.invalidations.current,
        // No caller can raise the priority of a task that was not handed out, so the coalesced load can use its priority object.
        priority: task.isHandedOut ? LoadPriority(load.priority) : task.priority, representation: load.representation,
        first: waiter)
      if isShared {
        if id.transform == CoalescedLoadID.storing, state.open[id] == nil { state.storing += 1 }
        state.open[id] = coalesced
      }
      state.running[ObjectIdentifier(coalesced)] = coalesced
      return (coalesced, true)
    }
  }

  /// Removes a load that accepts no more waiters from those that waiters can find. The result of a lookup of its resource that is
  /// in progress becomes invalid.
  func forget(_ coalesced: any AnyCoalescedLoad, _ id: CoalescedLoadID) {
    state.withLock { state in
      let resource = id.request.resource
      if !state.callerLookups.isEmpty, state.callerLookups[resource] != nil { state.callerLookups[resource] = true }
      guard state.open[id] === coalesced else { return }
      state.open[id] = nil
      ended.add(1, ordering: .releasing)
      if id.transform == CoalescedLoadID.storing { state.storing -= 1 }
    }
  }

  /// Removes a load whose work has ended and whose waiters have received the outcome.
  func remove(_ coalesced: any AnyCoalescedLoad) {
    _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(coalesced)) }
  }

  /// Stops waiters from joining the running loads, which were requested before now. The present waiters continue to wait.
  func closeToOthers() {
    state.withLock { state in
      state.open = [:]
      state.storing = 0
    }
  }

  /// Refuses new loads.
  func refuseNew() { state.withLock { $0.isClosed = true } }

  /// Ends every load with `error`, and cancels the work that the loads are waiting for.
  func dismissWaiters(_ error: CacheError) {
    let running = state.withLock { state in
      state.isDismissed = true
      return Array(state.running.values)
    }
    for coalesced in running { coalesced.dismissWaiters(error) }
  }

  /// Refuses new loads, stops the work that no waiter needs, and returns when all work has ended. This includes loads that start
  /// in the meantime for waiters that need a load of their own, and lookups by callers.
  func close() async {
    while true {
      let (running, hasLookups) = state.withLock { state in
        state.isClosed = true
        return (Array(state.running.values), !state.callerLookups.isEmpty)
      }
      guard !running.isEmpty || hasLookups else { return }
      for coalesced in running { coalesced.retire() }
      for coalesced in running { await coalesced.ended() }
      await waitForLookups()
    }
  }
}

/// A key that is equal for loads that may share one piece of work. It covers everything that can change the response or its place
/// of storage.
///
/// The key is an object because several tables contain the key of a coalesced load. It is compared with itself far more often
/// than with another key.
final class CoalescingKey: Hashable, Sendable {
  private let load: ResolvedRequest
  /// The part of the load's request that distinguishes it.
  private let head: HTTPRequest
  /// Whether the key ignores the layers that the load reads and writes, and its maximum body size.
  private let ignoresStorage: Bool
  private let timeout: Duration?
  private let hash: Int

  /// - Parameters:
  ///   - load: The load whose work may be shared.
  ///   - head: The part of the load's request that distinguishes it, or `nil` for the whole request.
  ///   - ignoresStorage: Whether the key is also equal for loads that use other layers or have another maximum body size.
  ///   - timeout: The timeout of the whole transfer, if the first load's timeout applies to all loads. `nil` leaves the timeout
  ///     out of the key.
  init(_ load: ResolvedRequest, head: HTTPRequest? = nil, ignoresStorage: Bool = false, timeout: Duration? = nil) {
    self.load = load
    self.head = head ?? load.settings.head
    self.ignoresStorage = ignoresStorage
    self.timeout = timeout
    hash = Self.hash(of: self.head, resource: load.settings.resource)
  }

  /// The resource under which the response is stored, unless the request is redirected.
  var resource: String { load.settings.resource }

  /// Hashes the parts that differ between nearly all loads. Equality compares the other parts too.
  private static func hash(of head: HTTPRequest, resource: String) -> Int {
    var hasher = Hasher()
    hasher.combine(resource)
    // The sum does not depend on the order of the fields. Without the values, all requests that differ in one field would have
    // the same hash.
    var fields = 0
    for field in head.headerFields { fields &+= field.value.hashValue }
    hasher.combine(fields)
    return hasher.finalize()
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A hash of the bytes of the resource's name, of the request and of the components. It replaces the key in places that must
  /// not hold the key in memory.
  var digest: Int {
    var hasher = Hasher()
    hasher.combine(CacheKey(resource: resource))
    hasher.combine(head)
    hasher.combine(load.settings.components)
    return hasher.finalize()
  }

  static func == (a: CoalescingKey, b: CoalescingKey) -> Bool {
    a === b || (a.hash == b.hash && a.head == b.head && a.timeout == b.timeout && a.isSameWork(as: b))
  }

  private func isSameWork(as other: CoalescingKey) -> Bool {
    let (mine, others) = (load.settings, other.load.settings)
    // The stores compare resources byte by byte, but `String` does not. Resources that are equal as strings can have different
    // bytes.
    guard mine.resource.utf8.elementsEqual(others.resource.utf8) else { return false }
    return mine.policy == others.policy && mine.staleFallback == others.staleFallback
      && mine.outage?.code == others.outage?.code && mine.outage?.reason == others.outage?.reason
      && reads == other.reads && writes == other.writes
      && mine.expiration == others.expiration && mine.acceptedStatuses == others.acceptedStatuses
      && mine.redirectLimit == others.redirectLimit && mine.allowsInsecureRedirects == others.allowsInsecureRedirects
      && mine.networkAccess == others.networkAccess && largestBody == other.largestBody
      && mine.idleTimeout == others.idleTimeout && Self.areEquivalent(mine.alternatives, others.alternatives)
      && mine.components == others.components && mine.isNested == others.isNested
  }

  private var reads: CacheLayers { ignoresStorage ? .all : load.settings.reads }
  private var writes: CacheLayers { ignoresStorage ? .all : load.settings.writes }
  private var largestBody: Int64 { ignoresStorage ? 0 : load.settings.maximumBodySize }

  /// Compares alternatives by their kinds and by the requests that would be sent to them.
  private static func areEquivalent(_ mine: [ResolvedAlternative], _ others: [ResolvedAlternative]) -> Bool {
    mine.elementsEqual(others) { a, b in
      a.alternative == b.alternative && (try? a.source.get().head) == (try? b.source.get().head)
    }
  }
}

extension RequestSettings {
  /// The identities of the components that respond, store and decide.
  fileprivate var components: [ComponentID?] {
    [downloader?.id, memory?.id, store?.id, validator?.id, observation?.observer.id, clockIdentity, redirectInterceptor?.id]
  }
}
