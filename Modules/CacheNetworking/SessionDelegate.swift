internal import CacheCore
public import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// What a `URLSession` tells about its tasks, passed on to the ``SessionDataTask`` that each of them belongs to.
///
/// To look on or to step in, set a hook, or make a subclass and override a method; an override must call `super`, else the
/// transfer never ends. Hooks are called on the session's own serial queue, one at a time, before those who wait for the
/// transfer. Only the forms with completion handlers are implemented: Foundation on Linux never calls the `async` ones.
///
/// ```swift
/// let downloader = SessionDownloader()
/// downloader.delegate.onResponse.delegate(on: self) { (self, response) in
///   response.head.headerFields[.contentType] == "image/png" ? .accept : .refuse("not a picture")
/// }
/// ```
///
/// One delegate may serve several downloaders. A session keeps its delegate alive until it is closed, the hooks' targets are held
/// weakly.
// Proof of `@unchecked Sendable`: every stored property is a constant of a Sendable type; what changes is in locks.
open class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  /// Asked at each final head, whatever its status, before any byte of the body is passed on. Without a hook every answer is
  /// accepted.
  public let onResponse = Delegate<ReceivedResponse, Verdict>()
  /// Told each chunk of a body.
  public let onData = Delegate<ReceivedData, Void>()
  /// Told each redirect. It is not followed here: the 3xx is the answer.
  public let onRedirect = Delegate<Redirect, Void>()
  /// Asked for a credential when a server wants one; nil, like no hook, makes the 401 the answer. Asked again when the server
  /// refuses the credential, up to ``attemptsPerChallenge`` times in all. What it opens is one user's, and no cache sees whose:
  /// such an answer's `Cache-Control` is replaced by `no-store`. On Linux for Basic (RFC 7617) alone, since Foundation traps on
  /// Digest.
  public let onChallenge = AsyncDelegate<Challenge, URLCredential?>()
  /// Asked for a credential that is a whole connection's: a client's certificate, or one for Negotiate or NTLM; nil, like no
  /// hook, is the system's own handling. Which requests go over that connection nobody is told, so give each user a downloader
  /// and a `partition`. Apple platforms only.
  public let onSessionChallenge = AsyncDelegate<SessionChallenge, URLCredential?>()
  /// Told the end of each transfer: an error, a cancellation too, or nil.
  public let onCompletion = Delegate<Completion, Void>()

  /// Told when a downloader's session is gone, after its last transfer: nothing more comes from it. The input is nil when it
  /// ended in order.
  public let onSessionEnd = Delegate<(any Error)?, Void>()

  /// How often ``onChallenge`` is asked for one transfer.
  public static let attemptsPerChallenge = 3

  private struct Entry: Sendable {
    var transfer: SessionDataTask
    var clock: any CacheClock
  }

  private let transfers = Lock<[ObjectIdentifier: Entry]>([:])

  #if !canImport(FoundationNetworking)
  private let trusted = Lock<Set<String>>([])

  /// Hosts whose certificate is taken as it comes. For tests and devices in the house: it gives up all that TLS proves.
  public var trustedHosts: Set<String> {
    get { trusted.withLock { $0 } }
    set { trusted.withLock { $0 = newValue } }
  }
  #endif

  // MARK: The table

  /// The transfer that a platform's task belongs to, while somebody waits for it.
  public final func transfer(of task: URLSessionTask) -> SessionDataTask? {
    entry(of: task)?.transfer
  }

  private func entry(of task: URLSessionTask) -> Entry? { transfers.withLock { $0[ObjectIdentifier(task)] } }

  /// - Parameter clock: the downloader's, which made the transfer.
  func register(_ transfer: SessionDataTask, clock: any CacheClock) {
    transfers.withLock { $0[ObjectIdentifier(transfer.task)] = Entry(transfer: transfer, clock: clock) }
  }

  /// From here on nothing that the session says about this transfer is heard.
  func unregister(_ transfer: SessionDataTask, _ error: CacheError?) {
    let removed = transfers.withLock { $0.removeValue(forKey: ObjectIdentifier(transfer.task)) }
    guard removed != nil else { return }
    onCompletion.call(Completion(transfer: transfer, error: error))
  }

  private func tell(_ events: [SessionDataTask.Event], of transfer: SessionDataTask) {
    for event in events {
      guard !transfer.hasEnded else { return }
      switch event {
      case .head(let head):
        if case .refuse(let reason)? = onResponse.call(ReceivedResponse(transfer: transfer, head: head)) {
          transfer.finish(CacheError(.refused, reason: reason, status: head.status.code), stopping: true)
          return
        }
      case .data(let data): onData.call(ReceivedData(transfer: transfer, data: data))
      case .end: break
      }
      transfer.publish(event)
    }
  }

  // MARK: URLSessionDataDelegate

  open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { onSessionEnd.call(error) }

  open func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    guard let entry = entry(of: dataTask) else { return completionHandler(.cancel) }
    let transfer = entry.transfer
    do throws(CacheError) {
      guard let response = response as? HTTPURLResponse else {
        throw CacheError(.malformedResponse, reason: "the answer is not HTTP")
      }
      let events = try transfer.receive(response, at: entry.clock.uptime, holdsUnauthorized: holdsUnauthorized)
      tell(events, of: transfer)
    } catch {
      transfer.finish(error, stopping: true)
    }
    // Linux ignores the disposition: that is why a refused transfer is also cancelled.
    completionHandler(transfer.hasEnded ? .cancel : .allow)
  }

  open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let entry = entry(of: dataTask) else { return }
    let uptime = entry.clock.uptime
    // By far the most chunks: nobody looks on, and the head has been told.
    if !onData.isSet, entry.transfer.pass(data, at: uptime) { return }
    tell(entry.transfer.receive(data, at: uptime), of: entry.transfer)
  }

  open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let entry = entry(of: task) else { return }
    tell(entry.transfer.receiveEnd(error, response: task.response, at: entry.clock.uptime), of: entry.transfer)
  }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    guard let entry = entry(of: task) else { return }
    entry.transfer.noteActivity(at: entry.clock.uptime)
  }

  #if !canImport(FoundationNetworking)
  open func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    transfer(of: task)?.pauseIdleness()
  }

  open func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    guard let transfer = transfer(of: task), let times = TaskTimes(metrics) else { return }
    transfer.note(times)
  }
  #endif

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    if let transfer = transfer(of: task) {
      onRedirect.call(Redirect(transfer: transfer, status: response.statusCode, target: request.url))
    }
    completionHandler(nil)
  }

  /// A challenge about the whole connection: the server's certificate, a client's, Negotiate and NTLM. Foundation on Linux has
  /// none of them.
  open func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    #if !canImport(FoundationNetworking)
    // Never the hook's: it is asked for credentials, and a client's certificate is no answer to the question whether the server's
    // is good.
    if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      return judgeServer(challenge.protectionSpace, completionHandler)
    }
    #endif
    guard onSessionChallenge.isSet, challenge.previousFailureCount < Self.attemptsPerChallenge else {
      return completionHandler(.performDefaultHandling, nil)
    }
    let question = SessionChallenge(challenge)
    Task {
      let credential = await onSessionChallenge.callAsync(question) ?? nil
      completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
    }
  }

  open func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let transfer = transfer(of: task) else { return completionHandler(.cancelAuthenticationChallenge, nil) }
    #if !canImport(FoundationNetworking)
    if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      return judgeServer(challenge.protectionSpace, completionHandler)
    }
    if challenge.protectionSpace.isProxy(), challenge.previousFailureCount == 0, let user = transfer.proxy?.user {
      let credential = URLCredential(user: user, password: transfer.proxy?.password ?? "", persistence: .forSession)
      return completionHandler(.useCredential, credential)
    }
    #endif
    guard mayAsk(challenge, transfer) else { return decline(transfer, completionHandler) }
    let queue = session.delegateQueue
    let question = Challenge(challenge, of: transfer)
    Task {
      let credential = await onChallenge.callAsync(question) ?? nil
      // Back on the session's queue, so that what is told of a transfer keeps its order.
      queue.addOperation { [self] in
        if transfer.hasEnded {
          completionHandler(.cancelAuthenticationChallenge, nil)
        } else if let credential {
          transfer.noteCredential()
          completionHandler(.useCredential, credential)
        } else {
          decline(transfer, completionHandler)
        }
      }
    }
  }

  // MARK: Challenges

  #if canImport(FoundationNetworking)
  // The challenge comes after the 401 and its body here, so both are held back while somebody may answer it.
  private var holdsUnauthorized: Bool { onChallenge.isSet }

  private func mayAsk(_ challenge: URLAuthenticationChallenge, _ transfer: SessionDataTask) -> Bool {
    challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
      && challenge.previousFailureCount < Self.attemptsPerChallenge && transfer.isHolding && onChallenge.isSet
  }

  /// The 401 is the answer. All of it is there by now; the default handling would wait for ever instead of ending the task.
  private func decline(
    _ transfer: SessionDataTask,
    _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let uptime = transfers.withLock { $0[ObjectIdentifier(transfer.task)]?.clock }?.uptime
    if let uptime { tell(transfer.receiveEnd(nil, response: nil, at: uptime), of: transfer) }
    completionHandler(.cancelAuthenticationChallenge, nil)
  }
  #else
  private var holdsUnauthorized: Bool { false }

  private func mayAsk(_ challenge: URLAuthenticationChallenge, _ transfer: SessionDataTask) -> Bool {
    challenge.previousFailureCount < Self.attemptsPerChallenge && onChallenge.isSet
  }

  /// The default handling without a stored credential makes the 401 the answer.
  private func decline(
    _ transfer: SessionDataTask,
    _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    completionHandler(.performDefaultHandling, nil)
  }

  private func judgeServer(
    _ space: URLProtectionSpace, _ completionHandler: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let host = HostName.comparable(space.host)
    if trustedHosts.contains(where: { HostName.comparable($0) == host }), let trust = space.serverTrust {
      completionHandler(.useCredential, URLCredential(trust: trust))
    } else {
      completionHandler(.performDefaultHandling, nil)
    }
  }
  #endif
}
