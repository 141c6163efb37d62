/// A job in the executor.
struct IOJob: Sendable {
  /// The resource of the job, if its order matters.
  let resource: UInt64?
  /// The kind of worker that runs it, or `nil` for the maintenance thread.
  let kind: WorkerPool.Kind?
  /// The number of bytes to write.
  let bytes: Int
  /// Runs the job and returns a closure that reports its result.
  let work: @Sendable () -> @Sendable () -> Void

  init(_ lane: IOExecutor.Lane, _ work: @escaping @Sendable () -> @Sendable () -> Void) {
    self.work = work
    switch lane {
    case .entry(let resource): (self.resource, kind, bytes) = (resource, .looking, 0)
    case .storing(let resource, let bytes): (self.resource, kind, self.bytes) = (resource, .storing, bytes)
    case .unordered: (resource, kind, bytes) = (nil, .looking, 0)
    case .maintenance: (resource, kind, bytes) = (nil, nil, 0)
    }
  }
}
