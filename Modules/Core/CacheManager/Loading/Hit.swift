internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The plain hit in memory: one lookup in the store and one reading of the clock.
extension LoadCoordinator {
  /// Returns the value of a load that is a plain hit, and reports it.
  @inline(__always)
  func hit<Value: Sendable>(
    _ request: ResourceRequest, _ transform: ResourceTransform<Value>, id: LoadID? = nil, isLoad: Bool = true
  ) -> Resource<Value>? {
    guard request.method == .get, request.body == nil, request.headerFields.isEmpty else { return nil }
    return hit(request.url, request.options, transform.id, id: id, isLoad: isLoad)
  }

  /// Returns the value of a GET without fields, and reports it. The value must be fresh, and its record current.
  ///
  /// The text of the URL is not checked. If it is not the effective URI, no plain record has that name.
  ///
  /// It is one function, because a result that several functions pass on is copied each time, which takes as long as the lookup.
  ///
  /// - Parameter isLoad: Whether a closed manager returns no hit.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func hit<Value: Sendable>(
    _ url: URL, _ options: RequestOptions, _ transform: String, id: LoadID? = nil, isLoad: Bool = true
  ) -> Resource<Value>? {
    guard let rules = environment.plain, rules.apply(to: options.storage, isLoad: isLoad) else { return nil }
    let isObserved = rules.isObserved || options.storage?.values.observer != nil
    let start = isObserved ? rules.clock.uptime : .zero
    let uri = url.absoluteString
    var key = CacheKey(resource: options.storage.map { ResourceID.make(uri: uri, partition: $0.values.partition) } ?? uri)
    if !transform.isEmpty { key = key.with(transform: transform) }
    guard let entry = rules.memory.entry(for: key), let record = entry.record as? ResponseRecord, record.isCurrent,
      rules.accept(record, options.storage?.values.acceptedStatuses)
    else { return nil }
    let now = rules.clock.now
    guard record.freshness.isFresh(at: now), let value = entry.value(as: Value.self) else { return nil }
    if record.countUse() { touchIndex(of: key.resource, in: rules.memory) }
    return Resource(
      value: value, url: url, response: record.response, source: .memory, age: record.freshness.age(at: now),
      duration: isObserved ? reportedDuration(of: url, options, since: start, id: id) : .zero, spent: nil, key: key,
      revision: record.revision, valueOrigin: transform.isEmpty ? .original : .memory)
  }

  @inline(never)
  private func touchIndex(of resource: String, in store: any MemoryStoring) {
    _ = MemoryTier(store: store).index(of: resource)
  }

  /// Reports a hit, and returns its duration. Only observed hits have one, because reading the clock for it takes as long as the
  /// lookup.
  @inline(never)
  private func reportedDuration(of url: URL, _ options: RequestOptions, since start: Duration, id: LoadID?) -> Duration {
    let duration = environment.clock.uptime - start
    observeHit(url, options, duration, of: id)
    return duration
  }

  private func observeHit(_ url: URL, _ options: RequestOptions, _ duration: Duration, of id: LoadID? = nil) {
    guard let observer = options.observer.resolved(environment.observer) else { return }
    observer.observe(.hit(url: LoadURL(url), source: .memory, duration: duration), of: id ?? LoadID())
  }
}

