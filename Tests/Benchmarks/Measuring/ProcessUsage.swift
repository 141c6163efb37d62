import Foundation

/// What this process has used up to now, by the system's word.
enum ProcessUsage {
  /// Processor time, user and system, of all threads.
  static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  /// Processor time, user and system, of all processes that this one has started and seen end, and of theirs.
  static var childrensProcessorTime: Duration {
    var usage = rusage()
    // -1 is RUSAGE_CHILDREN: an enum's case to Swift with glibc, a number elsewhere.
    getrusage(.init(-1), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(.zero) { $0 + .seconds($1.tv_sec) + .microseconds(Int64($1.tv_usec)) }
  }

  /// The most memory that it ever held resident, in bytes; nil where the system does not tell.
  ///
  /// Not `getrusage`'s: on Linux a program begins with that of the process that started it.
  static var peakMemory: Int? {
    status("VmHWM:")
  }

  /// The memory that it holds resident now, in bytes; nil where the system does not tell.
  static var residentMemory: Int? { status("VmRSS:") }

  /// A line of the process's status, in bytes.
  private static func status(_ name: String) -> Int? {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
      let kilobytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    return kilobytes << 10
  }

  /// Open descriptors, the one that counting needs included.
  static var openDescriptors: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count)
      ?? (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd").count) ?? 0
  }
}
