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
