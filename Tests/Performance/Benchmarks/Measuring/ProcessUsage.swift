import Foundation

/// The resources that this process has used so far, as the system reports them.
enum ProcessUsage {
  /// The processor time of all threads, user and system.
  static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  /// The processor time, user and system, of all descendants that have ended and were waited for.
  static var childrensProcessorTime: Duration {
    var usage = rusage()
    // -1 is RUSAGE_CHILDREN, which Swift imports as an enum case with glibc and as a number elsewhere.
    getrusage(.init(-1), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(.zero) { $0 + .seconds($1.tv_sec) + .microseconds(Int64($1.tv_usec)) }
  }

  /// The peak resident memory in bytes, or `nil` on macOS.
  ///
  /// `getrusage` is of no use for it: on Linux, a process inherits the peak of its parent.
  static var peakMemory: Int? {
    status("VmHWM:")
  }

  /// The resident memory in bytes, or `nil` on macOS.
  static var residentMemory: Int? { status("VmRSS:") }

  /// Returns the value in bytes of a line in `/proc/self/status`, which only Linux has.
  private static func status(_ name: String) -> Int? {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
      let kilobytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    return kilobytes << 10
  }

  /// The number of open descriptors, including the one that counts them.
  static var openDescriptors: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count)
      ?? (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd").count) ?? 0
  }
}
