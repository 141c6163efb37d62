#if Service
internal import CacheCore
internal import ImageWorkers

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The workers of a service for one result, and the images that they do not try again.
struct RenderWorkers: Sendable {
  let pool: CodecWorkers
  let refusals: RefusedImages
  /// The time at which a worker is ended. It is shortly before the end of the load, which would not tell the reason.
  let deadline: SuspendingClock.Instant
  /// Receives the failures of codecs.
  let report: (@Sendable (CacheError) -> Void)?

  init(_ pool: CodecWorkers, _ refusals: RefusedImages, within limit: Duration, report: (@Sendable (CacheError) -> Void)?) {
    (self.pool, self.refusals, self.report) = (pool, refusals, report)
    deadline = .now + limit - min(.milliseconds(100), limit / 10)
  }

  /// Makes a result in a worker, unless the codec has failed before.
  ///
  /// - Parameters:
  ///   - source: The digest of the source.
  ///   - tag: The entity tag of the result.
  func render(
    _ job: RenderJob, _ data: Data, source: Data, tag: String, url: URL?
  ) throws(CacheError) -> (RenderJob.Result, Data) {
    let result = Data(tag.utf8)
    if let refusal = refusals.error(for: [source, result]) { throw refusal }
    var job = job
    // The worker ends the work itself, if it can, because a new worker takes time to start.
    job.limits.timeout = max(deadline - .now - .milliseconds(50), .milliseconds(10))
    do throws(CacheError) {
      return try pool.run(job, on: data, until: deadline)
    } catch {
      switch error.code {
      case .codecCrashed, .codecOutOfMemory: refusals.insert(source, error)
      // Another result of the same source may take less time.
      case .codecTimedOut: refusals.insert(result, error)
      default: throw error
      }
      report?(error.about(url.map(SourceReference.text)))
      throw error
    }
  }
}

/// The images whose codec failed, for a time. A client that repeats its request must not end a worker each time.
final class RefusedImages: Sendable {
  private struct State {
    var errors: [Data: (error: CacheError, end: Duration)] = [:]
    /// The keys in the order of their insertion, which is that of their ends.
    var order: [Data] = []
  }

  /// The number of images that are remembered.
  static let limit = 10_000

  private let lifetime: Duration
  private let clock: any CacheClock
  private let state = Lock(State())

  init(lifetime: Duration, clock: any CacheClock) { (self.lifetime, self.clock) = (lifetime, clock) }

  /// Returns the error of the first key that is refused, with the time that is left.
  func error(for keys: [Data]) -> CacheError? {
    let now = clock.uptime
    return state.withLock { state in
      guard let (error, end) = keys.compactMap({ state.errors[$0] }).first, now < end else { return nil }
      var refusal = error
      refusal.retryAfter = end - now
      return refusal
    }
  }

  func insert(_ key: Data, _ error: CacheError) {
    let now = clock.uptime
    state.withLock { state in
      if state.errors.updateValue((error, now + lifetime), forKey: key) == nil { state.order.append(key) }
      guard state.order.count > Self.limit else { return }
      for key in state.order.prefix(Self.limit / 10) { state.errors[key] = nil }
      state.order.removeFirst(Self.limit / 10)
    }
  }
}

extension ImageService {
  /// Runs the process as a codec worker if ``CodecWorkers`` has started it, and does not return then.
  ///
  /// A program with workers must call it first, before it starts threads or reads its arguments.
  public static func runIfWorker() { WorkerProgram.runIfWorker([RenderJob.self]) }
}
#endif
