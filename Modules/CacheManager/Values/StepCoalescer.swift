internal import CacheCore

/// The running steps of transforms. Transforms of one body that begin with the same steps, and are requested at the same time,
/// share these steps.
///
/// The result of a step is passed to its waiters and is not cached.
final class StepCoalescer: Sendable {
  /// The identity of a step's result: the body, the steps up to this one, the type of the value and the executor.
  struct ID: Hashable, Sendable {
    let revision: Revision
    let stem: String
    let value: ObjectIdentifier
    let executor: ObjectIdentifier?

    init<Value>(_ value: Value.Type, of revision: Revision, stem: String, on executor: (any TaskExecutor)?) {
      self.revision = revision
      self.stem = stem
      self.value = ObjectIdentifier(value)
      self.executor = executor.map { ObjectIdentifier($0) }
    }
  }

  private struct Work<Value: Sendable>: Sendable {
    /// The load that runs the step.
    let load: LoadID
    /// The priority of the task that runs the step.
    let priority: LoadPriority
    let end = OneShotBroadcast<Result<Value, CacheError>>()
  }

  private let running = Lock<[ID: any Sendable]>([:])

  /// Returns the result of a step. If the step is already running, the caller waits for its result, and the step becomes as
  /// urgent as the caller. Otherwise the caller runs the step with `make`.
  ///
  /// - Parameters:
  ///   - id: The step.
  ///   - load: The caller's load.
  ///   - priority: The priority of the caller.
  ///   - joining: Called with the load that runs the step, before the caller waits for it.
  ///   - make: Runs the step.
  /// - Throws: The error of the step. A cancellation affects only the cancelled caller. If the caller that runs the step is
  ///   cancelled, one of its waiters runs the step instead.
  func outcome<Value: Sendable>(
    of id: ID, for load: LoadID, _ priority: LoadPriority, joining: (LoadID) -> Void, _ make: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    while true {
      let (work, isOwn) = running.withLock { running -> (Work<Value>, Bool) in
        if let other = running[id] as? Work<Value> { return (other, false) }
        let own = Work<Value>(load: load, priority: priority)
        running[id] = own
        return (own, true)
      }
      guard isOwn else {
        let observation = priority.onRaise { [owner = work.priority] level in owner.raise(to: level) }
        defer { observation.cancel() }
        // The raise follows the registration, because the observer does not receive earlier raises.
        work.priority.raise(to: priority.level)
        joining(work.load)
        guard let result = await work.end.value() else { throw .cancelled }
        if case .failure(let error) = result, error.isCancellation { continue }
        return try result.get()
      }
      let result: Result<Value, CacheError>
      do throws(CacheError) {
        result = .success(try await make())
      } catch {
        result = .failure(error)
      }
      _ = running.withLock { $0.removeValue(forKey: id) }
      work.end.make(result)
      return try result.get()
    }
  }
}
