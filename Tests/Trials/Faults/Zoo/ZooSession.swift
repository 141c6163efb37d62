#if Service
import CacheCore
import Foundation

/// One run of the service, with the tasks that watch it: warm hits at a steady pace, and samples of its memory.
final class ZooSession: Sendable {
  /// The memory of the service at which it is ended, so that the machine does not run out of memory.
  static let largestMemory = 3 << 30

  struct Notes {
    /// The times of warm hits without other requests, and beside them.
    var alone: [Duration] = []
    var beside: [Duration] = []
    var wrongHits: [String] = []
    var hasLoad = false
    /// The memory of the service with the first warm hit, and its peak. The peak of the children is that of their sum.
    var before = 0
    var peak = 0
    var childPeak = 0
    var mostChildren = 0
    /// Whether the service was ended because of its memory.
    var isTooLarge = false
  }

  /// The notes of the tasks.
  private final class Log: Sendable {
    let notes = Lock(Notes())
  }

  let service: ZooService
  private let log = Log()
  private let tasks = Lock<[Task<Void, Never>]>([])

  /// Loads the warm image and starts the tasks.
  init(_ service: ZooService, warm path: String) async throws {
    self.service = service
    guard case .response(200, _, let data) = await service.get(path).reply else {
      throw FailedCheck("the service does not make a good image")
    }
    let use = ProcessUse(of: service.pid)
    let log = log
    log.notes.withLock { $0.before = use?.memory ?? 0 }
    let hits = Task { await Self.hit(service, path, data, log) }
    let samples = Task { await Self.sample(service, log) }
    tasks.withLock { $0 = [hits, samples] }
  }

  private static func hit(_ service: ZooService, _ path: String, _ data: Data, _ log: Log) async {
    while !Task.isCancelled {
      let hasLoad = log.notes.withLock { $0.hasLoad }
      let (reply, time) = await service.get(path)
      switch reply {
      case .response(200, _, data):
        log.notes.withLock { if hasLoad { $0.beside.append(time) } else { $0.alone.append(time) } }
      case .response(let status, _, let other):
        log.notes.withLock { $0.wrongHits.append("status \(status) with \(other.count) bytes in place of \(data.count)") }
      case .none(let reason):
        // The end of the process is reported by itself.
        guard !Task.isCancelled, await !service.hasEnded else { return }
        log.notes.withLock { $0.wrongHits.append("no response: \(reason)") }
      }
      try? await Task.sleep(for: .milliseconds(25))
    }
  }

  private static func sample(_ service: ZooService, _ log: Log) async {
    while !Task.isCancelled, let use = ProcessUse(of: service.pid) {
      let isTooLarge = log.notes.withLock { notes in
        notes.peak = max(notes.peak, use.memory)
        notes.childPeak = max(notes.childPeak, use.childMemory)
        notes.mostChildren = max(notes.mostChildren, use.childCount)
        notes.isTooLarge = notes.isTooLarge || use.memory > largestMemory
        return notes.isTooLarge
      }
      if isTooLarge { return await service.destroy() }
      try? await Task.sleep(for: .milliseconds(100))
    }
  }

  /// Marks the beginning or the end of the time in which other requests are sent.
  func setLoad(_ hasLoad: Bool) { log.notes.withLock { $0.hasLoad = hasLoad } }

  /// Ends the tasks, and returns their notes.
  func finish() async -> Notes {
    let tasks = tasks.withLock { tasks in
      defer { tasks = [] }
      return tasks
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
    return log.notes.withLock { $0 }
  }

  /// Whether the service was ended because of its memory.
  var isTooLarge: Bool { log.notes.withLock { $0.isTooLarge } }

  /// Waits until the service has no work, at most two seconds. Returns `false` if it still works then.
  ///
  /// A codec that goes on after the response takes a whole processor. The warm hits take a small part of one.
  func becomesIdle() async throws -> Bool {
    for _ in 0..<5 {
      guard let first = ProcessUse(of: service.pid) else { return true }
      try await Task.sleep(for: .milliseconds(400))
      guard let second = ProcessUse(of: service.pid) else { return true }
      // Without the time of a child that has ended, the difference is negative.
      if second.time - first.time < 0.2 { return true }
    }
    return false
  }
}
#endif
