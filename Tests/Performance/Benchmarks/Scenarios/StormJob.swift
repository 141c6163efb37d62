#if Origin
import CacheCore
import CacheManager
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import MemoryStore

/// Many loads from a faulty origin, many of which are cancelled or time out.
struct StormJob: Job {
  static let name = "storm"

  let engine: Engine
  let loads: Int
  let seed: UInt64
  /// The number of simultaneous loads.
  let parallel: Int
  /// The folder in which the disk store's folder is created.
  let folder: String

  func run() async throws -> Measurement {
    // A small storm first opens the descriptors that a process opens once.
    _ = try await storm(loads: 200)
    let before = ProcessUsage.openDescriptors
    var measurement = try await storm(loads: loads)
    let leaked = await settled { max(0, ProcessUsage.openDescriptors - before) }
    measurement.add(leaked, to: .leakedDescriptors)
    measurement.check("leaked descriptors", leaked, is: 0)
    return measurement
  }

  private func storm(loads: Int) async throws -> Measurement {
    let script = StormScript(engine: engine)
    let folder = URL(filePath: folder).appending(path: "storm-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = try await OriginServer.start(logLimit: 0)
    script.publish(on: origin)
    var measurement = Measurement()
    let ledger = Ledger(count: loads)
    try await run(loads, script, origin, folder, ledger, &measurement)
    await origin.stop()
    let (lost, doubled) = (ledger.count { $0 == 0 }, ledger.count { $0 > 1 })
    measurement.check("loads that never ended", lost, is: 0)
    measurement.check("loads that ended more than once", doubled, is: 0)
    measurement.check("bodies that differ from the origin's", ledger.wrong, is: 0)
    measurement.add(ledger.succeeded, to: .succeeded)
    measurement.add(ledger.failed, to: .failed)
    measurement.add(ledger.cancelled, to: .cancelled)
    let leaked = await settled { ledger.living }
    measurement.add(leaked, to: .leakedLoads)
    measurement.check("loads that are still referenced", leaked, is: 0)
    return measurement
  }

  /// Runs the loads and checks the cache afterwards. The manager and the engine are released when it returns.
  private func run(
    _ loads: Int, _ script: StormScript, _ origin: OriginServer, _ folder: URL, _ ledger: Ledger, _ measurement: inout Measurement
  ) async throws {
    let open = try engine.makeDownloader(connections: 64)
    let store = try DiskCache(folder: folder, configuration: .init(durability: .none))
    let memory = MemoryCache()
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.memory = memory
        $0.store = store
        $0.validator = ETagValidator()
        $0.callbackQueue = .immediate
      })
    let plans = script.plans(loads, seed: seed)
    let next = AtomicCounter()
    let stopwatch = Stopwatch()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<min(parallel, loads) {
        group.addTask {
          while let plan = next.take(from: plans) {
            await load(plan, body: script.body(of: plan.target), manager, origin, ledger)
          }
        }
      }
    }
    await manager.close()
    stopwatch.stop(&measurement)
    await open.close()
    try await check(store, script, &measurement)
    await store.close()
  }

  private func load(
    _ plan: StormScript.Plan, body: Data?, _ manager: ResourceManager, _ origin: OriginServer, _ ledger: Ledger
  ) async {
    await withCheckedContinuation { continuation in
      let options = RequestOptions {
        $0.timeout = plan.timeout
        $0.idleTimeout = .seconds(1)
        $0.priority = plan.priority
      }
      let task = manager.load(origin.url(plan.target), options: options) { result in
        if ledger.end(plan, result, body: body) { continuation.resume() }
      }
      ledger.began(task)
      guard let yields = plan.yieldsBeforeCancel else { return }
      guard yields > 0 else { return task.cancel() }
      Task {
        for _ in 0..<yields { await Task.yield() }
        task.cancel()
      }
    }
  }

  /// Checks that all entries of the cache have complete bodies.
  private func check(_ store: DiskCache, _ script: StormScript, _ measurement: inout Measurement) async throws {
    let report = try await store.verify()
    if !report.isClean { measurement.failures.append("the cache has damaged entries: \(report.damaged) \(report.unreadable)") }
    let entries = try await store.entries()
    measurement.add(entries.count, to: .stored)
    for entry in entries {
      let target = entry.metadata.request.path ?? ""
      guard let body = script.body(of: target), try await store.entry(for: entry.key)?.body.collect() == body else {
        measurement.failures.append("the cached body of \(target) differs from the origin's")
        continue
      }
    }
    if entries.isEmpty { measurement.failures.append("the cache is empty, because no load has succeeded") }
  }

  /// Waits until a count is 0, because transfers and connections close shortly after their loads.
  ///
  /// - Returns: The count, which is not 0 after 15 seconds.
  private func settled(_ count: () -> Int) async -> Int {
    let clock = SystemClock()
    let end = clock.uptime + .seconds(15)
    while count() > 0, clock.uptime < end { try? await clock.sleep(for: .milliseconds(50)) }
    return count()
  }
}
#endif
