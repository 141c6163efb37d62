internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The plain hit in memory: one lookup in the store and one reading of the clock.
extension LoadCoordinator {
  /// Returns the value of a load that memory has, and reports it. Returns `nil` if the load needs more than a plain hit.
  @inline(__always)
  func loadHit<Value: Sendable>(
    _ request: ResourceRequest, _ transform: ResourceTransform<Value>, id: LoadID? = nil
  ) -> Resource<Value>? {
    request.isPlain && !flights.isClosed ? hit(request.url, request.options, transform.id, id: id) : nil
  }

  /// Returns the value of a request that may be used now, and reports it. The manager may be closed.
  @inline(never)
  func cached<Value: Sendable>(_ request: ResourceRequest, _ transform: ResourceTransform<Value>) -> Resource<Value>? {
    if request.isPlain, let hit: Resource<Value> = hit(request.url, request.options, transform.id) { return hit }
    return memoryHit(missed: request, transform)
  }

  /// Returns the value of a GET without fields, and reports it. The value must be fresh, and its record confirmed by a lookup
  /// that has read the index. The manager may be closed.
  ///
  /// The text of the URL is not checked. If it is not the effective URI, no confirmed record has that name.
  ///
  /// It is one function, because a result that several functions pass on is copied each time, which takes as long as the lookup.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func hit<Value: Sendable>(
    _ url: URL, _ options: RequestOptions, _ transform: String, id: LoadID? = nil
  ) -> Resource<Value>? {
    guard let rules = environment.plain, rules.apply(to: options.storage), environment.fleetMember?.isCurrent ?? true else {
      return nil
    }
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
      value, of: record, key, at: url, age: record.freshness.age(at: now),
      duration: isObserved ? reportedDuration(of: url, options, since: start, id: id) : .zero)
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
}

extension Resource {
  /// Creates the result of a plain hit.
  @inline(__always)
  init(_ value: Value, of record: ResponseRecord, _ key: CacheKey, at url: URL, age: Duration, duration: Duration) {
    self.init(
      value: value, url: url, response: record.response, source: .memory, age: age, duration: duration, metrics: .nothing,
      key: key, revision: record.revision, valueOrigin: key.transform.isEmpty ? .original : .memory)
  }
}

extension ResourceRequest {
  /// Whether the request is a GET without fields and content.
  var isPlain: Bool { method == .get && body == nil && headerFields.isEmpty }
}

/// The start of a load, which ends at once if the value is in memory.
extension LoadCoordinator {
  /// The start of a load.
  enum LoadStart<Value: Sendable> {
    /// The load has ended.
    case over(Result<Resource<Value>, CacheError>)
    /// The load needs more than a lookup in memory.
    ///
    /// - Parameter known: The responses that the lookup found.
    case underWay(ResolvedRequest, known: KnownResponses?)
  }

  /// The result of a memory lookup for a plain request.
  enum PlainLookup<Value: Sendable> {
    case hit(Resource<Value>)
    /// Memory has no response of the resource.
    case absent
    /// Memory has a response of the resource, but no fresh value.
    case miss
    /// The request or the stored responses are not plain.
    case undecided

    var isAbsent: Bool { if case .absent = self { true } else { false } }

    var isUndecided: Bool { if case .undecided = self { true } else { false } }
  }

  /// Starts a load. A hit or a closed manager ends it at once.
  func begin<Value: Sendable>(
    _ request: ResourceRequest, _ transform: ResourceTransform<Value>, id: LoadID? = nil
  ) throws(CacheError) -> LoadStart<Value> {
    if let hit = loadHit(request, transform, id: id) { return .over(.success(hit)) }
    return try begin(missed: request, transform, id: id)
  }

