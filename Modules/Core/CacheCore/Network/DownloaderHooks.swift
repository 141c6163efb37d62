public import HTTPTypes
private import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Hooks that observe downloads, and accept, refuse or replace their responses. Each hook is a box that is empty at first.
///
/// For each request, in this order:
///
/// 1. ``onRequestSent`` is called with the request as it is sent.
/// 2. ``onValidStatusCode`` is called with the head of the response, and accepts or refuses its status.
/// 3. ``onResponseReceived`` is called with the head, and may refuse the response before its body is read.
/// 4. ``onDataReceived`` is called with each chunk before the reader gets it, and may replace or refuse it.
/// 5. ``onBodyReceived`` is called with the whole body before the reader gets any of it, and may replace or refuse it.
/// 6. ``onDownloadingFinished`` is called once for each call of ``onRequestSent``.
///
/// The calls for one request never overlap; those for different requests may. A hook that delays or refuses one request does not
/// affect other requests. A hook that suspends must end when its task is cancelled.
///
/// To change or refuse a request before it is sent, use a ``RequestInterceptor``.
///
/// ```swift
/// let hooks = DownloaderHooks {
///   $0.onResponseReceived = AsyncDelegate { exchange in
///     exchange.response?.headerFields[.contentType]?.hasPrefix("image/") == true ? .proceed : .refuse("not an image")
///   }
///   $0.onDownloadingFinished.delegate(on: watcher) { (watcher, exchange) in watcher.note("\(exchange.request)") }
/// }
/// let watched = engine.hooked(by: hooks)
/// ```
///
/// - Important: A hook with a target does not retain it, and after its release the hook counts as not set. The exceptions are
///   ``onDataReceived`` and ``onBodyReceived``: the bytes can no longer be replaced, so each download that would call them fails
///   with ``CacheError/Code/refused``. Give hooks that judge a response or replace bytes a target that lives as long as the
///   downloader, or a closure without a target. The cache above stores the replaced bytes, and serves them to every request with
///   the same key.
public struct DownloaderHooks: Sendable {
  /// Called before a request is sent. `DownloadExchange.request` includes every field that the engine's settings add.
  public var onRequestSent = Delegate<DownloadExchange, Void>()

  /// Returns whether a response with this status is accepted. If not, the download ends with
  /// ``CacheError/Code/unacceptableStatus`` and the body is not read. Refusing a 304 breaks revalidation.
  public var onValidStatusCode = Delegate<DownloadExchange, Bool>()

  /// Returns whether the download continues with the body of this response.
  public var onResponseReceived = AsyncDelegate<DownloadExchange, DownloadVerdict>()

  /// Receives the next bytes of the body (`DownloadExchange.data`), which are never empty.
  ///
  /// It returns the bytes for the reader: the given ones, or the same number of other bytes. After
  /// ``DownloadVerdict/proceedReplacingBody`` it may return any number of bytes, including none. An error refuses the bytes, ends
  /// the body and stops the transfer.
  public var onDataReceived = AsyncDelegate<DownloadExchange, Data>()

  /// Receives the whole body (`DownloadExchange.data`), and returns the body for the reader. An error refuses it.
  ///
  /// For bodies that cannot be processed chunk by chunk, such as those of a block cipher or an archive. The download returns when
  /// the hook has, so its caller sees no progress meanwhile. The head then has the `Content-Length` of the returned body.
  ///
  /// - The hook gets the bodies of successful responses (2xx), including empty ones. There is none for HEAD, 204, 205 and 304.
  ///   The bodies of other statuses, such as error pages, are passed on without this call.
  /// - A part of a body cannot be processed. `Range` and `If-Range` are therefore removed from the request, and `Accept-Ranges`
  ///   of the response becomes `none`. A server that sends a 206 nevertheless causes ``CacheError/Code/malformedResponse``.
  /// - The head of a response to HEAD, or of a 304, loses its `Content-Length`, because it would be that of the server's body.
  /// - Trailers are dropped. Digests of the server's body (`Content-Digest`, `Repr-Digest`, `Content-MD5`, `Digest`) are removed.
  public var onBodyReceived = AsyncDelegate<DownloadExchange, Data>()

  /// The largest body, in bytes, that is collected for ``onBodyReceived``, at least zero. A larger one ends the download with
  /// ``CacheError/Code/bodyTooLarge``. The default is 64 MiB. With a negative number, requests fail with
  /// ``CacheError/Code/invalidConfiguration`` before they are sent. A manager's memory budget does not include this memory.
  public var bodyLimit: Int64 = 64 << 20

  /// Called once for each call of ``onRequestSent``, when the request has ended, with the head of a complete response or with
  /// `DownloadExchange.error`. A body that is released early counts as cancelled. The call may come from the `deinit` of the
  /// body, on any thread.
  public var onDownloadingFinished = Delegate<DownloadExchange, Void>()

  /// Creates hooks that do nothing.
  public init() {}

  /// Creates hooks and sets some of them.
  public init(_ change: (inout DownloaderHooks) -> Void) { change(&self) }

  /// Whether a download must call or obey a hook. Hooks that replace bytes count even if their target was released, because the
  /// reader must not get the bytes as they are.
  package var isSet: Bool {
    onRequestSent.isSet || onValidStatusCode.isSet || onResponseReceived.isSet || onDataReceived.hasHook
      || onBodyReceived.hasHook || onDownloadingFinished.isSet
  }
}

