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

  /// Creates a processor of one step.
  private init(
    _ name: String, sizing: ImageSizing? = nil,
    _ apply: @escaping @Sendable (PixelBuffer, DecodingDeadline) throws(CacheError) -> PixelBuffer
  ) {
    steps = [ImageStep(name: name, sizing: sizing, apply: apply)]
  }

  /// A processor without steps.
  public static let none = ImageProcessor([])

  /// Whether the processor has no steps.
  package var isEmpty: Bool { steps.isEmpty }

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

/// One step of a processor: its name with all parameters, and its work.
struct ImageStep: Sendable {
  /// The name, which is part of cache keys.
  let name: String
  /// The size rule, if the step only resizes. A decoder can perform such a step.
  var sizing: ImageSizing?
  let apply: @Sendable (PixelBuffer, DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// Allocates the result of a step. The memory passed to `fill` is zeroed.
  static func allocate(
    for size: PixelSize, _ channels: PixelBuffer.Channels, _ fill: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(CacheError) -> PixelBuffer {
    try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
    return try PixelBuffer.filled(size: size, channels: channels, fill)
  }
}

extension ImageFormat {
  /// The format of pixels that do not come from a file.
  static let pixels = Self(name: "pixels", mediaType: "application/octet-stream", fileExtension: "bin")
}

extension ImageProcessor {
  /// Resizes the image.
  ///
  /// As the first step of `ResourceTransform.image(_:)`, this is done by the decoder. Some codecs then never create the
  /// full-size pixels.
  public static func resize(_ sizing: ImageSizing) -> Self {
    ImageProcessor("resize(\(sizing))", sizing: sizing) { pixels, watch throws(CacheError) in
      let size = sizing.size(of: pixels.size)
      if size == pixels.size { return pixels }
      try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
      return try ImageInspector.engine().resize(pixels, to: size, watch)
    }
  }

  /// Crops to `width` × `height` pixels at the anchor. Each side is clamped to the image's.
  public static func crop(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    ImageProcessor("crop(\(width)x\(height),\(anchor))") { pixels, _ throws(CacheError) in
      try pixels.part(pixels.size.crop(to: .atLeastOne(width, height), anchor: anchor))
    }
  }

  /// Crops to the part of `rect` within the image. If that part is empty, the step throws
  /// `CacheError.Code.invalidConfiguration`.
  public static func crop(_ rect: PixelRect) -> Self {
    ImageProcessor("crop(\(rect.size.width)x\(rect.size.height)+\(rect.x)+\(rect.y))") {
      pixels, _ throws(CacheError) in
      let part = pixels.size.clipping(rect)
      guard !part.size.isEmpty else {
        throw CacheError(.invalidConfiguration, reason: "the crop \(rect) is outside an image of \(pixels.size)")
      }
      return try pixels.part(part)
    }
  }

  /// Crops to the most salient part of `width` × `height` pixels, as determined by the platform's engine (libvips'
  /// "attention", Vision's saliency). The results differ between platforms.
  public static func crop(attention width: Int, _ height: Int) -> Self {
    ImageProcessor("attention(\(width)x\(height))") { pixels, _ throws(CacheError) in
      let centered = pixels.size.crop(to: .atLeastOne(width, height))
      if centered.size == pixels.size { return pixels }
      let found = try ImageInspector.engine().attention(in: pixels, size: centered.size)
      return try pixels.part(pixels.size.clipping(found))
    }
  }

  /// Fills `width` × `height` pixels: resizes the image to cover them and crops the rest.
  public static func fill(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    resize(.fill(width, height)) + crop(width, height, anchor: anchor)
  }

  /// Rotates by quarter turns, clockwise, or counterclockwise if the number is negative.
  public static func rotate(quarterTurns: Int) -> Self {
    let turns = ((quarterTurns % 4) + 4) % 4
    let orientation: ImageOrientation = [.up, .right, .down, .left][turns]
    return ImageProcessor("turn(\(turns))") { pixels, _ throws(CacheError) in try pixels.upright(from: orientation) }
  }

  /// Mirrors left to right.
  public static let flipHorizontally = flip("horizontal", .upMirrored)

  /// Mirrors top to bottom.
  public static let flipVertically = flip("vertical", .downMirrored)

  private static func flip(_ name: String, _ orientation: ImageOrientation) -> Self {
    ImageProcessor("flip(\(name))") { pixels, _ throws(CacheError) in try pixels.upright(from: orientation) }
  }

  /// Applies `work` to the pixels. `id` identifies the work with all its parameters, because it is part of cache keys.
  public static func custom(
    _ id: String, _ work: @escaping @Sendable (PixelBuffer) throws(CacheError) -> PixelBuffer
  ) -> Self {
    ImageProcessor("custom(\(id.utf8.count):\(id))") { pixels, _ throws(CacheError) in try work(pixels) }
  }
}

extension ImageProcessor {
  /// Converts to shades of gray by the luma of Rec. 709.
  public static let gray = ImageProcessor("gray") { pixels, _ throws(CacheError) in try pixels.gray() }

  /// Blends a color over the image and preserves its alpha. `amount` is between 0 (the unchanged image) and 1 (only the
  /// color).
  public static func tint(_ color: RGBA, amount: Double = 0.5) -> Self {
    let weight = Int(clamping: (amount.isNaN ? 0 : min(max(amount, 0), 1)) * Double(color.alpha))
    return ImageProcessor("tint(\(color.red),\(color.green),\(color.blue),\(weight))") { pixels, _ throws(CacheError) in
      try pixels.mixed(with: color) { _, _ in weight }
    }
  }

  /// Makes the corners transparent outside a radius in pixels, with soft edges. The radius is at most half of the
  /// shorter side.
  public static func roundCorners(radius: Double) -> Self {
    ImageProcessor("round(\(radius))") { pixels, _ throws(CacheError) in try pixels.cut(to: radius) }
  }

  /// Crops the center of the image to a circle.
  public static let circle = ImageProcessor("circle") { pixels, _ throws(CacheError) in
    let side = min(pixels.size.width, pixels.size.height)
    return try pixels.part(pixels.size.crop(to: PixelSize(side, side))).cut(to: Double(side) / 2)
  }

  /// Draws a border of `width` pixels inside the edges, with rounded corners. The size of the image does not change.
  public static func border(width: Double, color: RGBA, radius: Double = 0) -> Self {
    let name = "border(\(width),\(color.red),\(color.green),\(color.blue),\(color.alpha),\(radius))"
    return ImageProcessor(name) { pixels, _ throws(CacheError) in
      let shape = RoundedShape(size: pixels.size, radius: radius)
      return try pixels.mixed(with: color) { x, y in
        (shape.coverage(x, y) - shape.coverage(x, y, inset: width)) * Int(color.alpha) / 255
      }
    }
  }

  /// Blurs with an approximated Gaussian (three box means) of a standard deviation of `sigma` pixels, at most 1,000.
  public static func blur(sigma: Double) -> Self {
    ImageProcessor("blur(\(sigma))") { pixels, watch throws(CacheError) in try pixels.blurred(sigma, watch) }
  }
}