  /// Starts a load for which ``loadHit(_:_:id:)`` has returned `nil`.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func begin<Value: Sendable>(
    missed request: ResourceRequest, _ transform: ResourceTransform<Value>, id: LoadID? = nil
  ) throws(CacheError) -> LoadStart<Value> {
    if !flights.isClosed {
      let position = flights.endPosition
      let clock = request.options.clock ?? environment.clock
      let start = clock.uptime
      let found = plainLookup(request, transform, clock, startedAt: start)
      switch found {
      case .hit(let resource):
        observeHit(request.url, request.options, resource.duration, of: id)
        return .over(.success(resource))
      case .absent, .miss, .undecided:
        return begin(
          try ResolvedRequest(request, self, id: id ?? LoadID()), transform, found, at: position)
      }
    }
    return begin(try ResolvedRequest(request, self, id: id ?? LoadID()), transform)
  }

  /// Starts a load whose request is resolved.
  ///
  /// - Parameters:
  ///   - found: The result of ``plainLookup(_:_:_:startedAt:)``.
  ///   - position: The end position of the flights before that lookup.
  func begin<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, _ found: PlainLookup<Value> = .undecided,
    at position: Int? = nil
  ) -> LoadStart<Value> {
    let position = position ?? flights.endPosition
    let start = load.clock.uptime
    let ending: Result<Resource<Value>, CacheError>
    if flights.isClosed {
      ending = .failure(load.managerIsClosed)
    } else if Value.self == Data.self, transform.id.isEmpty {
      let cache = TieredCache(load, resource: load.settings.resource)
      guard let result = cache.lookUpWithoutWaiting(load.head, isAbsentFromMemory: found.isAbsent) else {
        return .underWay(load, known: nil)
      }
      guard let candidate = cache.immediateHit(in: result), let value = candidate.data as? Value else {
        return .underWay(load, known: KnownResponses(cache: cache, result: result, position: position))
      }
      ending = .success(hitOutcome(candidate, transform, of: load).resource(value, clock: load.clock, startedAt: start))
    } else if found.isUndecided, let hit = memoryHit(load, transform, allowsStale: false, startedAt: start) {
      ending = .success(hit)
    } else {
      return .underWay(load, known: nil)
    }
    switch ending {
    case .success(let hit):
      load.observe(.hit(url: load.observedURL, source: hit.source, duration: load.clock.uptime - start))
    case .failure:
      load.observe(.started(url: load.observedURL))
      load.observeEnd(ending, startedAt: start)
    }
    return .over(ending)
  }

  /// Returns the value in memory of a request that was no plain hit. With the policy `staleWhileRevalidate`, it may be stale.
  ///
  /// An error means that the request cannot be made, for example for an invalid URL. Nothing is stored for such a request.
  @inline(never)
  func memoryHit<Value: Sendable>(missed request: ResourceRequest, _ transform: ResourceTransform<Value>) -> Resource<Value>? {
    try? findInMemory(request, transform)
  }

  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  private func findInMemory<Value: Sendable>(
    _ request: ResourceRequest, _ transform: ResourceTransform<Value>
  ) throws(CacheError) -> Resource<Value>? {
    let clock = request.options.clock ?? environment.clock
    let start = clock.uptime
    let allowsStale = (request.options.policy ?? environment.policy) == .staleWhileRevalidate
    let hit: Resource<Value>?
    switch plainLookup(request, transform, clock, startedAt: start) {
    case .hit(let resource): hit = resource
    case .absent: return nil
    case .miss where !allowsStale: return nil
    case .miss, .undecided:
      hit = memoryHit(
        try ResolvedRequest(request, self), transform, allowsStale: allowsStale, startedAt: start)
    }
    // A stale response is shown until the load that revalidates it ends. That load reports its own end.
    if let hit, !hit.isStale { observeHit(request.url, request.options, hit.duration) }
    return hit
  }

  /// Reports a load that memory satisfied at once.
  func observeHit(_ url: URL, _ options: RequestOptions, _ duration: Duration, of id: LoadID? = nil) {
    guard let observer = options.observer.resolved(environment.observer) else { return }
    observer.observe(.hit(url: LoadURL(url), source: .memory, duration: duration), of: id ?? LoadID())
  }

  /// Looks up a plain request: a GET for the resource that its URL names, with the policy `standard` or `staleWhileRevalidate`,
  /// without fields that could select a response. A fresh response that the same validator has accepted is a hit with both
  /// policies. Further hits then need no index: see ``hit(_:_:_:id:)``.
  ///
  /// ``memoryHit(_:_:allowsStale:startedAt:)`` returns the same result, but it needs a ``ResolvedRequest``. Creating one takes
  /// several times as long as this lookup.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  private func plainLookup<Value: Sendable>(
    _ request: ResourceRequest, _ transform: ResourceTransform<Value>, _ clock: any CacheClock, startedAt start: Duration
  ) -> PlainLookup<Value> {
    let policy = request.options.policy ?? environment.policy
    // The memory store depends on a durable store of the request's own.
    if case .use(let store)? = request.options.store, store.id != environment.store?.id { return .undecided }
    if case .adapted? = request.options.store { return .undecided }
    guard request.isPlain, request.options.key == nil, environment.cacheKey == nil,
      request.options.interceptor.resolved(environment.interceptor)?.interceptsLookups != true,
      policy == .standard || policy == .staleWhileRevalidate, request.options.reads.contains(.memory),
      let validator = request.options.validator.resolved(environment.validator),
      let store = request.options.memory.resolved(environment.memory), let uri = ResourceID.plainURI(of: request.url),
      environment.fleetMember?.isCurrent ?? true, environment.isValid, request.options.storage?.isValid ?? true
    else { return .undecided }
    let memory = MemoryTier(store: store)
    let key = CacheKey(resource: ResourceID.make(uri: uri, partition: request.options.partition))
    let position = ResourceEpoch(of: key).position
    guard let index = memory.index(of: key) else { return .absent }
    guard index.records.count == 1, let record = index.records.first, record.isPlain, record.validator == validator.id,
      (request.options.acceptedStatuses ?? environment.acceptedStatuses).contains(record.status)
    else { return .undecided }
    let now = clock.now
    let formed = key.with(transform: transform.id)
    guard record.freshness.isFresh(at: now), let entry = store.entry(for: formed),
      entry.revision == record.metadata.revision, let value = entry.value(as: Value.self)
    else { return .miss }
    let hasOwnRules = request.options.validator != nil || request.options.acceptedStatuses != nil
    memory.confirm(record, entry, of: formed, at: position, by: hasOwnRules ? nil : environment.plain)
    return .hit(
      Resource(
        value, of: record, formed, at: request.url, age: record.freshness.age(at: now), duration: clock.uptime - start))
  }

  private func memoryHit<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, allowsStale: Bool, startedAt start: Duration
  ) -> Resource<Value>? {
    guard load.reads.contains(.memory) else { return nil }
    let cache = TieredCache(load, resource: load.settings.resource)
    guard let candidate = cache.hit(load.head, allowsStale: allowsStale),
      let value = cache.value(of: candidate, transform: transform.id, as: Value.self)
    else { return nil }
    return hitOutcome(candidate, transform, of: load).resource(value, clock: load.clock, startedAt: start)
  }

  /// Returns the outcome of a load that a stored response ends at once.
  func hitOutcome<Value: Sendable>(
    _ candidate: Candidate, _ transform: ResourceTransform<Value>, of load: ResolvedRequest
  ) -> Exchange {
    Exchange(
      .init(
        request: load, hop: nil, head: candidate.metadata.response, body: candidate.data.map { ResourceBody($0) } ?? .none,
        source: candidate.source, status: CacheStatus("", hitFor: .zero), key: candidate.key.with(transform: transform.id),
        metadata: candidate.metadata, isStored: true, valueOrigin: transform.id.isEmpty ? .original : .memory))
  }
}
