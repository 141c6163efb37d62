#if Origin
import CacheCore
import Etagere
import Foundation
import LoopbackOrigin
import Testing

/// An engine that has to stand the storm, and how it is made.
struct StormEngine: Sendable, CustomTestStringConvertible {
  var testDescription: String
  /// A downloader of the storm's own, and what ends it.
  var make: @Sendable () -> (downloader: any Downloader, close: @Sendable () async -> Void)

  static let urlSession = StormEngine(testDescription: "URLSession") {
    let downloader = SessionDownloader()
    return (downloader, { downloader.close() })
  }

  /// Every engine that this build has: a further one is a value more.
  static let all = [urlSession]
}

/// Loads of every kind from an origin that cuts, resets and stalls, a third of them cancelled at some moment: how often each has
/// ended, and with what.
///
/// Seeded, so that a failure can be had again. A close in the middle of the header section is missing: Foundation traps on it on
/// Linux.
struct Storm: Sendable {
  /// What is left when it has passed.
  struct Outcome: Sendable {
    /// Loads, by how often they have ended.
    var ends: [Int: Int] = [:]
    var succeeded = 0
    var cancelled = 0
    /// Results, files or entries that are not what the origin has.
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

  /// What is random about one load.
  private struct Chance: Sendable {
    var load: Int
    var path: Int
    var kind: Int
    /// After how many turns of the scheduler it is cancelled; nil: never.
    var cancelsAfter: Int?

    init(load: Int, _ dice: inout Dice) {
      self.load = load
      path = Int.random(in: 0..<Storm.paths, using: &dice)
      kind = Int.random(in: 0..<4, using: &dice)
      // Half of them without a turn: on a busy machine a turn can be longer than a load.
      let turns = max(0, Int.random(in: -200..<200, using: &dice))
      cancelsAfter = Int.random(in: 0..<3, using: &dice) == 0 ? turns : nil
    }
  }

  static let paths = 80
  private static let window = 48
  private static let whole = Data((0..<250_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

  var engine: StormEngine
  var loads: Int
  var seed: UInt64

  /// What the origin has at a path.
  private static func body(_ path: Int) -> Data { whole.prefix(3_000 * path + 1_001) }

  /// Only these paths have an answer that comes to its end.
  private static func isWhole(_ path: Int) -> Bool { path % 8 > 4 }

  private static func route(_ path: Int) -> Route {
    let body = body(path)
    let framing: OriginFraming = path % 16 < 8 ? .contentLength : .chunked(of: 8_192)
    let fault: OriginFault? =
      switch path % 8 {
      case 0: .cut(afterBodyBytes: body.count / 2)
      case 1: .resetBeforeHead
      case 2: .reset(afterBodyBytes: 1_000)
      // Stalls cost the idle time-out each; two of the paths are enough.
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

    let log = StormLog()
    await withTaskGroup(of: Void.self) { group in
      for load in 0..<loads {
        let chance = Chance(load: load, &dice)
        if load >= Self.window { await group.next() }
        group.addTask { await Self.carryOut(chance, manager, origin.url("/\(chance.path)"), folder, log) }
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

  private static func carryOut(
    _ chance: Chance, _ manager: ResourceManager, _ url: URL, _ folder: TemporaryFolder, _ log: StormLog
  ) async {
    let options = RequestOptions {
      $0.callbackQueue = .immediate
      // Only a stalled response has to end by its idle timeout: a busy machine must not end another one.
      $0.idleTimeout = isWhole(chance.path) ? .seconds(3_600) : .seconds(1)
    }
    let result: Result<Data, CacheError>
    switch chance.kind {
    case 0:
      result = await byCallback(chance, manager, url, options, log)
    case 1:
      let file = folder.url.appending(path: "\(chance.load).part-of-the-storm")
      result = await byTask(chance, log) { () async throws(CacheError) in
        _ = try await manager.load(url, to: file, options: options)
        return (try? Data(contentsOf: file)) ?? Data()
      }
      if case .failure = result, FileManager.default.fileExists(atPath: file.path) {
        log.note { $0.wrong.append("\(file.lastPathComponent) is there, and its load has failed") }
      }
    case 2:
      // Left at the first event: the end of the iteration is the cancel.
      result = await byTask(chance, log) { () async throws(CacheError) in
        for try await event in manager.events(for: url, options: options) {
          if case .final(let resource) = event { return resource.data }
          if chance.load % 2 == 0 { throw .cancelled }
        }
        throw .cancelled
      }
    default:
      result = await byTask(chance, log) { () async throws(CacheError) in try await manager.load(url, options: options).data }
    }
    log.note { outcome in
      switch result {
      case .success(let data):
        outcome.succeeded += 1
        if !isWhole(chance.path) || data != body(chance.path) {
          outcome.wrong.append("load \(chance.load) of /\(chance.path) has \(data.count) bytes")
        }
      case .failure(let error):
        if error.isCancellation { outcome.cancelled += 1 }
        if isWhole(chance.path), !error.isCancellation {
          outcome.wrong.append("load \(chance.load): \(error)")
        }
      }
    }
  }

  private static func byTask(
    _ chance: Chance, _ log: StormLog, _ work: @escaping @Sendable () async throws(CacheError) -> Data
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
    _ chance: Chance, _ manager: ResourceManager, _ url: URL, _ options: RequestOptions, _ log: StormLog
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

  /// What is not whole in the cache or beside it.
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

/// What has come of a storm so far.
private final class StormLog: Sendable {
  private let state = Lock(Storm.Outcome())

  var outcome: Storm.Outcome { state.withLock { $0 } }

  func note(_ change: (inout Storm.Outcome) -> Void) { state.withLock { change(&$0) } }
}

/// How often one load has ended.
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
