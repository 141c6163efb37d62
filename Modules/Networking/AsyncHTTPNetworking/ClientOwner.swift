#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import Dispatch
internal import NIOCore
internal import Synchronization

/// The clients, the transfers that use them, and the shutdown of both.
///
/// Transfers retain this object and not the downloader. Transfers of a released downloader complete, and then its own clients are
/// shut down.
final class ClientOwner: Sendable {
  private struct State {
    var isClosed = false
    var isShutDown = false
    var running: [ObjectIdentifier: Transfer] = [:]
    var waiting: [Resumption<Void>] = []
  }

  /// The client for requests without a body.
  let client: HTTPClient
  /// The client for requests with a body: the same client, or one limited to HTTP/1.1.
  let uploadClient: HTTPClient
  private let owned: [HTTPClient]

  /// Whether requests with a body use separate connections.
  var hasUploadClient: Bool { uploadClient !== client }

  private let state = Lock(State())
  private let timeoutSchedule = TimeoutSchedule()

  /// Creates an owner for the caller's client, which the caller shuts down.
  init(borrowing client: HTTPClient) {
    (self.client, uploadClient, owned) = (client, client, [])
  }

  /// Creates an owner that shuts its clients down. Without `uploading`, `client` sends all requests.
  init(owning client: HTTPClient, uploading: HTTPClient?) {
    self.client = client
    uploadClient = uploading ?? client
    owned = [client] + (uploading.map { [$0] } ?? [])
  }

  /// Adds a transfer. Returns `false` if the downloader has been closed.
  func enter(_ transfer: Transfer) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      state.running[ObjectIdentifier(transfer)] = transfer
      return true
    }
  }

  /// Removes a transfer that has ended.
  func leave(_ transfer: Transfer) {
    let isLast = state.withLock { state in
      state.running[ObjectIdentifier(transfer)] = nil
      return state.isClosed && state.running.isEmpty
    }
    if isLast { shutDown() }
  }

  /// Closes the downloader for new transfers. Its own clients are shut down after the last transfer.
  func close() {
    let isLast = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed && state.running.isEmpty
    }
    if isLast { shutDown() }
  }

  /// Ends the running transfers.
  func failAll(_ error: CacheError) {
    for transfer in state.withLock({ Array($0.running.values) }) { transfer.fail(error) }
  }

  /// Schedules a check of the transfers at the given time.
  func expect(_ due: NIODeadline) {
    guard timeoutSchedule.set(for: due) else { return }
    client.eventLoopGroup.any().scheduleTask(deadline: due) { [weak self] in
      guard let self, timeoutSchedule.isDue(due) else { return }
      checkTimeouts()
    }
  }

  /// Checks all transfers. Checks that are due within 2 ms are combined, so that many transfers with different times do not cause
  /// a pass each.
  private func checkTimeouts() {
    let now = NIODeadline.now()
    let next = state.withLock { Array($0.running.values) }.compactMap { $0.checkTimeouts(at: now) }.min()
    if let next { expect(max(next, now + .milliseconds(2))) }
  }

  /// Waits until the clients have been shut down. Call it only after ``close()``.
  func waitForEnd() async {
    await withResumption { (waiter: Resumption<Void>) in
      let isShutDown = state.withLock { state in
        if !state.isShutDown { state.waiting.append(waiter) }
        return state.isShutDown
      }
      if isShutDown { waiter.resume() }
    }
  }

  private func shutDown() { shutDown(owned[...]) }

  private func shutDown(_ clients: ArraySlice<HTTPClient>) {
    guard let client = clients.first else { return didShutDown() }
    // It can only fail if the client is already shut down, and no other code does that.
    client.shutdown(queue: .global()) { _ in self.shutDown(clients.dropFirst()) }
  }

  private func didShutDown() {
    let waiting = state.withLock { state in
      state.isShutDown = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for waiter in waiting { waiter.resume() }
  }
}

/// The number of connections that a client has created.
///
/// async-http-client does not report the connection of a request. A request for which none was created uses an existing one.
final class ConnectionCount: Sendable {
  private let count = Atomic<Int>(0)
  /// The marks by which requests of the client tell the handlers of these connections something.
  let marks = RequestMarks()

  var made: Int { count.load(ordering: .acquiring) }

  func note() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
#endif
