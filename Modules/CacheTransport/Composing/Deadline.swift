internal import CacheCore

/// A time limit for an operation that ends when its task is cancelled.
struct Deadline: Sendable {
  /// The time limit, or `nil` for none.
  let limit: Duration?
  let clock: any CacheClock
  /// The error thrown after the time limit.
  let error: CacheError

  /// Returns the result of `operation`, unless the time limit passes first.
  func run<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    guard let limit else { return try await operation() }
    let (clock, error) = (clock, error)
    let result = await withTaskGroup(of: Result<Value, CacheError>.self) { group in
      group.addTask {
        do throws(CacheError) {
          return .success(try await operation())
        } catch {
          return .failure(error)
        }
      }
      group.addTask {
        do throws(CancellationError) {
          try await clock.sleep(for: limit)
          return .failure(error)
        } catch {
          return .failure(.cancelled)
        }
      }
      let first = await group.next() ?? .failure(.cancelled)
      group.cancelAll()
      return first
    }
    return try result.get()
  }
}
