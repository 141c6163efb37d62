internal import CacheCore

/// A slot of a transfer. It is released once: on request, or with the last reference.
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
