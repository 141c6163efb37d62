import CacheCore
import Dispatch
import Foundation
import NIOConcurrencyHelpers

/// The access log. It writes one line for each response on a separate queue, so that a slow disk or a full pipe delays no
/// response.
final class AccessLog: Sendable {
  private struct Pending {
    var text = ""
    var lost = 0
    var isScheduled = false
  }

  /// The largest number of bytes that may wait. Further lines are dropped, and the log states their number.
  private static let limit = 8 << 20

  private let pending = NIOLockedValueBox(Pending())
  private let queue = DispatchQueue(label: "access log")
  private let descriptor: CInt
  private let clock: any CacheClock

  /// - Parameters:
  ///   - path: The file that lines are appended to, or `-` for standard output.
  ///   - clock: The clock of the times in the log.
  /// - Throws: `CacheError.Code.fileSystem` if the file cannot be opened.
  init(path: String, clock: any CacheClock = SystemClock()) throws(CacheError) {
    self.clock = clock
    guard path != "-" else {
      descriptor = STDOUT_FILENO
      return
    }
    // A log has addresses and URLs of clients, so other users of the machine cannot read a new file.
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else {
      let number = errno
      throw CacheError(
        .fileSystem, reason: "cannot open the access log: \(String(cString: strerror(number)))", path: path, errno: number)
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

  /// Returns when all earlier lines have been written.
  func drain() { queue.sync { flush() } }

  private func flush() {
    let (text, lost) = pending.withLockedValue { pending in
      defer { pending = Pending() }
      return (pending.text, pending.lost)
    }
    writeAll(text)
    if lost > 0 { writeAll("- \(lost) lines lost: the log is too slow\n") }
  }

  private func writeAll(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      if written < 0, errno == EAGAIN {
        // Another process can set the non-blocking mode of a pipe that it shares with this one.
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, -1)
        continue
      }
      // The gateway continues to serve if the log cannot be written, for example because the disk is full.
      guard written > 0 else { return }
      rest = rest.dropFirst(written)
    }
  }
}
