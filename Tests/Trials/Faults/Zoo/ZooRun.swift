#if Service
import CacheCore
import Foundation
import ImageService

/// The requests of a trial, several at a time. The service is started again when it ends or when a codec does not stop.
///
/// If the service ends, or works on after a 504, all requests of that time are suspects. Each of them is sent again to a new
/// service, alone, so that the report names the input.
final class ZooRun {
  /// The results of all requests, the last one of each.
  private(set) var results: [String: ZooResult] = [:]
  /// The names of the inputs that ended the service, or whose codec worked on.
  private var harmful: Set<String> = []
  /// The inputs that ended the service, with its end.
  private(set) var deaths: [String] = []
  /// The inputs whose codec worked on after the response.
  private(set) var endless: [String] = []
  private(set) var notes: [ZooSession.Notes] = []
  /// The longest time of a response beyond the limit of the time, also of requests that were sent again.
  private(set) var worstTime = Duration.zero
  private(set) var repeated = 0
  private(set) var codecFailures: [String: Int] = [:]

  private let start: () async throws -> ZooSession
  private let lanes: Int
  private let executor = ProcessingExecutor()
  private let report: @Sendable (String) -> Void
  private var session: ZooSession

  /// - Parameters:
  ///   - lanes: The number of requests at a time.
  ///   - start: Starts a service.
  init(lanes: Int, report: @escaping @Sendable (String) -> Void, start: @escaping () async throws -> ZooSession) async throws {
    (self.lanes, self.report, self.start) = (lanes, report, start)
    session = try await start()
  }

  /// Sends all requests.
  func run(_ requests: [ZooRequest]) async throws {
    var rest = requests[...]
    while !rest.isEmpty {
      let round = await send(&rest)
      for result in round { note(result) }
      let suspects: [ZooResult]
      if round.contains(where: \.isLost), await session.service.hasEnded {
        suspects = round.filter(\.isLost)
        report("the service ended; suspects: \(suspects.map(\.request.name).joined(separator: ", "))")
        try await restart()
      } else if round.contains(where: \.hasTimedOut), try await !session.becomesIdle() {
        suspects = round.filter(\.hasTimedOut)
        report("a codec does not stop; suspects: \(suspects.map(\.request.name).joined(separator: ", "))")
        try await restart()
      } else {
        continue
      }
      let known = harmful
      for suspect in suspects where !harmful.contains(suspect.request.input.name) { try await sendAlone(suspect.request) }
      if suspects.contains(where: \.isLost), harmful == known {
        deaths.append("one of \(suspects.map(\.request.name).joined(separator: ", ")), which do not end it alone")
      }
      // An input is reported once.
      let found = harmful
      rest = rest.filter { !found.contains($0.input.name) }[...]
    }
    // A request that waited for others, or a machine that was busy, says nothing about an input.
    for result in results.values.sorted(by: { $0.request.name < $1.request.name })
    where (result.isFromLoad || result.isLate && !result.isLost) && !harmful.contains(result.request.input.name) {
      repeated += 1
      try await sendAlone(result.request)
    }
  }

  /// The requests that several tasks take, and their results.
  private final class Queue: Sendable {
    private let content: Lock<(rest: ArraySlice<ZooRequest>, results: [ZooResult], isStopped: Bool)>

    init(_ requests: ArraySlice<ZooRequest>) { content = Lock((requests, [], false)) }

    func next() -> ZooRequest? { content.withLock { $0.isStopped ? nil : $0.rest.popFirst() } }

    func note(_ result: ZooResult) {
      content.withLock {
        $0.results.append(result)
        if result.isLost || result.hasTimedOut { $0.isStopped = true }
      }
    }

    var state: (rest: ArraySlice<ZooRequest>, results: [ZooResult]) { content.withLock { ($0.rest, $0.results) } }
  }

  /// Sends requests until one ends the service or times out. Returns the results.
  private func send(_ rest: inout ArraySlice<ZooRequest>) async -> [ZooResult] {
    let queue = Queue(rest)
    let (service, executor) = (session.service, executor)
    session.setLoad(true)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<lanes {
        group.addTask {
          while let request = queue.next() {
            let (reply, time) = await service.get(request.path)
            // The check decodes images, which would delay the other requests on the cooperative pool.
            queue.note(await withTaskExecutorPreference(executor) { ZooResult(request, reply, time) })
          }
        }
      }
    }
    session.setLoad(false)
    let (left, results) = queue.state
    rest = left
    return results
  }

  private func note(_ result: ZooResult) {
    results[result.request.name] = result
    worstTime = max(worstTime, result.time)
    if let defect = result.defect, !result.isFromLoad { report("\(result.request.name): \(defect)") }
  }

  /// Sends a request to an idle service, and notes whether it ends the service or keeps it busy.
  private func sendAlone(_ request: ZooRequest) async throws {
    session.setLoad(true)
    let (reply, time) = await session.service.get(request.path)
    session.setLoad(false)
    let result = ZooResult(request, reply, time)
    note(result)
    if result.isLost, let end = await session.service.end() {
      let reason = session.isTooLarge ? "more than \(grouped(ZooSession.largestMemory)) bytes of memory" : "\(end)"
      harmful.insert(request.input.name)
      deaths.append("\(request.name): \(reason)")
      report("\(request.name) ends the service: \(reason)")
      try await restart()
    } else if result.hasTimedOut, try await !session.becomesIdle() {
      harmful.insert(request.input.name)
      endless.append(request.name)
      report("\(request.name) keeps a codec busy after the response")
      try await restart()
    }
  }

  private func restart() async throws {
    await noteCounts()
    notes.append(await session.finish())
    await session.service.destroy()
    session = try await start()
  }

  private func noteCounts() async {
    guard session.service.isRunning else { return }
    codecFailures.merge(await session.service.codecFailures()) { $0 + $1 }
  }

  /// Ends the service with SIGTERM after a last good image.
  ///
  /// - Parameter path: A path that was not requested yet.
  /// - Returns: The memory of the service before its end, and the time that the end takes.
  func finish(_ path: String) async throws -> (memory: Int, before: Int, ending: Duration) {
    guard case .response(200, _, _) = await session.service.get(path).reply else {
      throw FailedCheck("after all inputs, the service does not make a good image")
    }
    try require(try await session.becomesIdle(), "after all inputs, the service does not become idle")
    let memory = ProcessUse(of: session.service.pid)?.memory ?? 0
    await noteCounts()
    let last = await session.finish()
    notes.append(last)
    return (memory, last.before, try await session.service.stop())
  }
}
#endif
