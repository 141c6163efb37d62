internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// What the session's delegate calls, one call at a time: on the session's queue.
extension SessionDataTask {
  func receive(
    _ response: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [Event] {
    try state.withLock { state throws(CacheError) in
      try state.reception.receive(response, at: uptime, holdsUnauthorized: holdsUnauthorized)
    }
  }

  func receive(_ data: Data) -> [Event] { state.withLock { $0.reception.receive(data) } }

  /// A challenge is answered with a credential: what comes from here on is one user's.
  func noteCredential() { state.withLock { $0.reception.usesCredential = true } }

  /// The answer that was held back counts.
  func releaseHeld() -> [Event] { state.withLock { $0.reception.release() } }

  func receiveEnd(_ error: (any Error)?, response: URLResponse?) -> [Event] {
    state.withLock { state in
      let held = state.reception.release()
      return held + state.reception.end(error, response: response)
    }
  }

  /// Whether an answer is held back that a credential may supersede.
  var isHolding: Bool { state.withLock { $0.reception.isHolding } }

  /// Bytes that are going to be delivered, once the head is there; nil: unknown.
  var bodyLength: Int64? { state.withLock { $0.reception.bodyLength } }

  /// Passes an event on to everybody who waits.
  func publish(_ event: Event) {
    let wakeUps: [TransferLog.WakeUp]
    switch event {
    case .head(let head):
      wakeUps = state.withLock { state in
        state.log.receive(head: head)
        return state.log.wakeUps()
      }
    case .data(let data):
      wakeUps = state.withLock { state in
        state.log.receive(data)
        return state.log.wakeUps()
      }
    case .end(let error):
      finish(error)
      return
    }
    perform(wakeUps)
  }
}
