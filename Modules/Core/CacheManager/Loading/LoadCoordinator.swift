internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A form of a load: the flight that it waits for, and the work of that flight.
protocol LoadForm<Output, Value>: Sendable {
  associatedtype Output: Shareable
  associatedtype Value: Sendable

  /// Whether the work continues on the executor of the load's downloader.
  var followsDownloader: Bool { get }

  /// Returns the key by which equal loads find the flight, or `nil` if the flight is for this load alone.
  func key(of load: ResolvedRequest) -> FlightKey?

  /// Does the work of a flight.
  ///
  /// - Parameter alone: Whether the load needs work of its own.
  func work(of load: ResolvedRequest, in flight: Flight<Output>, alone: Bool) async -> Result<Output, CacheError>

  /// Returns the value in an output, or `nil` if it has none.
  func value(in output: Output) -> (value: Value, outcome: Exchange)?
}

extension LoadForm {
  var followsDownloader: Bool { false }
}

extension LoadForm where Output == TransformedOutcome<Value> {
  func value(in output: Output) -> (value: Value, outcome: Exchange)? { (output.value, output.outcome) }
}

/// The form of a load of bytes.
struct BytesForm<Value: Sendable>: LoadForm {
  let core: LoadCoordinator
  /// The responses that a lookup has found.
  var known: KnownResponses?

  var followsDownloader: Bool { true }

  func key(of load: ResolvedRequest) -> FlightKey? { .bytes(CoalescingKey(load)) }

  func work(of load: ResolvedRequest, in flight: Flight<Exchange>, alone: Bool) async -> Result<Exchange, CacheError> {
    // A flight that ended between the lookup and this point may have stored the response, so the lookup is repeated. The load
    // after a deadline may send no request, which the lookup did not consider.
    let isValid = known?.position == core.flights.endPosition && load.outage == nil
    let result = await core.fetch(load, isValid ? known : nil, in: flight.number, flight.priority) { flight.report($0) }
    if flight.survivesItsWaiters { load.observeBackground(result) }
    return result
  }

  func value(in output: Exchange) -> (value: Value, outcome: Exchange)? { (output.data as? Value).map { ($0, output) } }
}

/// The form of a load of a transform's value.
struct ValueForm<Value: Sendable>: LoadForm {
  let core: LoadCoordinator
  let transform: ResourceTransform<Value>

  func key(of load: ResolvedRequest) -> FlightKey? {
    .value(
      CoalescingKey(load),
      .init(transform.id, of: Value.self, on: load.executor, transform.coding == nil ? nil : load.storagePolicy))
  }

  func work(
    of load: ResolvedRequest, in flight: Flight<TransformedOutcome<Value>>, alone: Bool
  ) async -> Result<TransformedOutcome<Value>, CacheError> {
    let result = await core.derive(load, transform, alone: alone, in: flight)
    if flight.survivesItsWaiters { load.observeBackground(result.map(\.outcome)) }
    return result
  }
}

/// The shared state of a manager and its loads. Flights retain it, so the loads of a released manager still end.
final class LoadCoordinator: Sendable {
  /// The components and settings of the manager.
  let environment: Environment
  /// The work that is running.
  let flights: Flights
  /// The prefetchers with waiting items.
  let prefetches = Lock<[ObjectIdentifier: PrefetchQueue]>([:])
  /// Whether ``prefetches`` has any. It changes under that lock.
  let hasPrefetches = Atomic(false)
  /// The partial files of loads into files.
  let parts = OpenParts()
  /// Coalesces the requests of `respond(to:)`.
  let responseCoalescer = ResponseCoalescer()

  init(_ configuration: ResourceManager.Configuration) {
    let invalidations = InvalidationLog()
    flights = Flights(invalidations)
    environment = Environment(configuration, invalidations)
  }

  // MARK: One load

