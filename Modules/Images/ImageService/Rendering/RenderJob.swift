#if Service
internal import CacheCore
internal import ImageCodecs
internal import ImageWorkers

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