/// A hook's decision about a response.
public enum DownloadVerdict: Hashable, Sendable {
  /// Accepts the response with the bytes that arrive.
  case proceed
  /// Accepts the response and allows ``DownloaderHooks/onDataReceived`` to change the number of bytes.
  ///
  /// The header loses its `Content-Length`. Its `Accept-Ranges` becomes `none`, because a range of the server's bytes is not a
  /// range of the replaced ones.
  case proceedReplacingBody
  /// Refuses the response. The body is not read, and the download ends with ``CacheError/Code/refused`` and this reason.
  case refuse(String)
}

/// A request and its response, as far as they are known when ``DownloaderHooks`` are called.
public struct DownloadExchange: Sendable, Identifiable {
  /// An identifier that is unique in this process.
  public let id: UInt64
  /// The request that is sent.
  public let request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public let attempt: Int
  /// The status and the fields of the response, or `nil` before they have arrived.
  public internal(set) var response: HTTPResponse?
  /// The bytes that a call is about: a chunk, or the whole body. Empty in the other calls.
  public internal(set) var data = Data()
  /// The error with which the request ended, or `nil` if it has not ended or the response is complete.
  public internal(set) var error: CacheError?

  /// Creates an exchange for a test of a hook.
  public init(
    request: HTTPRequest, attempt: Int = 1, response: HTTPResponse? = nil, data: Data = Data(), error: CacheError? = nil
  ) {
    id = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
    self.request = request
    self.attempt = attempt
    self.response = response
    self.data = data
    self.error = error
  }

  private static let serial = Atomic<UInt64>(0)
}

/// The downloader that ``Downloader/hooked(by:)`` returns.
package final class HookedDownloader: Downloader {
  package let id = ComponentID.unique(HookedDownloader.self)
  private let base: any Downloader
  private let hooks: DownloaderHooks

  package init(_ base: any Downloader, hooks: DownloaderHooks) { (self.base, self.hooks) = (base, hooks) }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard hooks.isSet else { return try await base.download(request) }
    var request = request
    let exchange = try HookedExchange(hooks, &request)
    exchange.willStart()
    let response: DownloadResponse
    do {
      response = try await base.download(request)
    } catch {
      exchange.finish(.failure(error))
      throw error
    }
    return try await exchange.admit(response)
  }
}

extension Downloader {
  /// Returns this downloader with hooks. The result's identity is unique, because hooks cannot be compared.
  ///
  /// ```swift
  /// var hooks = DownloaderHooks()
  /// hooks.onRequestSent.delegate(on: watcher) { (watcher, exchange) in watcher.note("\(exchange.request)") }
  /// let watched = engine.hooked(by: hooks)
  /// ```
  ///
  /// - Parameter hooks: The hooks, as they are now. Their targets are referenced weakly. After the release of a target, its hooks
  ///   are not called, and those that replace bytes refuse each download (``DownloaderHooks``).
  public func hooked(by hooks: DownloaderHooks) -> some Downloader { HookedDownloader(self, hooks: hooks) }
}

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
  private func replaced(_ data: Data, by hook: AsyncDelegate<DownloadExchange, Data>) async throws(CacheError) -> Data {
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

/// A body that passes its chunks through hooks. The hooks run in the reader's task.
package final class HookedBody: ResourceBody.Source {
  private struct State {
    /// The number of bytes that the engine delivered.
    var taken: Int64 = 0
    var outcome: Outcome?
  }

  private enum Outcome { case complete, failed(CacheError) }

  private let base: any ResourceBody.Source
  private let length: Int64?
  private let head: HTTPResponse
  private let replaces: Bool
  private let exchange: HookedExchange
  private let state = Lock(State())

  /// - Parameters:
  ///   - length: The number of bytes that `base` delivers, or `nil` if it is unknown.
  ///   - replaces: Whether the hooks may return a different number of bytes than they receive.
  package init(_ base: any ResourceBody.Source, length: Int64?, head: HTTPResponse, replaces: Bool, exchange: HookedExchange) {
    self.base = base
    self.length = length
    self.head = head
    self.replaces = replaces
    self.exchange = exchange
  }

  /// A body that is released counts as complete if all announced bytes were read.
  deinit { exchange.finishBody(isWhole ? .success(head) : .failure(.cancelled)) }

  package func next() async throws(CacheError) -> Data? {
    switch state.withLock({ $0.outcome }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    while let data = try await nextOfBase() {
      do {
        let passed = try await pass(data)
        if !passed.isEmpty { return passed }
      } catch { throw fail(error) }
    }
    return end()
  }

  private func nextOfBase() async throws(CacheError) -> Data? {
    do {
      return try await base.next()
    } catch {
      // Two tasks read at the same time. The read of the first one continues.
      guard error.code != .misuse || state.withLock({ $0.outcome }) != nil else { throw error }
      throw fail(error)
    }
  }

  private func fail(_ error: CacheError) -> CacheError {
    state.withLock { $0.outcome = .failed(error) }
    base.cancel()
    exchange.finishBody(.failure(error))
    return error
  }

  package func cancel() {
    base.cancel()
    if !isWhole { exchange.finishBody(.failure(.cancelled)) }
  }

  package var trailers: HTTPFields? { base.trailers }

  private var isWhole: Bool {
    state.withLock { state in
      if case .complete? = state.outcome { return true }
      return length == state.taken
    }
  }

  private func pass(_ data: Data) async throws(CacheError) -> Data {
    let passed = try await exchange.replace(data)
    guard replaces || passed.count == data.count else {
      throw CacheError(
        .invalidConfiguration, reason: "a hook returned \(passed.count) bytes for \(data.count) without proceedReplacingBody")
    }
    state.withLock { $0.taken += Int64(data.count) }
    return passed
  }

  private func end() -> Data? {
    state.withLock { $0.outcome = .complete }
    exchange.finishBody(.success(head))
    return nil
  }
}
