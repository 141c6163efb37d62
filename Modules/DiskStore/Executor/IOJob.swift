/// A piece of work on its way through the executor.
struct IOJob: Sendable {
  /// The resource that it is about, where an order is to be kept.
  let resource: UInt64?
  /// Who does it; nil: the upkeep.
  let kind: WorkerPool.Kind?
  /// Bytes that are to be stored.
  let bytes: Int
  /// Returns what tells of its end.
  let work: @Sendable () -> @Sendable () -> Void

  init(_ lane: IOExecutor.Lane, _ work: @escaping @Sendable () -> @Sendable () -> Void) {
    self.work = work
    switch lane {
    case .entry(let resource): (self.resource, kind, bytes) = (resource, .looking, 0)
    case .storing(let resource, let bytes): (self.resource, kind, self.bytes) = (resource, .storing, bytes)
    case .unordered: (resource, kind, bytes) = (nil, .looking, 0)
    case .upkeep: (resource, kind, bytes) = (nil, nil, 0)
    }
  }
}
