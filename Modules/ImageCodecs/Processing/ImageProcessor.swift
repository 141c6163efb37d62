public import CacheCore

/// Changes pictures: one step or several, put together with `+`. Its identity is made of its steps and their parameters, so equal
/// ones share one cached picture.
///
/// ```swift
/// let avatar = ImageProcessor.fill(96, 96) + .circle + .border(width: 2, color: RGBA(255, 255, 255), radius: 48)
/// let resource = try await manager.load(url, as: .image(avatar))
/// print(avatar)  // resize(fill(96x96))|crop(96x96,0.5,0.5)|circle|border(2.0,255,255,255,255,48.0)
/// ```
///
/// Lengths are in pixels. All steps but resizing and finding what draws the eye are computed here, in whole numbers where that
/// can be done, and come out equal on every platform. Those of an animated picture are taken with each of its frames, when it is
/// asked for.
public struct ImageProcessor: ResourceProcessor {
  let steps: [ImageStep]

  init(_ steps: [ImageStep]) { self.steps = steps }

  /// Changes nothing.
  public static let none = ImageProcessor([])

  /// The first one's steps, then the second one's.
  public static func + (first: ImageProcessor, second: ImageProcessor) -> ImageProcessor {
    ImageProcessor(first.steps + second.steps)
  }

  public var id: ComponentID { ComponentID(Self.self, parameters: description) }

  public func process(_ value: DecodedImage, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage { try process(value) }

  /// The changed picture. Takes the time of the work, on the caller's thread; a cancelled task's work ends.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` when a step would make more pixels than `ImageLimits.standard` allows, or
  ///   takes longer; `.cancelled`.
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
  /// Its steps with their parameters.
  public var description: String { steps.map(\.name).joined(separator: "|") }
}

/// The frames of an animated picture, each of them processed.
struct ProcessedFrames: FrameSource {
  let source: any FrameSource
  let processor: ImageProcessor
  let format: ImageFormat

  var cost: Int { source.cost }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer { try processor.process(source.frame(index), format) }
}
