public import CacheCore
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A decoder that makes images in worker processes, for managers on servers. Animated images become their first frame.
///
/// ```swift
/// let workers = try CodecWorkers()
/// let decoder = WorkerDecoder(ImageDecoder(size: .fit(400, 400)), in: workers)
/// let image = try await manager.load(url, as: ResourceTransform(decoder: decoder)).value
/// ```
///
/// A program with this decoder calls ``CodecWorkers/runIfWorker()`` first. Give the manager an executor, because decoding blocks
/// its thread: `ProcessingExecutor(width: workers.maximumJobs)`.
public struct WorkerDecoder: ResourceDecoder {
  private var decoder: ImageDecoder
  private let workers: CodecWorkers

  /// Creates a decoder with the settings of `decoder`. The time of its limits is the time of a job.
  public init(_ decoder: ImageDecoder, in workers: CodecWorkers) {
    (self.decoder, self.workers) = (decoder, workers)
    self.decoder.firstFrameOnly = true
  }

  public var id: ComponentID { decoder.id }

  /// - Throws: The errors of `ImageDecoder`, and `CacheError.Code.codecCrashed`, `.codecTimedOut` and `.codecOutOfMemory`.
  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage {
    // The worker ends the work itself, if it can.
    let deadline = SuspendingClock.now + decoder.limits.time + .milliseconds(100)
    let (result, bytes) = try workers.run(DecodeJob(decoder: decoder), on: data, until: deadline)
    let count = result.size.area.multipliedReportingOverflow(by: result.channels)
    guard let channels = PixelBuffer.Channels(rawValue: result.channels), !count.overflow, count.partialValue == bytes.count,
      let pixels = PixelBuffer(
        size: result.size, channels: channels,
        fill: { memory in
          memory.copyBytes(from: bytes)
        })
    else { throw CacheError(.codecCrashed, reason: "the codec crashed: it sent pixels that are not an image") }
    return DecodedImage(
      pixels, header: result.header, scale: decoder.scale, url: metadata.request.absoluteURL,
      original: decoder.retainsOriginal ? data : nil, isPartial: result.isPartial)
  }

  public func cost(of value: DecodedImage) -> Int { decoder.cost(of: value) }

  /// The memory of the result. The memory of the codec is that of the worker.
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { 0 }
}

/// The decoding of an image or its first frame. The bytes of the result are its pixels.
struct DecodeJob: WorkerJob {
  struct Result: Codable, Sendable {
    var size: PixelSize
    var channels: Int
    var header: ImageHeader
    var isPartial: Bool
  }

  static let name = "decode"

  var decoder: ImageDecoder

  var timeLimit: Duration {
    get { decoder.limits.time }
    set { decoder.limits.time = newValue }
  }

  var resultLimit: Int { decoder.limits.pixels.multipliedReportingOverflow(by: 4).overflow ? .max : decoder.limits.pixels * 4 }

  func run(on source: Data, memoryLimit: Int) throws(CacheError) -> (Result, Data) {
    let image = try decoder.decode(source)
    let pixels = image.buffer
    let result = Result(size: pixels.size, channels: pixels.channels.rawValue, header: image.header, isPartial: image.isPartial)
    return (result, pixels.withUnsafeBytes { Data($0) })
  }
}

extension CodecWorkers {
  /// Runs the process as a worker if a pool has started it, and does not return then.
  ///
  /// A program with workers must call it first, before it starts threads or reads its arguments. A program with an image service
  /// calls `ImageService.runIfWorker()` instead.
  public static func runIfWorker() { WorkerProgram.runIfWorker([]) }
}
