package import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A request that calls its ``DownloaderHooks`` in order and reports its end only once.
package final class HookedExchange: Sendable {
  private struct State {
    var exchange: DownloadExchange
    var isFinished = false
    /// Whether the end of the body is not yet the end of the request, because a hook gets the whole body first.
    var isCollecting = false
  }

  private let hooks: DownloaderHooks
  private let state: Lock<State>
  /// Whether a hook replaces chunks, even if its target was released.
  private let replacesData: Bool
  /// Whether a hook replaces the whole body, even if its target was released.
  private let replacesBody: Bool

  /// - Parameter request: The request. It loses its `Range` if a hook needs the whole body.
  /// - Throws: ``CacheError/Code/invalidConfiguration`` if `bodyLimit` is negative.
  package init(_ hooks: DownloaderHooks, _ request: inout DownloadRequest) throws(CacheError) {
    try CacheError.require("bodyLimit", hooks.bodyLimit, in: 0...)
    self.hooks = hooks
    (replacesData, replacesBody) = (hooks.onDataReceived.hasHook, hooks.onBodyReceived.hasHook)
    if replacesBody { for name in [HTTPField.Name.range, .ifRange] { request.head.headerFields[name] = nil } }
    state = Lock(State(exchange: DownloadExchange(request: request.head, attempt: request.attempt)))
  }

  private var exchange: DownloadExchange { state.withLock { $0.exchange } }

  /// Makes the first call.
  package func willStart() { hooks.onRequestSent(exchange) }

  /// Makes the calls about the head and the whole body. Returns the response with a body that makes the other calls. A refused
  /// response is cancelled.
  ///
  /// - Parameter cancellation: Returns the reason of a cancellation, such as a time limit, if it is known.
  package func admit(
    _ response: DownloadResponse, cancellation: @Sendable () -> CacheError? = { nil }
  ) async throws(CacheError) -> DownloadResponse {
    do {
      let replaces = try await judge(response.head)
      var admitted = response
      if replaces || replacesBody && (response.head.status.kind == .successful || response.head.status == .notModified) {
        admitted.head.headerFields.describeReplacedBody()
      }
      let collects = try collects(response.head)
      if collects { state.withLock { $0.isCollecting = true } }
      // The request has ended, and no hook gets the bytes.
      if response.body.data != nil, !replaces, !replacesData, !collects {
        finish(.success(admitted.head))
        return admitted
      }
      let source = HookedBody(
        response.body.source, length: response.body.length, head: admitted.head, replaces: replaces, exchange: self)
      admitted.body = ResourceBody(length: replaces ? nil : response.body.length, source: source)
      if collects { try await collect(&admitted) }
      return admitted
    } catch {
      response.body.source.cancel()
      let reason = error.isCancellation ? cancellation() ?? error : error
      finish(.failure(reason))
      throw reason
    }
  }

  /// Returns the bytes for the reader in place of the next ones.
  func replace(_ data: Data) async throws(CacheError) -> Data {
    replacesData ? try await replaced(data, by: hooks.onDataReceived) : data
  }

  /// Makes the last call. Later ends of the same request are not reported.
  package func finish(_ result: Result<HTTPResponse, CacheError>) {
    let last: DownloadExchange? = state.withLock { state in
      guard !state.isFinished else { return nil }
      state.isFinished = true
      switch result {
      case .success(let head): state.exchange.response = head
      case .failure(let error): state.exchange.error = error
      }
      return state.exchange
    }
    if let last { hooks.onDownloadingFinished(last) }
  }

  /// Makes the last call at the end of the body, unless a hook gets the whole body first.
  func finishBody(_ result: Result<HTTPResponse, CacheError>) {
    if !state.withLock({ $0.isCollecting }) { finish(result) }
  }

  /// Returns whether the chunks of the response may be replaced by others of any size.
  private func judge(_ head: HTTPResponse) async throws(CacheError) -> Bool {
    let exchange = state.withLock { state in
      state.exchange.response = head
      return state.exchange
    }
    guard hooks.onValidStatusCode.call(exchange) ?? true else {
      throw CacheError(.unacceptableStatus, reason: "a hook refused the status \(head.status.code)", response: head)
    }
    switch try await hooks.onResponseReceived.callAsync(exchange) ?? .proceed {
    case .proceed: return false
    case .proceedReplacingBody: return true
    case .refuse(let reason): throw CacheError(.refused, reason: reason, response: head)
    }
  }

  /// Returns whether a hook gets the whole body of the response.
  private func collects(_ head: HTTPResponse) throws(CacheError) -> Bool {
    guard replacesBody, head.status.kind == .successful, exchange.request.method != .head else { return false }
    guard head.status != .partialContent else {
      throw CacheError(
        .malformedResponse, reason: "a part of a body was received for a request without Range, and a hook needs the whole body",
        response: head)
    }
    return head.status != .noContent && head.status != .resetContent
  }

  private func collect(_ response: inout DownloadResponse) async throws(CacheError) {
    let whole = try await replaced(response.body.collect(limit: hooks.bodyLimit), by: hooks.onBodyReceived)
    response.head.headerFields[.contentLength] = "\(whole.count)"
    response.body = ResourceBody(whole)
    finish(.success(response.head))
  }

  /// - Throws: ``CacheError/Code/refused`` if the target of the hook was released. The reader must not get the bytes as they are,
  ///   and a cache must not store them.
  private func replaced(
    _ data: Data, by hook: AsyncDelegate<DownloadExchange, Data>
  ) async throws(CacheError) -> Data {
    var exchange = exchange
    exchange.data = data
    guard let new = try await hook.callAsync(exchange) else {
      throw CacheError(.refused, reason: "the target of the hook that replaces the body was released")
    }
    if Task.isCancelled { throw .cancelled }
    return new
  }
}

extension HTTPFields {
  /// Changes the fields of a head whose body is replaced. Its length, its digests and its ranges were those of the server's body.
  fileprivate mutating func describeReplacedBody() {
    for name in ["Content-Length", "Content-Digest", "Repr-Digest", "Content-MD5", "Digest"].compactMap({ HTTPField.Name($0) }) {
      self[name] = nil
    }
    self[.acceptRanges] = "none"
  }
}