/// The hits of requests that are resolved and looked up, because they are no plain hits.
extension LoadCoordinator {
  /// Returns the value of a request that is in memory and may be used now, and reports it. With the policy
  /// `staleWhileRevalidate`, it may be stale. The manager may be closed.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func cached<Value: Sendable>(_ request: ResourceRequest, _ transform: ResourceTransform<Value>) -> Resource<Value>? {
    // An error means that the request cannot be made, for example for an invalid URL. Nothing is stored for such a request.
    guard let load = try? ResolvedRequest(request, self),
      let (hit, freshness) = memoryHit(load, transform, allowsStale: load.policy == .staleWhileRevalidate)
    else { return nil }
    // A stale response is shown until the load that revalidates it ends. That load reports its own end.
    if freshness.isFresh(at: load.clock.now) { observeHit(request.url, request.options, hit.duration) }
    return hit
  }

  /// Returns the value of a load that needs no waiting, and reports it. Returns `nil` if the manager is closed.
  ///
  /// - Parameter known: The responses that the lookup found, if it returns no value.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func immediateHit<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, _ known: inout KnownResponses?
  ) -> Resource<Value>? {
    guard !flights.isClosed else { return nil }
    let start = load.clock.uptime
    let found: Resource<Value>?
    if Value.self == Data.self, transform.id.isEmpty {
      let position = flights.endPosition
      let cache = TieredCache(load, resource: load.settings.resource)
      guard let result = cache.lookUpWithoutWaiting(load.head) else { return nil }
      found = cache.immediateHit(in: result).flatMap { hitResult($0, $0.data as? Value, "", of: load, startedAt: start) }
      if found == nil { known = KnownResponses(result, in: cache, at: position) }
    } else {
      found = memoryHit(load, transform, startedAt: start)?.resource
    }
    if let found { load.observe(.hit(url: load.observedURL, source: found.source, duration: found.duration)) }
    return found
  }

  /// Returns the value in memory that a load may use now, with the freshness of its response.
  func memoryHit<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, allowsStale: Bool = false, startedAt: Duration? = nil
  ) -> (resource: Resource<Value>, freshness: Freshness)? {
    let start = startedAt ?? load.clock.uptime
    let cache = TieredCache(load, resource: load.settings.resource)
    guard let candidate = cache.hit(load.head, allowsStale: allowsStale) else { return nil }
    let value = cache.value(of: candidate, transform: transform.id, as: Value.self)
    return hitResult(candidate, value, transform.id, of: load, startedAt: start).map { ($0, candidate.metadata.freshness) }
  }

  /// Returns the result of a load that a stored response ends at once, or `nil` if there is no value.
  func hitResult<Value: Sendable>(
    _ candidate: Candidate, _ value: Value?, _ transform: String, of load: ResolvedRequest, startedAt start: Duration
  ) -> Resource<Value>? {
    guard let value else { return nil }
    let exchange = Exchange(
      .init(
        request: load, hop: nil, head: candidate.metadata.response, body: candidate.data.map { ResourceBody($0) } ?? .none,
        source: candidate.source, status: CacheStatus("", hitFor: .zero), key: candidate.key.with(transform: transform),
        metadata: candidate.metadata, isStored: true, valueOrigin: transform.isEmpty ? .original : .memory))
    return exchange.resource(value, clock: load.clock, startedAt: start)
  }
}

/// The parts of an environment that every plain hit needs. They are an object, because copying them takes as long as a lookup.
final class PlainRules: Sendable {
  let memory: any MemoryStoring
  let clock: any CacheClock
  let isObserved: Bool
  /// Whether plain loads may join flights: see ``LoadCoordinator/joinable(_:)``.
  let allowsJoining: Bool
  private let fleetMember: FleetMember?
  /// The number of these rules, which no other rules of the process have.
  private let number: UInt64
  private let validator: ComponentID
  private let acceptedStatuses: AcceptedStatuses
  /// Whether the manager's policy permits plain hits.
  private let isPolicyPlain: Bool
  private let isClosed = Atomic(false)

  private static let lastNumber = Atomic<UInt64>(0)

