internal import CacheCore

/// The right to transfer. Given back once: when told, at the latest when nobody holds it any more.
final class TransferSlot: Sendable {
  private let gate: TransferGate
  private let host: String
  private let isHeld = Lock(true)

  init(_ gate: TransferGate, host: String) {
    self.gate = gate
    self.host = host
  }

  deinit { release() }

  func release() {
    let wasHeld = isHeld.withLock { isHeld in
      defer { isHeld = false }
      return isHeld
    }
    if wasHeld { gate.leave(host: host) }
  }
}
