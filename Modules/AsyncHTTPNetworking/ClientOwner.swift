#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import Dispatch
internal import NIOCore

/// The clients, the transfers that use them, and their end.
///
/// Transfers hold it, not the downloader: one that is released lets them come to their end, and only then shuts down clients of
/// its own.
final class ClientOwner: Sendable {
  private struct State {
    var isClosed = false
    var isShutDown = false
    var running: [ObjectIdentifier: Transfer] = [:]
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  /// For requests without a body.
  let client: HTTPClient
  /// For requests with one; the same, or one that speaks HTTP/1.1 alone.
  let uploadClient: HTTPClient
  private let owned: [HTTPClient]

  /// Whether requests with a body go over connections of their own.
  var hasUploadClient: Bool { uploadClient !== client }

  private let state = Lock(State())
  private let alarm = Alarm()

  /// A client of the caller's own, who shuts it down.
  init(borrowing client: HTTPClient) {
    (self.client, uploadClient, owned) = (client, client, [])
  }

  /// Clients that live as long as they are needed; `uploading` nil: one for all.
  init(owning client: HTTPClient, uploading: HTTPClient?) {
    self.client = client
    uploadClient = uploading ?? client
    owned = [client] + (uploading.map { [$0] } ?? [])
  }

  /// A transfer begins; false once the downloader has been closed.
  func enter(_ transfer: Transfer) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      state.running[ObjectIdentifier(transfer)] = transfer
      return true
    }
  }

  /// A transfer has ended.
  func leave(_ transfer: Transfer) {
    let isLast = state.withLock { state in
      state.running[ObjectIdentifier(transfer)] = nil
      return state.isClosed && state.running.isEmpty
    }
    if isLast { shutDown() }
  }

  /// Nothing new may begin; owned clients go when the last transfer has ended.
  func close() {
    let isLast = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed && state.running.isEmpty
    }
    if isLast { shutDown() }
  }

  /// Ends what runs.
  func failAll(_ error: CacheError) {
    for transfer in state.withLock({ Array($0.running.values) }) { transfer.fail(error) }
  }

  /// Somebody has to look at a transfer at that time.
  func expect(_ due: NIODeadline) {
    guard alarm.set(for: due) else { return }
    client.eventLoopGroup.any().scheduleTask(deadline: due) { [weak self] in
      guard let self, alarm.isDue(due) else { return }
      look()
    }
  }

  /// What is due within a moment is looked at together, so that many transfers with times of their own are not walked through for
  /// each of them.
  private func look() {
    let now = NIODeadline.now()
    let next = state.withLock { Array($0.running.values) }.compactMap { $0.look(at: now) }.min()
    if let next { expect(max(next, now + .milliseconds(2))) }
  }

  /// Returns when owned clients are gone; only after ``close()``.
  func waitForEnd() async {
    await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
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
    // It can only fail by having been shut down before, which nobody else could do.
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
#endif