  /// Runs a load that is no plain hit, until it ends or the calling task is cancelled.
  func outcome<Value: Sendable>(
    of load: ResolvedRequest, _ transform: ResourceTransform<Value>
  ) async -> Result<Resource<Value>, CacheError> {
    var known: KnownResponses?
    if let hit = immediateHit(load, transform, &known) { return .success(hit) }
    return await outcome(of: load, known: known, transform)
  }

  /// Runs a load that is no hit.
  ///
  /// - Parameter known: The responses that a lookup without waiting has found.
  @inline(never)
  func outcome<Value: Sendable>(
    of load: ResolvedRequest, known: KnownResponses?, _ transform: ResourceTransform<Value>
  ) async -> Result<Resource<Value>, CacheError> {
    guard Value.self == Data.self, transform.id.isEmpty else {
      return await outcome(of: load, ValueForm(core: self, transform: transform))
    }
    let load = load.markedIfNested
    guard flights.beginLoad() else { return refuse(load) }
    guard known == nil, load.allowsLookupByCaller, flights.beginLookup(of: load) else {
      return await run(load, BytesForm(core: self, known: known), WaiterNeeds(isCounted: true))
    }
    return await outcomeOfLookup(load)
  }

  /// Runs a load in one of the other forms.
  func outcome<Form: LoadForm>(of load: ResolvedRequest, _ form: Form) async -> Result<Resource<Form.Value>, CacheError> {
    let load = load.markedIfNested
    guard flights.beginLoad() else { return refuse(load) }
    return await run(load, form, WaiterNeeds(isCounted: true))
  }

  /// Looks up a load in the task of its caller, and joins a flight only if there is no hit. A flight costs a task, its wake-ups
  /// and the objects of a waiter.
  ///
  /// It leaves the actor of the caller, so that a blocked actor never delays the end of the lookup.
  @concurrent
  private func outcomeOfLookup<Value: Sendable>(
    _ load: ResolvedRequest
  ) async -> Result<Resource<Value>, CacheError> {
    let (start, resource) = (load.clock.uptime, load.settings.resource)
    load.observe(.started(url: load.observedURL))
    let cache = TieredCache(load, resource: resource)
    var found: LookupResult?
    // A lookup throws only if the task is cancelled.
    if let result = try? await cache.lookUp(load.head), !Task.isCancelled, !cache.isBehindRemovals, !flights.isCancelled(load) {
      if let candidate = cache.immediateHit(in: result),
        let value: Resource<Value> = hitResult(candidate, candidate.data as? Value, "", of: load, startedAt: start)
      {
        let hit = Result<_, CacheError>.success(value)
        load.observeEnd(hit, startedAt: start)
        _ = flights.endLookup(of: resource)
        flights.endLoad()
        return hit
      }
      found = result
    }
    let position = flights.endLookup(of: resource)
    let known = position.flatMap { position in found.map { KnownResponses($0, in: cache, at: position) } }
    return await run(load, BytesForm(core: self, known: known), WaiterNeeds(isCounted: true), startedAt: start)
  }

  /// Starts a load in a task of its own: for callbacks, events and prefetches. `end` is called exactly once, after all events.
  ///
  /// - Parameters:
  ///   - endsWithStale: Whether a stale value ends the load, as it does for calls that return one result.
  ///   - task: The handle of the caller.
  ///   - event: Called with each event before the end.
  ///   - end: Called with the result.
  func start<Form: LoadForm>(
    _ load: ResolvedRequest, _ form: Form, _ task: LoadTask, endsWithStale: Bool = true,
    event: (@Sendable (ResourceEvent<Form.Value>) -> Void)? = nil,
    end: @escaping @Sendable (Result<Resource<Form.Value>, CacheError>) -> Void
  ) {
    let load = load.markedIfNested
    guard flights.beginLoad() else {
      task.finish()
      return end(refuse(load))
    }
    let needs = WaiterNeeds<Form.Output>(
      priority: task.priority, wantsProgress: event != nil, endsWithStale: endsWithStale)
    // The task only passes events on, and a caller may raise the priority of the load, so it is never in the background.
    _ = Task.begun(priority: max(.medium, TaskPriority(load.priority))) { [self] in
      let result = await run(load, form, needs, task, event)
      end(result)
      task.finish()
      flights.endLoad()
    }
  }

