#if Gateway
import CacheCore
import Dispatch
import Foundation
import NIOConcurrencyHelpers

/// Writes a line for each answer, on a queue of its own: neither a slow disk nor a full pipe holds up an answer.
final class AccessLog: Sendable {
  private struct Pending {
    var text = ""
    var lost = 0
    var isScheduled = false
  }

  /// Bytes that may wait; lines beyond are counted, and the count is told.
  private static let limit = 8 << 20

  private let pending = NIOLockedValueBox(Pending())
  private let queue = DispatchQueue(label: "access log")
  private let descriptor: CInt
  private let clock: any CacheClock

  /// - Parameters:
  ///   - path: appended to; `-` is standard output.
  ///   - clock: tells when a line was written.
  /// - Throws: `CacheError.Code.fileSystem` when the file can't be opened.
  init(path: String, clock: any CacheClock = SystemClock()) throws(CacheError) {
    self.clock = clock
    guard path != "-" else {
      descriptor = STDOUT_FILENO
      return
    }
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      let number = errno
      throw CacheError(
        .fileSystem, reason: "the access log can't be opened: \(String(cString: strerror(number)))", path: path, errno: number)
    }
  }

  deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

  func write(_ record: TrafficRecord) {
    let line = AccessLine.text(record, at: clock.now)
    let mustSchedule = pending.withLockedValue { pending in
      guard pending.text.utf8.count < Self.limit else {
        pending.lost += 1
        return false
      }
      pending.text += line
      defer { pending.isScheduled = true }
      return !pending.isScheduled
    }
    if mustSchedule { queue.async { self.flush() } }
  }

  /// Returns when everything has been written that was given before.
  func drain() { queue.sync { flush() } }

  private func flush() {
    let (text, lost) = pending.withLockedValue { pending in
      defer { pending = Pending() }
      return (pending.text, pending.lost)
    }
    writeAll(text)
    if lost > 0 { writeAll("- \(lost) lines lost: the log took them too slowly\n") }
  }

  private func writeAll(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      // A log that can't be written (a full disk, a closed pipe) is no reason to stop serving.
      guard written > 0 else { return }
      rest = rest.dropFirst(written)
    }
  }
}
#endif
