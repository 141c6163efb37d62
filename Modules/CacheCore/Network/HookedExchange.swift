package import HTTPTypes

/// A request that calls its ``DownloaderHooks`` in order and reports its end only once.
package final class HookedExchange: Sendable {
  private struct State {
    weak var hooks: (any DownloaderHooks)?
    var exchange: DownloadExchange
    var isFinished = false
  }

  private let state: Lock<State>

  package init(_ hooks: any DownloaderHooks, _ request: DownloadRequest) {
    state = Lock(State(hooks: hooks, exchange: DownloadExchange(request: request.head, attempt: request.attempt)))
  }

  var hooks: (any DownloaderHooks)? { state.withLock { $0.hooks } }
  var exchange: DownloadExchange { state.withLock { $0.exchange } }

  /// Makes the first call.
  package func willStart() { hooks?.willStart(exchange) }

  /// Makes the second and the third call. Returns the response with a body that makes the other calls. A refused response is
  /// cancelled.
  package func admit(_ response: DownloadResponse) async throws(CacheError) -> DownloadResponse {
    do {
      let replaces = try await judge(response.head)
      var admitted = response
      if replaces {
        admitted.head.headerFields[.contentLength] = nil
        admitted.head.headerFields[.acceptRanges] = "none"
      }
      let source = HookedBody(
        response.body.source, length: response.body.length, head: admitted.head, replaces: replaces, exchange: self)
      admitted.body = ResourceBody(length: replaces ? nil : response.body.length, source: source)
      return admitted
    } catch {
      response.body.source.cancel()
      finish(.failure(error))
      throw error
    }
  }

  /// Makes the fifth call. Later ends of the same request are not reported.
  package func finish(_ result: Result<HTTPResponse, CacheError>) {
    let isFirst = state.withLock { state in
      defer { state.isFinished = true }
      return !state.isFinished
    }
    if isFirst { hooks?.finished(exchange, with: result) }
  }

  /// Returns whether the bytes of the response may be replaced.
  private func judge(_ head: HTTPResponse) async throws(CacheError) -> Bool {
    guard let hooks else { return false }
    let exchange = exchange
    guard hooks.isValid(head.status, of: exchange) else {
      throw CacheError(.unacceptableStatus, reason: "a hook refused the status \(head.status.code)", response: head)
    }
    switch await hooks.mayContinue(head, of: exchange) {
    case .proceed: return false
    case .proceedReplacingBody: return true
    case .refuse(let reason): throw CacheError(.refused, reason: reason, response: head)
    }
  }
}