  /// Starts a load of a value that is no plain hit: see ``start(_:_:_:endsWithStale:event:end:)``. A hit ends it at once.
  func start<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, _ task: LoadTask, endsWithStale: Bool = true,
    event: (@Sendable (ResourceEvent<Value>) -> Void)? = nil,
    end: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) {
    var known: KnownResponses?
    if let hit = immediateHit(load, transform, &known) {
      task.finish()
      end(.success(hit))
    } else if Value.self == Data.self, transform.id.isEmpty {
      let form = BytesForm<Value>(core: self, known: known)
      start(load, form, task, endsWithStale: endsWithStale, event: event, end: end)
    } else {
      let form = ValueForm(core: self, transform: transform)
      start(load, form, task, endsWithStale: endsWithStale, event: event, end: end)
    }
  }

  func refuse<Value: Sendable>(_ load: ResolvedRequest) -> Result<Resource<Value>, CacheError> {
    let start = load.clock.uptime
    load.observe(.started(url: load.observedURL))
    let result = Result<Resource<Value>, CacheError>.failure(load.managerIsClosed)
    load.observeEnd(result, startedAt: start)
    return result
  }

  /// Runs one load: joins its flight, passes its events on, and returns its result. At its deadline, the load leaves the flight
  /// and uses a stored response if it may. Every form of a load is a loop around this function.
  ///
  /// - Parameters:
  ///   - needs: The needs of the load.
  ///   - task: The handle of the caller. Its cancellation ends the load, as the cancellation of the calling task does.
  ///   - startedAt: The start of the load, if the observer has been informed of it.
  ///   - alone: Whether the load needs a flight of its own from the start.
  ///   - event: Called with each event before the end.
  func run<Form: LoadForm>(
    _ load: ResolvedRequest, _ form: Form, _ needs: WaiterNeeds<Form.Output>, _ task: LoadTask? = nil,
    startedAt: Duration? = nil, alone: Bool = false, _ event: (@Sendable (ResourceEvent<Form.Value>) -> Void)? = nil
  ) async -> Result<Resource<Form.Value>, CacheError> {
    let start = startedAt ?? load.clock.uptime
    if startedAt == nil { load.observe(.started(url: load.observedURL)) }
    let result: Result<Resource<Form.Value>, CacheError> = await result(
      of: load, form, needs, task, startedAt: start, alone: alone, event
    ).mapError { $0.about(load.address) }
    load.observeEnd(result, startedAt: start)
    return result
  }

  private func result<Form: LoadForm>(
    of load: ResolvedRequest, _ form: Form, _ needs: WaiterNeeds<Form.Output>, _ task: LoadTask?,
    startedAt start: Duration, alone: Bool, _ event: (@Sendable (ResourceEvent<Form.Value>) -> Void)?
  ) async -> Result<Resource<Form.Value>, CacheError> {
    func resource(_ output: Form.Output) -> Resource<Form.Value>? {
      form.value(in: output).map { $0.outcome.resource($0.value, clock: load.clock, startedAt: start) }
    }
    // The error of the deadline, after which a load without requests replaces this one.
    var (current, lateness) = (load, CacheError?.none)
    var deadline = load.timeout.map { timeout in
      Deadline(
        uptime: start + timeout, clock: load.clock,
        error: CacheError(.timedOut, reason: "not loaded within \(timeout)", url: load.address), isFinal: false)
    }
    while true {
      let ending = await wait(
        for: current, form, needs, task, until: deadline, alone: alone,
        progress: { event?(.progress($0)) }, stale: { output in if let old = resource(output) { event?(.stale(old)) } })
      switch ending {
      case .output(let output): return resource(output).map { .success($0) } ?? .failure(.cancelled)
      // The caller asked for a response in time. The reason why no stored one could be read is in the observer's events.
      case .failed(let error): return .failure(error.isCancellation ? error : lateness ?? error)
      case .expired(let error, let hasFallback, let isInFlight):
        if isInFlight { load.failures.note(error, of: load) }
        guard hasFallback, let timeout = load.timeout else { return .failure(error) }
        (current, lateness) = (load.with { $0.outage = error }, error)
        // The time begins here, because the caller's executor may have been busy since the deadline.
        let grace = max(.milliseconds(100), timeout / 10)
        deadline = Deadline(uptime: load.clock.uptime + grace, clock: load.clock, error: error, isFinal: true)
      case .alone: return .failure(.cancelled)
      }
    }
  }

  /// The uptime at which a load leaves the flight that it waits for, whichever that is. It does not affect the other waiters. A
  /// load that replaces this one at the deadline sends no request, and has a short time of its own to read a stored response.
  struct Deadline {
    var uptime: Duration
    var clock: any CacheClock
    var error: CacheError
    /// Whether the load ends then, and no other load replaces it.
    var isFinal: Bool

    /// Starts the deadline for a waiter. A waiter that joined after the deadline leaves at once.
    func start<Output>(for waiter: Waiter<Output>) -> Task<Void, Never>? {
      let rest = uptime - clock.uptime
      guard rest > .zero else {
        waiter.leave(error, atDeadline: !isFinal)
        return nil
      }
      return Task.detached { [clock, error, isFinal] in
        guard (try? await clock.sleep(for: rest)) != nil else { return }
        waiter.leave(error, atDeadline: !isFinal)
      }
    }
  }

  // MARK: Waiting for a flight

  /// Joins the flight of a load, or starts it, and waits for its end. A load for which an output is not meant gets a flight of
  /// its own.
  ///
  /// - Parameters:
  ///   - alone: Whether the load needs a flight of its own from the start.
  ///   - progress: Called with the progress.
  ///   - stale: Called with a stale output that is not the end for the waiter.
  /// - Returns: The ending, which is not ``Waiter/Ending/alone``.
  func wait<Form: LoadForm>(
    for load: ResolvedRequest, _ form: Form, _ needs: WaiterNeeds<Form.Output>, _ task: LoadTask? = nil,
    until deadline: Deadline? = nil, alone: Bool = false,
    progress: (LoadProgress) -> Void, stale: (Form.Output) async -> Void
  ) async -> Waiter<Form.Output>.Ending {
    var alone = alone
    while true {
      raisePrefetches(of: load, to: needs.priority?.level ?? load.priority)
      let isShared = !alone && load.head.method == .get && load.body == nil
      guard let (waiter, isNew) = flights.join(isShared ? form.key(of: load) : nil, load, needs) else {
        if needs.isCounted { flights.endLoad() }
        return .failed(flights.isCancelled(load) ? .cancelled : load.managerIsClosed)
      }
      var timer: Task<Void, Never>?
      let ending = await waiter.ending(
        joined: {
          task?.onCancel { waiter.leave(.cancelled) }
          timer = deadline?.start(for: waiter)
          guard isNew else {
            if load.isPlain { list(waiter.flight, for: load) }
            return load.observe(.joined(url: load.observedURL, to: waiter.flight.id))
          }
          let flight = waiter.flight
          flight.start(on: form.followsDownloader ? load.downloader?.preferredExecutor : nil) { [alone] in
            flight.end(await form.work(of: load, in: flight, alone: alone))
          }
        }, progress: progress, stale: stale)
      timer?.cancel()
      switch ending {
      // Decisions that were made before this waiter joined ignore its needs.
      case .output(let output) where !needs.accepts(output): alone = alone || flights.isClosed
      case .alone: alone = true
      case .output, .failed, .expired: return ending
      }
    }
  }

  // MARK: Values

  /// Loads the bytes, which all their transforms share, and makes the value. A stored value needs no bytes.
  fileprivate func derive<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, alone: Bool, in flight: Flight<TransformedOutcome<Value>>
  ) async -> Result<TransformedOutcome<Value>, CacheError> {
    let pipeline = ValuePipeline(load: load, transform: transform, core: self, priority: flight.priority)
    do throws(CacheError) {
      for demand in pipeline.demands {
        let effectiveLoad = demand.map { demand in load.with { $0.representation = demand } } ?? load
        let form = BytesForm<Data>(core: self)
        let outcome = try await output(of: effectiveLoad, form, alone: alone || flights.isClosed, for: flight) { old in
          // A stale response that cannot be transformed is not reported. The final response decides.
          if let value = (try? await pipeline.value(of: old)) ?? nil { flight.report(.stale(value)) }
        }
        do throws(CacheError) {
          if let value = try await pipeline.value(of: outcome) { return .success(value) }
        } catch {
          throw load.naming(error, at: outcome.url, after: outcome.redirects)
        }
      }
      throw CacheError(.notCached, reason: "the stored value cannot be read, and its original is not stored")
    } catch {
      return .failure(error.about(load.address))
    }
  }

  /// Waits for a form of a load on behalf of another flight, to which it passes the progress and the state of the request on.
  ///
  /// - Parameter stale: Called with a stale output, or `nil` if that is enough.
  /// - Throws: The error of the load, or a cancellation of the calling task.
  func output<Form: LoadForm, Outer: Shareable>(
    of load: ResolvedRequest, _ form: Form, alone: Bool, for flight: Flight<Outer>, stale: ((Form.Output) async -> Void)? = nil
  ) async throws(CacheError) -> Form.Output {
    let wantsBytes = load.representation?.wantsBytes ?? true
    let needs = WaiterNeeds<Form.Output>(
      priority: flight.priority, wantsBytes: wantsBytes, wantsProgress: true, endsWithStale: stale == nil,
      forward: { event in
        switch event {
        case .foundFallback: flight.report(.foundFallback)
        case .inFlight(let isInFlight): flight.report(.inFlight(isInFlight))
        case .otherURL: flight.report(.otherURL)
        case .progress, .stale: break
        }
      })
    let ending = await wait(
      for: load, form, needs, alone: alone, progress: { flight.report(.progress($0)) }, stale: { await stale?($0) })
    switch ending {
    case .output(let output): return output
    case .failed(let error): throw error
    case .expired(let error, _, _): throw error
    case .alone: throw .cancelled
    }
  }

  // MARK: Closing

  /// - Returns: Whether all writes to the durable store have ended.
  @discardableResult
  func close() async -> Bool {
    refuseNew()
    await flights.close()
    let isIdle = await environment.writeDeadline.idle()
    await environment.fleetMember?.leave()
    return isIdle
  }

  private func refuseNew() {
    environment.plain?.close()
    flights.refuseNew()
  }

  /// - Returns: Whether everything ended within `limit`.
  func close(within limit: Duration) async -> Bool {
    refuseNew()
    let waiting = Lock<Resumption<Bool>?>(nil)
    let clock = environment.clock
    let hasEnded = await withResumption { continuation in
      waiting.withLock { $0 = continuation }
      let end: @Sendable (Bool) -> Void = { hasEnded in
        let continuation = waiting.withLock { waiting in
          defer { waiting = nil }
          return waiting
        }
        continuation?.resume(returning: hasEnded)
      }
      let timer = Task.detached {
        try? await clock.sleep(for: limit)
        end(false)
      }
      // The call does not wait for this task beyond the limit, because a store that hangs would block the caller.
      Task.detached {
        end(await self.close())
        timer.cancel()
      }
    }
    if !hasEnded { flights.dismissWaiters(CacheError(.closed, reason: "the manager was closed while the load was running")) }
    return hasEnded
  }
}
