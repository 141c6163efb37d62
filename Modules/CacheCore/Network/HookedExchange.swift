package import HTTPTypes

/// One request on its way past ``DownloaderHooks``, for engines and for what goes around them: makes the calls, in order, and the
/// last ones once.
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

  /// The first call: the request as it goes out.
  package func willStart() async throws(CacheError) -> HTTPRequest {
    guard let hooks else { return exchange.request }
    do {
      let request = try await hooks.willStart(exchange)
      state.withLock { $0.exchange.request = request }
      return request
    } catch {
      finish(.failure(error))
      throw error
    }
  }

  /// The second and third call, and what the others need. An answer that is refused is cancelled.
  package func admit(
    _ response: DownloadResponse, sideEffects: [DataSideEffect] = []
  ) async throws(CacheError) -> DownloadResponse {
    do {
      let replaces = try await judge(response.head)
      var admitted = response
      if replaces {
        admitted.head.headerFields[.contentLength] = nil
        admitted.head.headerFields[.acceptRanges] = "none"
      }
      let source = HookedBody(
        response.body.source, length: response.body.length, head: admitted.head, replaces: replaces, exchange: self,
        sideEffects: sideEffects)
      admitted.body = ResourceBody(length: replaces ? nil : response.body.length, source: source)
      return admitted
    } catch {
      response.body.source.cancel()
      finish(.failure(error))
      throw error
    }
  }

  /// The fifth call, once, whoever comes first.
  package func finish(_ result: Result<HTTPResponse, CacheError>) {
    let isFirst = state.withLock { state in
      defer { state.isFinished = true }
      return !state.isFinished
    }
    if isFirst { hooks?.finished(exchange, with: result) }
  }

  /// Whether the answer's bytes may be replaced.
  private func judge(_ head: HTTPResponse) async throws(CacheError) -> Bool {
    guard let hooks else { return false }
    let exchange = exchange
    guard hooks.isValid(head.status, of: exchange) else {
      throw CacheError(
        .unacceptableStatus, reason: "a hook takes no answer with status \(head.status.code)", status: head.status.code)
    }
    switch await hooks.mayContinue(head, of: exchange) {
    case .proceed: return false
    case .proceedReplacingBody: return true
    case .refuse(let reason): throw CacheError(.refused, reason: reason, status: head.status.code)
    }
  }
}
