internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension LoadCoordinator {
  /// The answer that the durable store has at hand, where it may be used as it is: a coalesced load would find the same, and
  /// costs several times as much as the answer does. Who asks for the same meanwhile finds it in memory.
  func responseWithoutWaiting<Value: Sendable>(_ load: ResolvedRequest, _ transform: ResourceTransform<Value>) -> Resource<Value>?
  {
    guard Value.self == Data.self, transform.id.isEmpty, !load.isProvided, load.alternatives.isEmpty, load.target.isMemory,
      load.demand == nil, !coalescer.isClosed, !Task.isCancelled
    else { return nil }
    let start = load.clock.uptime
    let cache = TieredCache(load: load, resource: load.parts.resource)
    guard let candidate = cache.responseWithoutWaiting(to: load.head), let data = candidate.data, let value = data as? Value
    else {
      return nil
    }
    cache.promote(data, candidate)
    let fetched = LoadOutcome(
      .init(
        data: data, metadata: candidate.metadata, key: candidate.key,
        url: load.origin(of: candidate.metadata, for: load.head, at: load.url), source: .disk, validation: .notAttempted))
    let resource = fetched.resource(value, clock: load.clock, startedAt: start)
    load.observeEnd(.success(resource), startedAt: start)
    return resource
  }
}
