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
      state.lastActivity = uptime
      return try state.assembler.receive(response, at: uptime, holdsUnauthorized: holdsUnauthorized)
    }
  }

  func receive(_ data: Data, at uptime: Duration) -> [Event] {
    state.withLock { state in
      state.lastActivity = uptime
      return state.assembler.receive(data)
    }
  }

  /// From here on silence is counted: the transfer starts.
  func watchIdleness(_ watch: DeadlineTimer, at now: Duration) {
    let scheduled = watch.add(due: now + idleTimeout) { [weak self] now in self?.checkIdleness(at: now) }
    state.withLock { state in
      guard !state.buffer.hasEnded else { return }
      state.lastActivity = now
      state.idleness = scheduled
    }
  }

  /// Bytes of the request went out.
  func noteActivity(at uptime: Duration) { state.withLock { $0.lastActivity = uptime } }

  /// The platform waits for a network: that is no idleness. Ends with the next activity.
  func pauseIdleness() { state.withLock { $0.lastActivity = nil } }

  /// What the platform measured.
  func note(_ times: TaskTimes) { state.withLock { $0.assembler.times = times } }

  /// When the transfer has been idle for too long, unless something comes before; nil when it is over, or was just ended because
  /// it has.
  func checkIdleness(at now: Duration) -> Duration? {
    let due: Duration? = state.withLock { state in
      guard !state.buffer.hasEnded else { return nil }
      return (state.lastActivity ?? now) + idleTimeout
    }
    guard let due, due <= now else { return due }
    finish(CacheError(.timedOut, reason: "nothing came for \(idleTimeout)"), stopping: true)
    return nil
  }

  /// A challenge is answered with a credential: what comes from here on is one user's.
  func noteCredential() { state.withLock { $0.assembler.usesCredential = true } }

  /// The answer that was held back counts.
  func releaseHeld() -> [Event] { state.withLock { $0.assembler.release() } }

  func receiveEnd(_ error: (any Error)?, response: URLResponse?, at uptime: Duration) -> [Event] {
    state.withLock { state in
      let held = state.assembler.releaseAtEnd(error)
      return held + state.assembler.end(error, response: response, at: uptime)
    }
  }

  /// Whether an answer is held back that a credential may supersede.
  var isHolding: Bool { state.withLock { $0.assembler.isHolding } }

  /// Bytes that are going to be delivered, once the head is there; nil: unknown.
  var bodyLength: Int64? { state.withLock { $0.assembler.bodyLength } }

  /// Takes the next bytes of a body and passes them on, in one critical section. Returns `false` if they need ``receive(_:at:)``.
  func pass(_ data: Data, at uptime: Duration) -> Bool {
    let delivery: Delivery? = state.withLock { state in
      guard state.assembler.count(data) else { return nil }
      state.lastActivity = uptime
      return state.deliver(data, limit: bufferLimit)
    }
    guard let delivery else { return false }
    carryOut(delivery)
    return true
  }

  /// Passes an event on to the reader.
  func publish(_ event: Event) {
    switch event {
    case .head(let head):
      let wakeUp = state.withLock { state in
        state.buffer.receive(head: head)
        return state.buffer.wakeUp()
      }
      wakeUp?()
    case .data(let data): carryOut(state.withLock { $0.deliver(data, limit: bufferLimit) })
    case .end(let error): finish(error)
    }
  }

  private func carryOut(_ delivery: Delivery) {
    if delivery.stops { stop() }
    delivery.wakeUp?()
  }

  /// The work that a chunk causes, to be done outside the lock.
  struct Delivery {
    var wakeUp: TransferBuffer.WakeUp?
    /// Whether the transfer ends because its reader is too slow.
    var stops = false
  }
}

extension SessionDataTask.State {
  mutating func deliver(_ data: Data, limit: Int?) -> SessionDataTask.Delivery {
    buffer.receive(data)
    // A reader that waits takes the chunk, however large it is. The platform decides how large.
    if let wakeUp = buffer.wakeUp() { return SessionDataTask.Delivery(wakeUp: wakeUp) }
    guard let limit, buffer.retainedBytes > limit else { return SessionDataTask.Delivery() }
    let error = CacheError(
      .readerTooSlow, reason: "more than \(limit) bytes were received and not read; Foundation cannot make the server wait")
    guard buffer.cancelReader(because: error) else { return SessionDataTask.Delivery() }
    return SessionDataTask.Delivery(stops: buffer.end(.cancelled))
  }
}
