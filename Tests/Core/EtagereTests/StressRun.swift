#if Origin
import AsyncHTTPNetworking
import CacheCore
import Etagere
import Foundation
import LoopbackOrigin
import Testing

/// An engine for the storm, with a closure that creates it.
struct StressEngine: Sendable, CustomTestStringConvertible {
  var testDescription: String
  /// Whether the platform sometimes stops watching a socket. A load from it ends with its idle timeout.
  var losesSockets = false
  /// Creates a downloader for one storm, with a closure that closes it.
  var make: @Sendable () -> (downloader: any Downloader, close: @Sendable () async -> Void)

  static let urlSession = StressEngine(testDescription: "URLSession", losesSockets: isFoundationOnLinux) {
    let downloader = SessionDownloader()
    return (downloader, { downloader.close() })
  }

  #if AsyncHTTP
  static let asyncHTTP = StressEngine(testDescription: "AsyncHTTP") {
    let downloader = AsyncHTTPDownloader()
    return (downloader, { await downloader.close() })
  }

  /// All engines of this build.
  static let all = [urlSession, asyncHTTP]
  #else
  /// All engines of this build.
  static let all = [urlSession]
  #endif

  #if canImport(FoundationNetworking)
  private static let isFoundationOnLinux = true
  #else
  private static let isFoundationOnLinux = false
  #endif
}

/// Loads in all forms from an origin that cuts, resets and stalls. A third of the loads are cancelled at random times. The storm
/// counts how often each load ends, and with which result.
///
/// The storm is seeded, so that a failure can be repeated. It never closes a connection in the middle of a header section,
/// because Foundation on Linux traps on that.
struct StressRun: Sendable {
  /// The outcome of a storm.
  struct Outcome: Sendable {
    /// The numbers of loads, by the number of their ends.
    var ends: [Int: Int] = [:]
    var succeeded = 0
    var cancelled = 0
    /// Loads of whole responses that ended with their idle timeout on an engine that loses sockets.
    var lost = 0
    /// Results, files or entries that differ from the origin.
    var wrong: [String] = []
  }

  private struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  /// The random properties of one load.
  private struct Chance: Sendable {
    var load: Int
    var path: Int
    var kind: Int
    /// The number of turns after which the load is cancelled, or `nil` for never.
    var cancelsAfter: Int?

    init(load: Int, _ dice: inout Dice) {
      self.load = load
      path = Int.random(in: 0..<StressRun.paths, using: &dice)
      kind = Int.random(in: 0..<4, using: &dice)
      // Half of the cancellations need no turn, because on a busy machine a turn can be longer than a load.
      let turns = max(0, Int.random(in: -200..<200, using: &dice))
      cancelsAfter = Int.random(in: 0..<3, using: &dice) == 0 ? turns : nil
    }
  }

