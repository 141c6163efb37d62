import Foundation

/// What this process has used up to now, by the system's word.
enum ProcessUsage {
  /// Processor time, user and system, of all threads.
  static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  /// The most memory that it ever held resident, in bytes; nil where the system does not tell.
  ///
  /// Not `getrusage`'s: on Linux a program begins with that of the process that started it.
  static var peakMemory: Int? {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
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
