internal import CacheCore

/// Steps of transforms that are being carried out right now. Transforms of one body that begin alike, and are asked for at once,
/// share what they have in common.
///
/// What comes of a step is handed to those who wait for it and kept nowhere.
final class StepCoalescer: Sendable {
  /// What tells a step's outcome apart: the body, the steps up to here, and where they are carried out.
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
    /// Of who carries it out.
    let priority: LoadPriority
    let end = OneShotBroadcast<Result<Value, CacheError>>()
  }

  private let running = Lock<[ID: any Sendable]>([:])

  /// The outcome of a step: another one's, where it is under way, which becomes as urgent as who waits for it; else what `make`
  /// brings.
  ///
  /// - Parameters:
  ///   - id: the step.
  ///   - priority: of who asks.
  ///   - joining: called before another one's outcome is waited for.
  ///   - make: carries the step out.
  /// - Throws: what the step throws. A cancellation is its own alone: where the one who carries it out is cancelled, another
  ///   takes its place.
  func outcome<Value: Sendable>(
    of id: ID, _ priority: LoadPriority, joining: () -> Void, _ make: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    while true {
      let (work, isOwn) = running.withLock { running -> (Work<Value>, Bool) in
        if let other = running[id] as? Work<Value> { return (other, false) }
        let own = Work<Value>(priority: priority)
        running[id] = own
        return (own, true)
      }
      guard isOwn else {
        let observation = priority.onRaise { [owner = work.priority] level in owner.raise(to: level) }
        defer { observation.cancel() }
        // After the observer is there: an earlier raise was not told to it.
        work.priority.raise(to: priority.level)
        joining()
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
