internal import Dispatch

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Polling for tests that wait for another task when no event reports the change.
///
/// ```swift
/// try await Polling.until { try await manager.lookup(url) != .miss }
/// ```
public enum Polling {
  /// The error of a condition that stayed false.
  public struct Overdue: Error, CustomStringConvertible {
    /// The number of polls.
    public let polls: Int
    /// The file and the line of the caller.
    public let place: String

    /// The place, and the number of polls.
    public var description: String { "\(place): the condition is still false after \(polls) polls" }
  }

  /// The number of polls that only yield to other tasks.
  private static let fastPolls = 10_000

  /// Returns when the condition is true. Other tasks run between two polls. After the first polls, the interval is a
  /// millisecond, so that polling takes no CPU time from the awaited work.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of polls. It is not a time, so a slow machine only takes longer.
  ///   - file: The file of the caller.
  ///   - line: The line of the caller.
  ///   - condition: The condition, which is evaluated often and should be cheap.
  /// - Throws: ``Overdue`` if the condition is false after `limit` polls, so that a test fails instead of hanging, and
  ///   the errors of the condition.
  public static func until(
    limit: Int = 1_000_000, file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
  ) async throws {
    for poll in 0..<limit {
      if try await condition() { return }
      // In a cancelled task, a sleep returns immediately and lets no other task run, so yield instead.
      if poll < fastPolls || Task.isCancelled { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
    throw Overdue(polls: limit, place: "\(file):\(line)")
  }
}

/// Returns the CPU time of the current thread during `work`, in seconds. Other load on the machine does not count.
package func threadTime(_ work: () throws -> Void) rethrows -> Double {
  func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  let start = now()
  try work()
  return now() - start
}

/// The limit on the body bytes in the socket buffers of the system.
package enum SocketBuffers {
  /// The most bytes that one connection can buffer: a send buffer and a receive buffer, both at the system's limit. The
  /// limit of the receive buffer is 6 MB on most machines and 32 MB on some.
  package static let limit = largest("tcp_rmem", or: 6 << 20) + largest("tcp_wmem", or: 4 << 20)

  /// Returns the last of the three numbers in the given file.
  private static func largest(_ name: String, or fallback: Int) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8) else { return fallback }
    return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? fallback
  }
}

/// An executor that runs tasks on a separate dispatch queue, so that contention is not limited by the width of the
/// cooperative pool.
final class QueueExecutor: TaskExecutor {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: name) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
