internal import CacheCore

extension DownloaderContract {
  /// Runs an operation, and gives it up when it takes too long: a hang is a failure then, and not a suite that never ends.
  ///
  /// A task group would wait for the very child that hangs, so the operation runs in a task of its own, which is cancelled and
  /// left behind.
  ///
  /// - Throws: what the operation throws, or a violation that says `what` took too long.
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
      outcome.update { $0 = $0 ?? .failure(ContractViolation("\(what) has not ended after \(bound)")) }
    }
    await outcome.wait { $0 != nil }
    alarm.cancel()
    work.cancel()
    guard let result = outcome.read({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}
