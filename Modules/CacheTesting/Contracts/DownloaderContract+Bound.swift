internal import CacheCore

extension DownloaderContract {
  /// Runs an operation and abandons it after a time limit, so that a hang fails one test instead of blocking the suite.
  ///
  /// A task group would wait for the hanging child. Therefore the operation runs in an unstructured task, which is
  /// cancelled and abandoned.
  ///
  /// - Throws: The error of the operation, or a violation that names `what` after the time limit.
  static func withBound<Value: Sendable>(
    _ bound: Duration, _ what: String, _ operation: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let outcome = WatchedState<Result<Value, any Error>?>(nil)
    let work = Task {
      do {
        let value = try await operation()
        outcome.update { $0 = $0 ?? .success(value) }
      } catch {
        outcome.update { $0 = $0 ?? .failure(error) }
      }
    }
    let alarm = Task {
      guard (try? await Task.sleep(for: bound)) != nil else { return }
      outcome.update { $0 = $0 ?? .failure(ContractViolation("\(what) did not end within \(bound)")) }
    }
    await outcome.wait { $0 != nil }
    alarm.cancel()
    work.cancel()
    guard let result = outcome.read({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}
