public import CacheCore

/// An image transformation of one or more steps, combined with `+`. Its identity consists of its steps and their
/// parameters, so equal processors share one cached image.
///
/// ```swift
/// let avatar = ImageProcessor.fill(96, 96) + .circle + .border(width: 2, color: RGBA(255, 255, 255), radius: 48)
/// let resource = try await manager.load(url, as: .image(avatar))
/// print(avatar)  // resize(fill(96x96))|crop(96x96,0.5,0.5)|circle|border(2.0,255,255,255,255,48.0)
/// ```
///
/// Lengths are in pixels. All steps except resizing and finding the salient part are implemented in this module, in
/// integer arithmetic where possible, and give equal results on every platform. For animated images, the steps are
/// applied to each frame when it is read.
public struct ImageProcessor: ResourceProcessor {
  let steps: [ImageStep]

  init(_ steps: [ImageStep]) { self.steps = steps }

  /// A processor without steps.
  public static let none = ImageProcessor([])

  /// Returns a processor with the steps of both, in order.
  public static func + (first: ImageProcessor, second: ImageProcessor) -> ImageProcessor {
    ImageProcessor(first.steps + second.steps)
  }

  public var id: ComponentID { ComponentID(Self.self, parameters: description) }

  public func process(_ value: DecodedImage, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage { try process(value) }

  /// Processes an image synchronously on the caller's thread. If the task is cancelled, the work stops.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if a step exceeds the pixel or time limit of
  ///   `ImageLimits.standard`, and `.cancelled`.
  public func process(_ image: DecodedImage) throws(CacheError) -> DecodedImage {
    if steps.isEmpty { return image }
    let frames = image.frames.map { ProcessedFrames(source: $0, processor: self, format: image.format) }
    return DecodedImage(
      buffer: try process(image.buffer, image.format), header: image.header, scale: image.scale, url: image.url,
      original: image.original, isPartial: image.isPartial, frames: frames)
  }

  func process(_ pixels: PixelBuffer, _ format: ImageFormat) throws(CacheError) -> PixelBuffer {
    let watch = DecodingDeadline(.standard, format, work: "processing")
    var pixels = pixels
    for step in steps {
      if let end = watch.end { throw end }
      pixels = try step.apply(pixels, watch)
    }
    return pixels
  }
}

extension ImageProcessor: CustomStringConvertible {
  /// The steps with their parameters.
  public var description: String { steps.map(\.name).joined(separator: "|") }
}

/// The processed frames of an animated image.
struct ProcessedFrames: FrameSource {
  let source: any FrameSource
  let processor: ImageProcessor
  let format: ImageFormat

  var cost: Int { source.cost }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer { try processor.process(source.frame(index), format) }
}
