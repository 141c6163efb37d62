public import CacheCore
public import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The delegate of one `URLSession`. It passes each event on to its ``SessionDataTask``.
///
/// ``SessionDownloader`` has a session with such a delegate. With this class, a session of your own gets what the downloader has:
/// a table of its transfers, responses whose bytes are buffered until they are read, immediate cancellation, challenges, and
/// trusted hosts. It follows no redirect, so the 3xx is the response.
///
/// ```swift
/// let delegate = SessionDelegate(trustedHosts: ["printer.local"])
/// delegate.challengeHandler.delegate(on: keychain) { (keychain, challenge) in
///   await keychain.credential(for: challenge.host)
/// }
/// let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
/// let response = try await delegate.start(urlRequest, in: session).response()
/// let data = try await response.body.collect(limit: 1 << 20)
/// session.finishTasksAndInvalidate()  // the session retains its delegate until then
/// ```
///
/// Use a delegate for one session, and keep the cache of that session off (`urlCache = nil`) if a cache of this package is above
/// it. The session must have no delegate queue or a serial one.
///
/// The session calls it on its own serial queue. Only the methods with completion handlers are implemented, because Foundation on
/// Linux never calls the `async` ones.
// Proof of `@unchecked Sendable`: every stored property is a constant of a Sendable type.
public final class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  /// An end that the session reports.
  enum Event: Sendable {
    /// A transfer is complete (`nil`), has failed or was cancelled.
    case transferEnded(URL, CacheError?)
    /// The session has ended, after its last transfer. The error is `nil` if the session was ended on purpose.
    case sessionEnded((any Error)?)
  }

  /// The maximum number of calls to the handler for one request or connection.
  static let attemptsPerChallenge = 3

  private struct Entry: Sendable {
    var transfer: SessionDataTask
    var clock: any CacheClock
  }

  private let table = Lock<[ObjectIdentifier: Entry]>([:])
  private let handler: ReplaceableSetting<AuthenticationChallenge.Handler>
  private let trustedHosts: TrustedHosts
  private let routing: ProxyRouting
  private let observer: (@Sendable (Event) -> Void)?

  /// Creates a delegate for a session of your own.
  ///
  /// - Parameters:
  ///   - challengeHandler: The hook that returns credentials, see ``challengeHandler``.
  ///   - trustedHosts: The hosts whose TLS certificates are not verified, see
  ///     ``SessionDownloader/Configuration/trustedHosts``. Apple platforms only.
  public convenience init(challengeHandler: AuthenticationChallenge.Handler = .init(), trustedHosts: Set<String> = []) {
    self.init(
      ReplaceableSetting(challengeHandler), trustedHosts: trustedHosts, routing: ProxyRouting(.platform), observer: nil)
  }

  /// - Parameter observer: A closure called at each end.
  init(
    _ handler: ReplaceableSetting<AuthenticationChallenge.Handler>, trustedHosts: Set<String>, routing: ProxyRouting,
    observer: (@Sendable (Event) -> Void)?
  ) {
    self.handler = handler
    self.trustedHosts = TrustedHosts(trustedHosts)
    self.routing = routing
    self.observer = observer
  }

  /// The hook that returns the credential for a challenge, up to three times per request. Without a credential, the 401 or 407 is
  /// the response. An error ends the transfer. A response to a credential gets `Cache-Control: no-store`, because a cache cannot
  /// see the credential. On Linux the hook is called for Basic (RFC 7617) only.
  public var challengeHandler: AuthenticationChallenge.Handler {
    get { handler.value }
    set { handler.value = newValue }
  }

  // MARK: Transfers

  /// Sends a request in a session whose delegate this is.
  ///
  /// The transfer runs to its end, also if its response is never taken.
  ///
  /// - Parameters:
  ///   - request: The request. Its fields are sent as they are, and the session applies its time-out. Foundation on Linux traps
  ///     if that is infinite.
  ///   - session: The session. Foundation on Linux traps if it was invalidated.
  ///   - bufferLimit: The maximum number of received bytes that are buffered for a slow reader, at least 1, or `nil` for no
  ///     limit. A reader that exceeds it fails with `CacheError.Code.readerTooSlow`.
  /// - Throws: `CacheError.Code.misuse` if the session has another delegate, `CacheError.Code.invalidURL` for a request without
  ///   an absolute URL, and `CacheError.Code.invalidConfiguration` for a `bufferLimit` below 1.
  public func start(
    _ request: URLRequest, in session: URLSession, bufferLimit: Int? = 512 << 20
  ) throws(CacheError) -> SessionDataTask {
    let plan = try plan(for: request, in: session, bufferLimit)
    return try start(session.dataTask(with: request), plan, in: session, bufferLimit: bufferLimit)
  }

  /// Resumes a task of a session whose delegate this is, such as an upload.
  ///
  /// - Parameters:
  ///   - task: The task, which was not resumed before.
  ///   - session: The session of the task.
  ///   - bufferLimit: The maximum number of received bytes that are buffered for a slow reader, at least 1, or `nil` for no
  ///     limit.
  /// - Throws: `CacheError.Code.misuse` if the session has another delegate or the task was started before,
  ///   `CacheError.Code.invalidURL` for a request without an absolute URL, and `CacheError.Code.invalidConfiguration` for a
  ///   `bufferLimit` below 1.
  public func start(
    _ task: URLSessionDataTask, in session: URLSession, bufferLimit: Int? = 512 << 20
  ) throws(CacheError) -> SessionDataTask {
    guard let request = task.originalRequest else { throw CacheError(.invalidURL, reason: "the task has no request") }
    return try start(task, plan(for: request, in: session, bufferLimit), in: session, bufferLimit: bufferLimit)
  }

  private func plan(
    for request: URLRequest, in session: URLSession, _ bufferLimit: Int?
  ) throws(CacheError) -> TransferPlan {
    try CacheError.require("bufferLimit", bufferLimit, in: 1...)
    guard session.delegate === self else {
      throw CacheError(.misuse, reason: "the session has another delegate, or was invalidated")
    }
    guard let url = request.url else { throw CacheError(.invalidURL, reason: "the request has no URL") }
    let method = HTTPRequest.Method(request.httpMethod ?? "GET") ?? .get
    // The session's own time-out applies. It may be infinite, which is no `Duration`.
    return TransferPlan(
      head: try HTTPRequest(resource: url, method: method), url: url, body: .none, idleTimeout: .zero, networkAccess: .all,
      proxy: try routing.proxy(for: url))
  }

  private func start(
    _ task: URLSessionDataTask, _ plan: TransferPlan, in session: URLSession, bufferLimit: Int?
  ) throws(CacheError) -> SessionDataTask {
    let clock = SystemClock()
    let transfer = SessionDataTask(
      task, queue: session.delegateQueue, plan: plan, bufferLimit: bufferLimit, startedAt: clock.uptime
    ) { [self] transfer, error in unregister(transfer, error) }
    guard task.state == .suspended, register(transfer, clock: clock) else {
      throw CacheError(.misuse, reason: "the task was started before")
    }
    transfer.resume()
    return transfer
  }

  /// The transfers that have not ended.
  public var transfers: [SessionDataTask] {
    // The end of a transfer is visible before the transfer leaves the table.
    table.withLock { $0.values.map(\.transfer) }.filter { !$0.hasEnded }
  }

  /// Returns the running transfer of a task, or `nil` if there is none.
  public func transfer(of task: URLSessionTask) -> SessionDataTask? {
    entry(of: task).flatMap { $0.transfer.hasEnded ? nil : $0.transfer }
  }

  private func entry(of task: URLSessionTask) -> Entry? { table.withLock { $0[ObjectIdentifier(task)] } }

  /// Adds a transfer. Returns `false` if its task has one already.
  ///
  /// - Parameter clock: The clock of the downloader.
  @discardableResult
  func register(_ transfer: SessionDataTask, clock: any CacheClock) -> Bool {
    table.withLock { table in
      let id = ObjectIdentifier(transfer.task)
      guard table[id] == nil else { return false }
      table[id] = Entry(transfer: transfer, clock: clock)
      return true
    }
  }

  /// Removes a transfer that has ended. Later events of its task are ignored.
  func unregister(_ transfer: SessionDataTask, _ error: CacheError?) {
    let removed = table.withLock { $0.removeValue(forKey: ObjectIdentifier(transfer.task)) }
    guard removed != nil else { return }
    observer?(.transferEnded(transfer.url, error))
  }

  private func publish(_ events: [SessionDataTask.Event], of transfer: SessionDataTask) {
    for event in events where !transfer.hasEnded { transfer.publish(event) }
  }

  // MARK: URLSessionDataDelegate

  /// Ends the transfers that the session has not ended itself.
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    for transfer in transfers { transfer.finish(CacheError(.closed, reason: "the session was invalidated", underlying: error)) }
    observer?(.sessionEnded(error))
  }

  /// Passes the head of a response on.
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    guard let entry = entry(of: dataTask) else { return completionHandler(.cancel) }
    let transfer = entry.transfer
    do throws(CacheError) {
      guard let response = response as? HTTPURLResponse else {
        throw CacheError(.malformedResponse, reason: "the response is not HTTP")
      }
      let events = try transfer.receive(response, at: entry.clock.uptime, holdsUnauthorized: holdsUnauthorized)
      publish(events, of: transfer)
    } catch {
      transfer.finish(error, stopping: true)
    }
    // Linux ignores the disposition, so a transfer that failed above is also cancelled.
    completionHandler(transfer.hasEnded ? .cancel : .allow)
  }

  /// Passes received bytes on.
  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let entry = entry(of: dataTask) else { return }
    let uptime = entry.clock.uptime
    // The fast path: most chunks arrive while nothing is held back.
    if entry.transfer.pass(data, at: uptime) { return }
    do throws(CacheError) {
      publish(try entry.transfer.receive(data, at: uptime), of: entry.transfer)
    } catch {
      entry.transfer.finish(error, stopping: true)
    }
  }

  /// Ends a transfer.
  public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let entry = entry(of: task) else { return }
    publish(entry.transfer.receiveEnd(error, response: task.response, at: entry.clock.uptime), of: entry.transfer)
  }

  /// Notes that bytes of a request were sent.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    guard let entry = entry(of: task) else { return }
    entry.transfer.noteActivity(at: entry.clock.uptime)
  }

  #if !canImport(FoundationNetworking)
  /// Pauses the idle time-out of a transfer.
  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    transfer(of: task)?.pauseIdleness()
  }

  /// Stores the measurements of a transfer.
  public func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    guard let transfer = transfer(of: task), let times = TaskTimes(metrics) else { return }
    transfer.note(times)
  }
  #endif

  /// Declines every redirect, so that the 3xx is the response.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    #if canImport(FoundationNetworking)
    // Foundation on Linux traps if the handler is called after a cancellation. A transfer that has ended was cancelled, or a
    // cancellation waits in this queue.
    guard let transfer = transfer(of: task), !transfer.hasEnded else { return }
    #endif
    completionHandler(nil)
  }

  /// Handles a challenge for a whole connection: a server certificate, a client certificate, Negotiate or NTLM. Foundation on
  /// Linux sends none of them.
  public func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    #if !canImport(FoundationNetworking)
    // The handler returns credentials, and a credential does not tell whether the server's certificate is valid.
    if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      return evaluateTrust(of: challenge.protectionSpace, completionHandler)
    }
    #endif
    let handler = challengeHandler
    guard handler.isSet, challenge.previousFailureCount < Self.attemptsPerChallenge else {
      return completionHandler(.performDefaultHandling, nil)
    }
    let question = AuthenticationChallenge(challenge, url: nil)
    Task {
      do throws(CacheError) {
        let credential = try await handler.callAsync(question) ?? nil
        completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
      } catch {
        completionHandler(.cancelAuthenticationChallenge, nil)
      }
    }
  }

  /// Handles a challenge for one request.
  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let transfer = transfer(of: task) else { return completionHandler(.cancelAuthenticationChallenge, nil) }
    #if !canImport(FoundationNetworking)
    if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      return evaluateTrust(of: challenge.protectionSpace, completionHandler)
    }
    if challenge.protectionSpace.isProxy(), challenge.previousFailureCount == 0, let user = transfer.proxy?.user {
      let credential = URLCredential(user: user, password: transfer.proxy?.password ?? "", persistence: .forSession)
      return completionHandler(.useCredential, credential)
    }
    #endif
    let handler = challengeHandler
    guard handler.isSet, allowsChallengeHandler(challenge, transfer) else { return decline(transfer, completionHandler) }
    let queue = session.delegateQueue
    let question = AuthenticationChallenge(challenge, url: transfer.url)
    Task {
      let answer: Result<URLCredential?, CacheError>
      do throws(CacheError) {
        answer = .success(try await handler.callAsync(question) ?? nil)
      } catch {
        answer = .failure(error)
      }
      // Back on the session's queue, so that the events of a transfer stay in order.
      queue.addOperation { [self] in
        switch answer {
        case _ where transfer.hasEnded: completionHandler(.cancelAuthenticationChallenge, nil)
        case .success(let credential?):
          transfer.noteCredential()
          completionHandler(.useCredential, credential)
        case .success(nil): decline(transfer, completionHandler)
        case .failure(let error):
          transfer.finish(error)
          completionHandler(.cancelAuthenticationChallenge, nil)
        }
      }
    }
  }

  // MARK: Challenges

  #if canImport(FoundationNetworking)
  // On Linux the challenge follows the 401 and its body. Both are held back, because a credential may supersede them.
  private var holdsUnauthorized: Bool { challengeHandler.isSet }

  /// Returns whether the handler may be called. Basic only (RFC 7617), because Foundation on Linux traps on a credential for
  /// Digest.
  private func allowsChallengeHandler(_ challenge: URLAuthenticationChallenge, _ transfer: SessionDataTask) -> Bool {
    challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
      && challenge.previousFailureCount < Self.attemptsPerChallenge && transfer.isHolding
  }

  /// Makes the 401 the response, which was received completely. The default handling would never end the task.
  private func decline(
    _ transfer: SessionDataTask,
    _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let uptime = table.withLock { $0[ObjectIdentifier(transfer.task)]?.clock }?.uptime
    if let uptime { publish(transfer.receiveEnd(nil, response: nil, at: uptime), of: transfer) }
    completionHandler(.cancelAuthenticationChallenge, nil)
  }
  #else
  private var holdsUnauthorized: Bool { false }

  private func allowsChallengeHandler(_ challenge: URLAuthenticationChallenge, _ transfer: SessionDataTask) -> Bool {
    challenge.previousFailureCount < Self.attemptsPerChallenge
  }

  /// Makes the 401 the response, by the default handling without a stored credential.
  private func decline(
    _ transfer: SessionDataTask,
    _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    completionHandler(.performDefaultHandling, nil)
  }

  private func evaluateTrust(
    of space: URLProtectionSpace,
    _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    if trustedHosts.contains(host: space.host, port: space.port), let trust = space.serverTrust {
      completionHandler(.useCredential, URLCredential(trust: trust))
    } else {
      completionHandler(.performDefaultHandling, nil)
    }
  }
  #endif
}
