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

extension DownloadResponse {
  /// Returns the response with the time that it waited before it was sent, in its metrics.
  func queued(for waited: Duration) -> DownloadResponse {
    guard waited > .zero else { return self }
    let measured = metrics
    var response = self
    response.metrics = {
      var metrics = measured()
      metrics.queued = (metrics.queued ?? .zero) + waited
      metrics.total = metrics.total.map { $0 + waited }
      return metrics
    }
    return response
  }
}

extension DownloadRequest {
  /// Returns the request with the wait subtracted from its time limit, which starts at the call.
  ///
  /// - Throws: `CacheError.Code.timedOut` if no time is left.
  func afterWaiting(_ waited: Duration) throws(CacheError) -> DownloadRequest {
    guard let timeout, waited > .zero else { return self }
    guard waited < timeout else { throw .overdue(timeout) }
    var request = self
    request.timeout = timeout - waited
    return request
  }
}

extension CacheError {
  static func overdue(_ limit: Duration) -> CacheError {
    CacheError(.timedOut, reason: "the request waited in the queue longer than its timeout of \(limit)")
  }
}