  init(
    _ memory: any MemoryStoring, _ validator: any ResponseValidator, _ fleetMember: FleetMember?,
    _ configuration: ResourceManager.Configuration
  ) {
    (self.memory, self.validator, self.fleetMember, clock) = (memory, validator.id, fleetMember, configuration.clock)
    acceptedStatuses = configuration.acceptedStatuses
    isObserved = configuration.observer != nil
    isPolicyPlain = configuration.policy.allowsPlainHits
    allowsJoining = isPolicyPlain && !isObserved && configuration.timeout == nil
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Ends the hits of loads.
  func close() { isClosed.store(true, ordering: .releasing) }

  /// Whether the validator has accepted a response, and its status is one of `statuses`, or of the manager's.
  func accept(_ record: ResponseRecord, _ statuses: AcceptedStatuses?) -> Bool {
    if statuses == nil, record.acceptor == number { return true }
    guard record.validator == validator, (statuses ?? acceptedStatuses).contains(record.status) else { return false }
    if statuses == nil { record.acceptor = number }
    return true
  }

  /// Whether a request with these options may be a plain hit of its manager.
  ///
  /// - Parameter isLoad: Whether a closed manager has no hit.
  @inline(__always)
  func apply(to options: RequestOptions.Storage?, isLoad: Bool) -> Bool {
    if isLoad, isClosed.load(ordering: .acquiring) { return false }
    guard fleetMember?.isCurrent ?? true else { return false }
    return options.map(apply) ?? isPolicyPlain
  }

  private func apply(to options: RequestOptions.Storage) -> Bool {
    guard options.values.policy?.allowsPlainHits ?? isPolicyPlain, options.values.reads.contains(.memory),
      options.values.key == nil, options.values.clock == nil, options.values.memory == nil, options.values.store == nil,
      options.values.validator == nil, options.values.interceptor == nil
    else { return false }
    return options.isValid
  }
}

extension LoadPolicy {
  /// Whether every fresh response in memory is a hit.
  fileprivate var allowsPlainHits: Bool {
    switch self {
    case .standard, .staleWhileRevalidate: true
    case .reload, .memoryElseReload, .cacheFirst, .revalidate, .cacheOnly: false
    }
  }
}

/// Plain loads that join the flight of equal loads. A plain load is a GET without fields, body and options, in a manager without
/// an observer and a timeout.
///
/// Thousands of loads may wait for one flight. The first of them to join lists the flight. The others then resolve no request,
/// look up no response, and lock the table and the flight once each.
extension LoadCoordinator {
  /// Returns a listed flight for a plain load, with the start and the identifier of the load, which counts as running from then
  /// on.
  @inline(never)
  func joinable(_ url: URL) -> (flight: Flight<Exchange>, start: Duration, id: LoadID)? {
    guard !hasPrefetches.load(ordering: .acquiring), !MemoryBudget.isInsideLoad else { return nil }
    // A cancellation after this point reaches the load, even if it needs another flight later.
    let (start, id) = (environment.clock.uptime, LoadID())
    guard let flight = flights.listed(CacheKey(resource: url.absoluteString)), flights.beginLoad() else { return nil }
    return (flight, start, id)
  }

  /// Lets further plain loads find the flight that one of them has joined, unless memory has a hit, or a response whose body may
  /// be on its way there.
  func list<Output: Shareable>(_ flight: Flight<Output>, for load: ResolvedRequest) {
    guard let flight = flight as? Flight<Exchange>, case .bytes? = flight.key, let memory = load.memory.map(MemoryTier.init)
    else { return }
    let key = CacheKey(resource: load.settings.resource)
    if flights.listed(key) === flight { return }
    // A change that the lookup misses advances the epoch after this position, before it returns.
    let position = ResourceEpoch(of: key).position
    let records = memory.index(of: key)?.records ?? []
    let hasBodies = records.allSatisfy { record in
      memory.value(of: CacheKey(resource: key.resource, variant: record.variant), for: record.metadata, as: Data.self) != nil
    }
    guard hasBodies, TieredCache(load, resource: key.resource).hit(load.head) == nil else { return }
    flights.list(flight, for: key, at: position)
  }

  /// Returns the result of a plain load. It is out of line, as below, so that the caller does not reserve memory for it.
  @inline(never)
  func resource(_ exchange: Exchange, startedAt start: Duration) -> Resource<Data> {
    exchange.resource(exchange.data, clock: environment.clock, startedAt: start)
  }

