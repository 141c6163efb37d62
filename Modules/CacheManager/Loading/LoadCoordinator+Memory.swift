internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a load has at once: a hit in memory.
extension LoadCoordinator {
  /// How a load begins.
  enum Beginning<Value: Sendable> {
    /// It needed nobody.
    case over(Result<Resource<Value>, CacheError>)
    case underWay(ResolvedRequest)
  }

  /// What memory says of a plain request.
  enum PlainAnswer<Value: Sendable> {
    case hit(Resource<Value>)
    case miss
    /// It takes all that the load is made of to tell.
    case undecided
  }

  /// Begins a load: a hit in memory, and a manager that is closed, end it at once.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  @inline(never)
  func begin<Value: Sendable>(_ request: ResourceRequest, _ transform: ResourceTransform<Value>) throws(CacheError) -> Beginning<
    Value
  > {
    if !coalescer.isClosed {
      let clock = request.options.clock ?? configuration.clock
      let start = clock.uptime
      switch plainAnswer(to: request, transform, clock, startedAt: start) {
      case .hit(let resource):
        if let observer = request.options.observer.resolved(configuration.observer) {
          observer.observe(.finished(url: request.url.address, source: .memory, error: nil, duration: clock.uptime - start))
        }
        return .over(.success(resource))
      case .miss: return .underWay(try ResolvedRequest(request, configuration, self))
      case .undecided: break
      }
    }
    let load = try ResolvedRequest(request, configuration, self)
    return immediate(load, transform).map { .over($0) } ?? .underWay(load)
  }

  /// The value in memory that may be used now.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  func memoryHit<Value: Sendable>(_ request: ResourceRequest, _ transform: ResourceTransform<Value>) throws(CacheError)
    -> Resource<Value>?
  {
    let clock = request.options.clock ?? configuration.clock
    let start = clock.uptime
    switch plainAnswer(to: request, transform, clock, startedAt: start) {
    case .hit(let resource): return resource
    case .miss: return nil
    case .undecided: return memoryHit(try ResolvedRequest(request, configuration, self), transform, startedAt: start)
    }
  }

  /// What memory says of a request that is as most are: a GET of what its URL names, by the usual policy, with nothing that an
  /// answer could be selected by.
  ///
  /// ``memoryHit(_:_:startedAt:)`` would say the same of the ``ResolvedRequest``, which takes several times as long to make as
  /// the answer does to find.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  private func plainAnswer<Value: Sendable>(
    to request: ResourceRequest, _ transform: ResourceTransform<Value>, _ clock: any CacheClock, startedAt start: Duration
  ) -> PlainAnswer<Value> {
    guard request.method == .get, request.body == nil, request.headerFields.isEmpty, request.options.key == nil,
      request.options.requestModifier == nil, configuration.requestModifier == nil,
      (request.options.policy ?? configuration.policy) == .standard, request.options.reads.contains(.memory),
      request.options.validator.resolved(configuration.validator) != nil,
      let store = request.options.memory.resolved(configuration.memory), let uri = ResourceID.plainURI(of: request.url)
    else { return .undecided }
    let memory = MemoryTier(store: store)
    let key = CacheKey(resource: ResourceID.make(uri: uri, partition: request.options.partition))
    guard let index = memory.index(of: key) else { return .miss }
    guard index.elements.count == 1, let known = index.elements.first, known.variant.isEmpty, known.isNamesake else {
      return .undecided
    }
    let (metadata, freshness, now) = (known.metadata, known.metadata.freshness, clock.now)
    let status = metadata.response.status.code
    guard metadata.expiration == nil, metadata.request.headerFields.isEmpty, status != 206,
      !(300..<400).contains(status),
      (request.options.acceptedStatuses ?? configuration.acceptedStatuses).contains(status)
    else { return .undecided }
    let formed = key.with(transform: transform.id)
    guard freshness.isFresh(at: now), let value = memory.value(of: formed, for: metadata, as: Value.self) else {
      return .miss
    }
    return .hit(
      Resource(
        value: value, url: request.url, response: metadata.response, source: .memory, age: freshness.age(at: now),
        timing: LoadTiming(total: clock.uptime - start), metrics: .nothing, key: formed, revision: metadata.revision,
        valueOrigin: transform.id.isEmpty ? .original : .memory))
  }

  /// The answer in memory, without any suspension.
  func memoryHit<Value: Sendable>(_ load: ResolvedRequest, _ transform: ResourceTransform<Value>, startedAt start: Duration)
    -> Resource<Value>?
  {
    guard load.reads.contains(.memory) else { return nil }
    let cache = TieredCache(load: load, resource: load.parts.resource)
    guard let candidate = cache.hit(load.head), let value = cache.value(of: candidate, transform: transform.id, as: Value.self)
    else {
      return nil
    }
    let fetched = LoadOutcome(
      .init(
        data: Data(), metadata: candidate.metadata, key: candidate.key.with(transform: transform.id),
        url: load.origin(of: candidate.metadata, for: load.head, at: load.url), source: .memory, validation: .notAttempted,
        valueOrigin: transform.id.isEmpty ? .original : .memory))
    return fetched.resource(value, clock: load.clock, startedAt: start)
  }

  /// The outcome of a load that needs nobody: a hit in memory, or a manager that is closed.
  func immediate<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>
  ) -> Result<Resource<Value>, CacheError>? {
    let start = load.clock.uptime
    let result: Result<Resource<Value>, CacheError>
    if coalescer.isClosed {
      result = .failure(load.managerIsClosed)
    } else if let hit = memoryHit(load, transform, startedAt: start) {
      result = .success(hit)
    } else {
      return nil
    }
    load.observeEnd(result, startedAt: start)
    return result
  }
}
