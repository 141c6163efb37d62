internal import CacheCore

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