  /// Ends or continues a plain load that has joined a flight and has no response.
  ///
  /// - Parameters:
  ///   - id: The identifier that the load had when it joined the flight.
  ///   - ending: The ending, or `nil` if the flight accepted no more waiters.
  @inline(never)
  func resource(
    of url: URL, _ id: LoadID, after ending: Waiter<Exchange>.Ending?, startedAt start: Duration
  ) async throws(CacheError) -> Resource<Data> {
    let alone: Bool
    switch ending {
    case .failed(let error)?, .expired(let error, _, _)?: throw error.about(url.address)
    case .alone?: alone = true
    case .output?: alone = flights.isClosed
    case nil: alone = false
    }
    let load: ResolvedRequest
    do throws(CacheError) {
      load = try ResolvedRequest(ResourceRequest(url), self, id: id)
    } catch {
      flights.endLoad()
      throw error
    }
    return try await run(load, BytesForm(core: self), WaiterNeeds(isCounted: true), startedAt: start, alone: alone).get()
  }
}

extension ResourceRequest {
  /// Whether the request is a GET without fields and without options.
  var isPlain: Bool { options.storage == nil && method == .get && body == nil && headerFields.isEmpty }
}

/// Lookups of values that are stored. They send no requests.
extension LoadCoordinator {
  /// Returns the stored value of a request whose policy is `cacheOnly`, or `nil` if no value is stored.
  ///
  /// A fresh value in memory is reported as a hit, and every other value as a load. A miss has no events, so nothing is reported
  /// until a lookup has found a response.
  func stored<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>
  ) async -> Resource<Value>? {
    guard load.head.method == .get, load.body == nil else { return nil }
    let start = load.clock.uptime
    if let (found, freshness) = memoryHit(load, transform, startedAt: start) {
      if freshness.isFresh(at: load.clock.now) {
        load.observe(.hit(url: load.observedURL, source: .memory, duration: found.duration))
      } else {
        load.observe(.started(url: load.observedURL))
        load.observeEnd(.success(found), startedAt: start)
      }
      return found
    }
    let load = load.markedIfNested
    guard await hasStored(load, transform, startedAt: start), flights.beginLoad() else { return nil }
    load.observe(.started(url: load.observedURL))
    if Value.self == Data.self, transform.id.isEmpty {
      return try? await run(load, BytesForm<Value>(core: self), WaiterNeeds(isCounted: true), startedAt: start).get()
    }
    let form = ValueForm(core: self, transform: transform)
    return try? await run(load, form, WaiterNeeds(isCounted: true), startedAt: start).get()
  }

  /// Whether a load of the value would find a response. The lookup has a flight, so that the load's timeout, a cancellation and
  /// the end of the manager end the wait for a store that is slow.
  private func hasStored<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, startedAt start: Duration
  ) async -> Bool {
    guard flights.beginLoad() else { return false }
    let lookup = transform.id.isEmpty ? load : load.with { $0.representation = RequestedRepresentation(for: transform) }
    let deadline = load.timeout.map { timeout in
      let error = CacheError(.timedOut, reason: "not found within \(timeout)", url: load.address)
      return Deadline(uptime: start + timeout, clock: load.clock, error: error, isFinal: true)
    }
    let ending = await wait(
      for: lookup, LookupForm(), WaiterNeeds(isCounted: true), until: deadline, progress: { _ in }, stale: { _ in })
    return if case .output = ending { true } else { false }
  }
}

/// The form of a lookup, which succeeds if a load that sends no requests finds a response.
private struct LookupForm: LoadForm {
  func key(of load: ResolvedRequest) -> FlightKey? { nil }

  func work(
    of load: ResolvedRequest, in flight: Flight<Flights.Done>, alone: Bool
  ) async -> Result<Flights.Done, CacheError> {
    do throws(CacheError) {
      let found = try await TieredCache(load, resource: load.settings.resource).lookUp(load.head)
      guard case .use(let index, _) = found.plan, case let response = found.candidates[index].metadata.response,
        load.isResult(response) || load.isFollowed(response)
      else { return .failure(.onlyCached) }
      return .success(Flights.Done())
    } catch {
      return .failure(error)
    }
  }

  func value(in output: Flights.Done) -> (value: Void, outcome: Exchange)? { nil }
}
