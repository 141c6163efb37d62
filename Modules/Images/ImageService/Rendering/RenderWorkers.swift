#if Service
internal import CacheCore
internal import ImageCodecs
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
    do throws(CacheError) {
      let (made, file) = try pool.run(job, on: data, until: deadline)
      return (try checked(made, file, job, source: data), file)
    } catch {
      switch error.code {
      case .codecCrashed: refusals.insert(source, error)
      // Another result of the same source may need less time or memory.
      case .codecTimedOut, .codecOutOfMemory: refusals.insert(result, error)
      default: throw error
      }
      report?(error.about(url.map(SourceReference.text)))
      throw error
    }
  }

  /// Checks a result, because a file can take a worker over. Caches must not have something else than the image that a URL names.
  private func checked(
    _ made: RenderJob.Result, _ file: Data, _ job: RenderJob, source: Data
  ) throws(CacheError) -> RenderJob.Result {
    // An image with alpha in a format without it becomes a PNG.
    guard let format = ImageFormat(of: made.isSource ? source : file), made.isSource == job.forbidsTransforming,
      made.isSource || format == job.format || format == .png
    else { throw CacheError(.codecCrashed, reason: "the codec crashed: it sent no image of the format") }
    return RenderJob.Result(mediaType: format.mediaType, isSource: made.isSource)
  }
}

/// The images whose codec failed, for a time. A client that repeats its request must not end a worker each time.
final class RefusedImages: Sendable {
  private struct State {
    var errors: [Data: (error: CacheError, end: Duration)] = [:]
    /// The keys in the order of their ends. An entry that was replaced occurs twice.
    var order: [(key: Data, end: Duration)] = []
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
      guard let (error, end) = keys.compactMap({ state.errors[$0] }).first(where: { now < $0.end }) else { return nil }
      var refusal = error
      refusal.retryAfter = end - now
      return refusal
    }
  }

  func insert(_ key: Data, _ error: CacheError) {
    let now = clock.uptime
    state.withLock { state in
      state.errors[key] = (error, now + lifetime)
      state.order.append((key, now + lifetime))
      var removed = 0
      while removed < state.order.count, state.order.count - removed > Self.limit || state.order[removed].end <= now {
        let (key, end) = state.order[removed]
        if state.errors[key]?.end == end { state.errors[key] = nil }
        removed += 1
      }
      state.order.removeFirst(removed)
    }
  }
}

extension ImageService {
  /// Runs the process as a codec worker if a pool of `CodecWorkers` has started it, and does not return then.
  ///
  /// A program with workers must call it first, before it starts threads or reads its arguments.
  public static func runIfWorker() { WorkerProgram.runIfWorker([RenderJob.self]) }
}

/// The work on one source: decoding, the steps, and encoding.
struct RenderJob: WorkerJob {
  /// The properties of a result.
  struct Result: Codable, Sendable {
    var mediaType: String
    /// Whether the result is the source itself. A worker does not send it back.
    var isSource = false
  }

  static let name = "render"

  var operations: ImageOperations
  var format: ImageFormat
  var limits: ImageService.Limits
  var allowsPartial = false
  var fastShrinkOnLoad = false
  /// Whether the origin forbids to transform the source (RFC 9111 §5.2.2.6).
  var forbidsTransforming = false

  var timeLimit: Duration {
    get { limits.timeout }
    set { limits.timeout = newValue }
  }

  /// No result is larger than its pixels with alpha and some metadata.
  var resultLimit: Int { max(limits.sourcePixels, limits.maximumSide * limits.maximumSide) * 4 + 1_000_000 }

  /// The decoder, which also does the first step if that resizes.
  var decoder: ImageDecoder { parts.decoder }

  private var parts: (decoder: ImageDecoder, processor: ImageProcessor) {
    var (decoder, rest) = operations.processor.decoding(scale: 1)
    decoder.firstFrameOnly = true
    decoder.limits = limits.image
    decoder.allowsPartial = allowsPartial
    decoder.fastShrinkOnLoad = fastShrinkOnLoad
    return (decoder, rest)
  }

  /// Makes the result in this process.
  func render(_ source: Data) throws(CacheError) -> (Result, Data) {
    if forbidsTransforming {
      let type = try ImageHeader(of: source, limits: limits.image).format.mediaType
      return (Result(mediaType: type, isSource: true), Data())
    }
    if operations.enlarges { try checkSizes(from: ImageHeader(of: source, limits: limits.image).size) }
    let (decoder, processor) = parts
    let image = try processor.process(decoder.decode(source))
    var encoder = operations.encoder(format)
    encoder.timeLimit = limits.timeout
    let file = try encoded(image, encoder)
    return (Result(mediaType: ImageFormat(of: file)?.mediaType ?? "application/octet-stream"), file)
  }

  /// Makes the result in a worker.
  func run(on source: Data, memoryLimit: Int) throws(CacheError) -> (Result, Data) {
    let begin = SuspendingClock.now
    let memory = forbidsTransforming ? 0 : workingMemory(for: source)
    guard memory <= memoryLimit else {
      throw CacheError(
        .imageLimitExceeded, reason: "the image needs about \(memory) bytes of memory, and a worker may use \(memoryLimit)")
    }
    do throws(CacheError) {
      return try render(source)
    } catch  where error.code == .imageLimitExceeded && .now - begin >= timeLimit {
      throw CacheError(.codecTimedOut, reason: error.reason)
    }
  }

  /// Encodes an image. An encoder that the codecs do not have is no property of the source.
  private func encoded(_ image: DecodedImage, _ encoder: ImageEncoder) throws(CacheError) -> Data {
    do throws(CacheError) {
      return try encoder.encode(image)
    } catch  where error.code == .unsupported {
      throw CacheError(.encodingFailed, reason: error.reason)
    }
  }

  /// The memory that the work needs, estimated from the header of the source.
  func workingMemory(for source: Data) -> Int {
    guard let (header, memory) = decoder.workingMemory(for: source) else { return 0 }
    let size = header.size
    // Each step has its input and its output, and the encoder has a copy of the last one. The decoder does the first resizing.
    let isShrinking = operations.steps.first.map { if case .resize = $0 { true } else { false } } ?? false
    let areas = operations.sizes(from: size).dropFirst(isShrinking ? 1 : 0).map { Double($0.area) * 4 }
    let largest = zip(areas, areas.dropFirst()).map(+).max() ?? 0
    let encoding = (areas.last ?? 0) * 2
    return memory + Int(clamping: Int64(max(largest, encoding)))
  }

  /// Refuses operations that make an image with a larger side than a URL can request and the source has, or with too many pixels.
  private func checkSizes(from source: PixelSize) throws(CacheError) {
    let side = max(limits.maximumSide, source.width, source.height)
    for size in operations.sizes(from: source) where max(size.width, size.height) > side || size.area > limits.sourcePixels {
      throw CacheError(.imageLimitExceeded, reason: "the operations make an image of \(size), which exceeds the limits")
    }
  }
}
#endif
