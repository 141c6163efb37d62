internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The calls of the session's delegate. They are serial, on the session's queue.
extension SessionDataTask {
  func receive(
    _ response: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [Event] {
    try state.withLock { state throws(CacheError) in
      state.lastActivity = uptime
      return try state.assembler.receive(response, at: uptime, holdsUnauthorized: holdsUnauthorized)
    }
  }

  func receive(_ data: Data, at uptime: Duration) throws(CacheError) -> [Event] {
    try state.withLock { state throws(CacheError) in
      state.lastActivity = uptime
      return try state.assembler.receive(data)
    }
  }

  /// Starts the idle timeout, at the start of the transfer.
  func watchIdleness(_ watch: DeadlineTimer, at now: Duration) {
    let scheduled = watch.add(due: now + idleTimeout) { [weak self] now in self?.checkIdleness(at: now) }
    state.withLock { state in
      guard !state.buffer.hasEnded else { return }
      state.lastActivity = now
      state.idleness = scheduled
    }
  }

  /// Notes that bytes of the request were sent.
  func noteActivity(at uptime: Duration) { state.withLock { $0.lastActivity = uptime } }

  /// Pauses the idle timeout until the next activity, because the platform waits for a network.
  func pauseIdleness() { state.withLock { $0.lastActivity = nil } }

  /// Stores the platform's measurements.
  func note(_ times: TaskTimes) { state.withLock { $0.assembler.times = times } }

  /// Ends the transfer if it has been idle for too long. Returns the time of the next check, or `nil` if the transfer has ended.
  func checkIdleness(at now: Duration) -> Duration? {
    let due: Duration? = state.withLock { state in
      guard !state.buffer.hasEnded else { return nil }
      return (state.lastActivity ?? now) + idleTimeout
    }
    guard let due, due <= now else { return due }
    finish(CacheError(.timedOut, reason: "no data arrived for \(idleTimeout)"), stopping: true)
    return nil
  }

  /// Notes that a credential was supplied, so that the response is private to one user.
  func noteCredential() { state.withLock { $0.assembler.usesCredential = true } }

  /// Releases the response that was held back.
  func releaseHeld() -> [Event] { state.withLock { $0.assembler.release() } }

  func receiveEnd(_ error: (any Error)?, response: URLResponse?, at uptime: Duration) -> [Event] {
    state.withLock { state in
      let held = state.assembler.releaseAtEnd(error)
      return held + state.assembler.end(error, response: response, at: uptime)
    }
  }

  /// Whether a response is held back that a credential may supersede.
  var isHolding: Bool { state.withLock { $0.assembler.isHolding } }

  /// The number of bytes to be delivered, or `nil` before the head or if it is unknown.
  var bodyLength: Int64? { state.withLock { $0.assembler.bodyLength } }

  /// Counts the next bytes of a body and passes them on, in one critical section. Returns `false` if they need
  /// ``receive(_:at:)``.
  func pass(_ data: Data, at uptime: Duration) -> Bool {
    let consequences: Consequences? = state.withLock { state in
      guard state.assembler.count(data) else { return nil }
      state.lastActivity = uptime
      return state.deliver(data, limit: bufferLimit)
    }
    guard let consequences else { return false }
    carryOut(consequences)
    return true
  }

  /// Passes an event on to the reader.
  func publish(_ event: Event) {
    switch event {
    case .head(let head):
      let wakeUp = state.withLock { state in
        let isCollecting = head.isCollected(upTo: collectUpTo, length: state.assembler.bodyLength)
        state.buffer.receive(head: head, isCollecting: isCollecting)
        return state.buffer.wakeUp()
      }
      wakeUp?()
    case .data(let data): carryOut(state.withLock { $0.deliver(data, limit: bufferLimit) })
    case .end(let error): finish(error)
    }
  }

  /// The work that a step of the transfer causes, to be done outside the lock.
  struct Consequences {
    var wakeUp: TransferBuffer.WakeUp?
    /// Whether the transfer was running and ends.
    var stops = false
  }
}

extension SessionDataTask.State {
  mutating func deliver(_ data: Data, limit: Int?) -> SessionDataTask.Consequences {
    buffer.receive(data)
    // A waiting reader accepts a chunk of any size. The platform decides the size.
    if let wakeUp = buffer.wakeUp() { return SessionDataTask.Consequences(wakeUp: wakeUp) }
    guard let limit, buffer.retainedBytes > limit else { return SessionDataTask.Consequences() }
    return cancel(
      because: CacheError(
        .readerTooSlow, reason: "more than \(limit) received bytes were not read; Foundation has no back-pressure"))
  }

  /// Cancels the reader, which gets this error as its end, and the transfer.
  mutating func cancel(because error: CacheError) -> SessionDataTask.Consequences {
    guard buffer.cancelReader(because: error) else { return SessionDataTask.Consequences() }
    let stops = buffer.end(.cancelled)
    return SessionDataTask.Consequences(wakeUp: buffer.wakeUp(), stops: stops)
  }
}