  static let paths = 80
  private static let window = 48
  private static let whole = Data((0..<250_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

  var engine: StressEngine
  var loads: Int
  var seed: UInt64

  /// The body at a path.
  private static func body(_ path: Int) -> Data { whole.prefix(3_000 * path + 1_001) }

  /// Whether the response of a path is complete.
  private static func isWhole(_ path: Int) -> Bool { path % 8 > 4 }

  private static func route(_ path: Int) -> Route {
    let body = body(path)
    let framing: OriginFraming = path % 16 < 8 ? .contentLength : .chunked(of: 8_192)
    let fault: OriginFault? =
      switch path % 8 {
      case 0: .cut(afterBodyBytes: body.count / 2)
      case 1: .resetBeforeHead
      case 2: .reset(afterBodyBytes: 1_000)
      // Each stall costs the idle timeout, so only two paths stall.
      case 3: path == 3 ? .stall(afterBodyBytes: 500) : .cut(afterBodyBytes: body.count - 1)
      case 4: path == 4 ? .stallBeforeHead : .resetBeforeHead
      default: nil
      }
    return switch path % 8 {
    case 5: Route(body, fields: [.cacheControl: "max-age=3600"], delivery: OriginDelivery(framing: framing, fault: fault))
    case 6: Route(body, etag: "v1", delivery: OriginDelivery(framing: framing, fault: fault))
    case 7: Route(body, fields: [.cacheControl: "no-store"], delivery: OriginDelivery(framing: framing, fault: fault))
    default: Route(body, fields: [.cacheControl: "max-age=1"], delivery: OriginDelivery(framing: framing, fault: fault))
    }
  }

  func run() async throws -> Outcome {
    let origin = try await OriginServer.start()
    for path in 0..<Self.paths { origin.setRoute("/\(path)", Self.route(path)) }
    let folder = try TemporaryFolder()
    let (downloader, close) = engine.make()
    var configuration = try ResourceManager.Configuration.standard(
      folder: folder.url.appending(path: "cache"), memoryLimit: 4 << 20)
    configuration.downloader = downloader
    let manager = ResourceManager(configuration)
    var dice = Dice(state: seed &* 0x9e37_79b9_7f4a_7c15 | 1)

    let log = StressLog()
    await withTaskGroup(of: Void.self) { group in
      for load in 0..<loads {
        let chance = Chance(load: load, &dice)
        if load >= Self.window { await group.next() }
        group.addTask { await carryOut(chance, manager, origin.url("/\(chance.path)"), folder, log) }
      }
    }
    await manager.close()
    await close()
    if let disk = configuration.store as? DiskCache { await disk.close() }
    await origin.stop()
    var end = log.outcome
    end.wrong += try await Self.flaws(in: folder)
    return end
  }

  private func carryOut(
    _ chance: Chance, _ manager: ResourceManager, _ url: URL, _ folder: TemporaryFolder, _ log: StressLog
  ) async {
    let options = RequestOptions {
      $0.callbackQueue = .immediate
      // Only a stalled response must end by its idle timeout. A busy machine must not end another one.
      $0.idleTimeout = Self.isWhole(chance.path) ? .seconds(engine.losesSockets ? 60 : 3_600) : .seconds(1)
    }
    let result: Result<Data, CacheError>
    switch chance.kind {
    case 0:
      result = await Self.byCallback(chance, manager, url, options, log)
    case 1:
      let file = folder.url.appending(path: "\(chance.load).part-of-the-storm")
      result = await Self.byTask(chance, log) { () async throws(CacheError) in
        _ = try await manager.load(url, to: file, options: options)
        return (try? Data(contentsOf: file)) ?? Data()
      }
      if case .failure = result, FileManager.default.fileExists(atPath: file.path) {
        log.note { $0.wrong.append("\(file.lastPathComponent) exists, and its load has failed") }
      }
    case 2:
      // The iteration ends at the first event, which cancels the load.
      result = await Self.byTask(chance, log) { () async throws(CacheError) in
        for try await event in manager.events(for: url, options: options) {
          if case .final(let resource) = event { return resource.data }
          if chance.load % 2 == 0 { throw .cancelled }
        }
        throw .cancelled
      }
    default:
      result = await Self.byTask(chance, log) { () async throws(CacheError) in
        try await manager.load(url, options: options).data
      }
    }
    log.note { outcome in
      switch result {
      case .success(let data):
        outcome.succeeded += 1
        if !Self.isWhole(chance.path) || data != Self.body(chance.path) {
          outcome.wrong.append("load \(chance.load) of /\(chance.path) has \(data.count) bytes")
        }
      case .failure(let error):
        if error.isCancellation { outcome.cancelled += 1 }
        guard Self.isWhole(chance.path), !error.isCancellation else { return }
        if engine.losesSockets, error.code == .timedOut {
          outcome.lost += 1
        } else {
          outcome.wrong.append("load \(chance.load): \(error)")
        }
      }
    }
  }

  private static func byTask(
    _ chance: Chance, _ log: StressLog, _ work: @escaping @Sendable () async throws(CacheError) -> Data
  ) async -> Result<Data, CacheError> {
    let task = Task { () async -> Result<Data, CacheError> in
      do throws(CacheError) { return .success(try await work()) } catch { return .failure(error) }
    }
    if chance.cancelsAfter == 0 { task.cancel() }
    let canceller = chance.cancelsAfter.map { turns in
      Task {
        for _ in 0..<turns { await Task.yield() }
        task.cancel()
      }
    }
    let result = await task.value
    await canceller?.value
    log.note { $0.ends[chance.load, default: 0] += 1 }
    return result
  }

  private static func byCallback(
    _ chance: Chance, _ manager: ResourceManager, _ url: URL, _ options: RequestOptions, _ log: StressLog
  ) async -> Result<Data, CacheError> {
    let ends = EndCount()
    let result = await withCheckedContinuation { continuation in
      let task = manager.load(url, options: options) { result in
        if ends.count() == 1 { continuation.resume(returning: result.map(\.data)) }
      }
      guard let turns = chance.cancelsAfter else { return }
      guard turns > 0 else { return task.cancel() }
      Task {
        for _ in 0..<turns { await Task.yield() }
        task.cancel()
      }
    }
    log.note { $0.ends[chance.load, default: 0] += ends.value }
    return result
  }

  /// Returns the incomplete entries in the cache and the files left beside it.
  private static func flaws(in folder: TemporaryFolder) async throws -> [String] {
    var flaws = folder.files.map(\.lastPathComponent).filter { $0.hasPrefix(".etagere-") }.map { "left behind: \($0)" }
    let store = try DiskCache(folder: folder.url.appending(path: "cache"))
    if try await !store.verify().isClean { flaws.append("the store is damaged") }
    for entry in try await store.entries() {
      guard let path = entry.metadata.request.path.flatMap({ Int($0.dropFirst()) }), isWhole(path),
        try await store.entry(for: entry.key)?.body.collect() == body(path)
      else {
        flaws.append("stored, and not whole: \(entry.key)")
        continue
      }
    }
    await store.close()
    return flaws
  }
}

/// The outcome of a storm so far.
private final class StressLog: Sendable {
  private let state = Lock(StressRun.Outcome())

  var outcome: StressRun.Outcome { state.withLock { $0 } }

  func note(_ change: (inout StressRun.Outcome) -> Void) { state.withLock { change(&$0) } }
}

/// The number of times that one load has ended.
private final class EndCount: Sendable {
  private let counted = Lock(0)

  var value: Int { counted.withLock { $0 } }

  func count() -> Int {
    counted.withLock { counted in
      counted += 1
      return counted
    }
  }
}
#endif
