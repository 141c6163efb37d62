#if Service
import Foundation

/// The memory, descriptors and threads of a process, and its processor time, with those of the processes that it has started.
struct ProcessUse: Sendable {
  /// The resident memory of the process, in bytes.
  var memory = 0
  /// The resident memory of its descendants, in bytes.
  var childMemory = 0
  /// The processor time of the running processes, in seconds.
  var time = 0.0
  var childCount = 0
  /// The open descriptors of the process and of its descendants.
  var descriptors = 0
  /// The threads of the process and of its descendants.
  var threads = 0

  /// Reads the use, or returns `nil` if the process has ended, or on a system without `/proc`.
  init?(of pid: pid_t) {
    #if os(Linux)
    let pageSize = sysconf(Int32(_SC_PAGESIZE))
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    var processes: [pid_t: Status] = [:]
    for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
      if let number = pid_t(name), let status = Status(number) { processes[number] = status }
    }
    guard let own = processes[pid] else { return nil }
    memory = own.pages * pageSize
    time = Double(own.ticks) / ticks
    (descriptors, threads) = (Self.descriptors(pid), own.threads)
    var parents: Set = [pid]
    while true {
      let children = processes.filter { parents.contains($0.value.parent) && !parents.contains($0.key) }
      guard !children.isEmpty else { break }
      for (number, child) in children {
        childMemory += child.pages * pageSize
        time += Double(child.ticks) / ticks
        childCount += 1
        descriptors += Self.descriptors(number)
        threads += child.threads
        parents.insert(number)
      }
    }
    #else
    return nil
    #endif
  }

  private static func descriptors(_ pid: pid_t) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd"))?.count ?? 0
  }

  /// The numbers of `/proc/PID/stat` that are used here.
  private struct Status {
    var parent: pid_t
    var ticks: Int
    var pages: Int
    var threads: Int

    init?(_ number: pid_t) {
      guard let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8), let name = text.lastIndex(of: ")")
      else {
        return nil
      }
      // The name of the program may contain blanks. The first field after it is the third one of the file.
      let fields = text[text.index(after: name)...].split(separator: " ")
      guard fields.count > 21, let parent = pid_t(fields[1]), let user = Int(fields[11]), let system = Int(fields[12]),
        let threads = Int(fields[17]), let pages = Int(fields[21])
      else { return nil }
      (self.parent, ticks, self.pages, self.threads) = (parent, user + system, pages, threads)
    }
  }
}
#endif
