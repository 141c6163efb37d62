internal import CacheCore

extension DownloadResponse {
  /// The same answer, whose metrics know that it had to wait before it was asked for.
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
  /// The same request, after so long a wait: its own limit runs from the call on.
  ///
  /// - Throws: `CacheError.Code.timedOut` when nothing of it is left.
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
    CacheError(.timedOut, reason: "it waited for its turn longer than the \(limit) that the request may take")
  }
}
