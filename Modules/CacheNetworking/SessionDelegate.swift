internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The delegate of one `URLSession`. It passes each event on to its ``SessionDataTask``.
///
/// The session calls it on its own serial queue. Only the methods with completion handlers are implemented, because Foundation on
/// Linux never calls the `async` ones.
// Proof of `@unchecked Sendable`: every stored property is a constant of a Sendable type.
final class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
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

  private let transfers = Lock<[ObjectIdentifier: Entry]>([:])
  private let challengeHandler: AuthenticationChallenge.Handler?
  private let trustedHosts: Set<String>
  private let observer: (@Sendable (Event) -> Void)?

  /// - Parameters:
  ///   - challengeHandler: The closure that returns credentials.
  ///   - trustedHosts: The hosts whose certificates are not verified, on Apple platforms.
  ///   - observer: A closure called at each end.
  init(
    challengeHandler: AuthenticationChallenge.Handler? = nil, trustedHosts: Set<String> = [],
    observer: (@Sendable (Event) -> Void)? = nil
  ) {
    self.challengeHandler = challengeHandler
    self.trustedHosts = Set(trustedHosts.map(HostName.comparable))
    self.observer = observer
  }

  // MARK: Transfers

  private func transfer(of task: URLSessionTask) -> SessionDataTask? { entry(of: task)?.transfer }

  private func entry(of task: URLSessionTask) -> Entry? { transfers.withLock { $0[ObjectIdentifier(task)] } }

  /// - Parameter clock: The clock of the downloader.
  func register(_ transfer: SessionDataTask, clock: any CacheClock) {
    transfers.withLock { $0[ObjectIdentifier(transfer.task)] = Entry(transfer: transfer, clock: clock) }
  }

  /// Removes a transfer that has ended. Later events of its task are ignored.
  func unregister(_ transfer: SessionDataTask, _ error: CacheError?) {
    let removed = transfers.withLock { $0.removeValue(forKey: ObjectIdentifier(transfer.task)) }
    guard removed != nil else { return }
    observer?(.transferEnded(transfer.url, error))
  }

  private func publish(_ events: [SessionDataTask.Event], of transfer: SessionDataTask) {
    for event in events where !transfer.hasEnded { transfer.publish(event) }
  }

  // MARK: URLSessionDataDelegate

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { observer?(.sessionEnded(error)) }

  func urlSession(
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

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let entry = entry(of: dataTask) else { return }
    let uptime = entry.clock.uptime
    // The fast path: most chunks arrive while nothing is held back.
    if entry.transfer.pass(data, at: uptime) { return }
    publish(entry.transfer.receive(data, at: uptime), of: entry.transfer)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let entry = entry(of: task) else { return }
    publish(entry.transfer.receiveEnd(error, response: task.response, at: entry.clock.uptime), of: entry.transfer)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    guard let entry = entry(of: task) else { return }
    entry.transfer.noteActivity(at: entry.clock.uptime)
  }

  #if !canImport(FoundationNetworking)
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    transfer(of: task)?.pauseIdleness()
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    guard let transfer = transfer(of: task), let times = TaskTimes(metrics) else { return }
    transfer.note(times)
  }
  #endif

  /// Declines every redirect, so that the 3xx is the response.
  func urlSession(
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
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    #if !canImport(FoundationNetworking)
    // The handler returns credentials, and a credential does not tell whether the server's certificate is valid.
    if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      return evaluateTrust(of: challenge.protectionSpace, completionHandler)
    }
    #endif
    guard let challengeHandler, challenge.previousFailureCount < Self.attemptsPerChallenge else {
      return completionHandler(.performDefaultHandling, nil)
    }
    let question = AuthenticationChallenge(challenge, url: nil)
    Task {
      let credential = await challengeHandler(question)
      completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
    }
  }

  func urlSession(
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
    guard let challengeHandler, allowsChallengeHandler(challenge, transfer) else { return decline(transfer, completionHandler) }
    let queue = session.delegateQueue
    let question = AuthenticationChallenge(challenge, url: transfer.url)
    Task {
      let credential = await challengeHandler(question)
      // Back on the session's queue, so that the events of a transfer stay in order.
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
  // On Linux the challenge follows the 401 and its body. Both are held back, because a credential may supersede them.
  private var holdsUnauthorized: Bool { challengeHandler != nil }

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
    let uptime = transfers.withLock { $0[ObjectIdentifier(transfer.task)]?.clock }?.uptime
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
    if trustedHosts.contains(HostName.comparable(space.host)), let trust = space.serverTrust {
      completionHandler(.useCredential, URLCredential(trust: trust))
    } else {
      completionHandler(.performDefaultHandling, nil)
    }
  }
  #endif
}
