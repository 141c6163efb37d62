import Foundation
import NIOConcurrencyHelpers

/// State with a lock on whose changes tasks can wait without polling.
final class WatchedState<State: Sendable>: Sendable {
  private struct Waiter: Sendable {
    let condition: @Sendable (State) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct Guarded: Sendable {
    var state: State
    var waiters: [Int: Waiter] = [:]
    var nextID = 0
  }

  private let guarded: NIOLockedValueBox<Guarded>

  init(_ state: State) { guarded = NIOLockedValueBox(Guarded(state: state)) }

  func read<R: Sendable>(_ body: (State) -> R) -> R { guarded.withLockedValue { body($0.state) } }

  /// Changes the state and wakes the waiters whose condition has become true.
  @discardableResult
  func update<R: Sendable>(_ body: (inout State) -> R) -> R {
    let (result, woken) = guarded.withLockedValue { guarded -> (R, [CheckedContinuation<Void, Never>]) in
      let result = body(&guarded.state)
      guard !guarded.waiters.isEmpty else { return (result, []) }
      let ready = guarded.waiters.filter { $0.value.condition(guarded.state) }
      for id in ready.keys { guarded.waiters[id] = nil }
      return (result, ready.values.map(\.continuation))
    }
    for continuation in woken { continuation.resume() }
    return result
  }

  /// Returns when the condition is true or the task is cancelled. The condition runs under the lock.
  func wait(until condition: @escaping @Sendable (State) -> Bool) async {
    let id = guarded.withLockedValue { guarded in
      defer { guarded.nextID += 1 }
      return guarded.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        let isOver = guarded.withLockedValue { guarded in
          // An earlier cancellation found no waiter to wake. A concurrent one waits for the lock.
          if Task.isCancelled || condition(guarded.state) { return true }
          guarded.waiters[id] = Waiter(condition: condition, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      guarded.withLockedValue { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
    }
  }
}

/// The limit on the body bytes in the socket buffers of the system.
enum SocketBuffers {
  /// The most bytes that one connection can buffer: a send buffer and a receive buffer, both at the system's limit. The
  /// limit of the receive buffer is 6 MB on most machines and 32 MB on some.
  static let limit = largest("tcp_rmem", or: 6 << 20) + largest("tcp_wmem", or: 4 << 20)

  /// Returns the last of the three numbers in the given file.
  private static func largest(_ name: String, or fallback: Int) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8) else { return fallback }
    return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? fallback
  }
}
