#if Service
internal import CacheCore
internal import ImageCodecs

/// The operations of a request: steps on the image, and the form of the result.
///
/// They are read from the text of a URL. `description` is their canonical text with the sizes in pixels, which names the result
/// in the cache.
struct ImageOperations: Hashable, Codable, Sendable {
  /// A step on the image. Lengths are in pixels.
  enum Step: Hashable, Codable, Sendable {
    case resize(ResizeRule, enlarges: Bool)
    case fill(PixelSize, ImageAnchor)
    case crop(PixelSize, ImageAnchor)
    case cropToAttention(PixelSize)
    case cut(PixelRect)
    case rotate(quarterTurns: Int)
    case flip(isHorizontal: Bool)
    case gray
    case tint(RGBA, amount: Double)
    case round(radius: Double)
    case circle
    case border(width: Double, RGBA, radius: Double)
    case blur(sigma: Double)
  }

  enum ResizeRule: Hashable, Codable, Sendable {
    case width(Int)
    case height(Int)
    case fit(PixelSize)
    case exact(PixelSize)
    case maximumPixels(Int)
  }

  /// The format of the result.
  enum Format: Hashable, Codable, Sendable {
    /// The best format that the client accepts.
    case automatic
    case fixed(ImageFormat)
  }

  /// A width that the client states in a header field.
  struct ClientWidth: Hashable, Codable, Sendable {
    /// The position of the step among the others.
    var index: Int
    /// The width without such a field, or `nil` to leave the size unchanged.
    var fallback: Int?
  }

  var steps: [Step] = []
  var format = Format.automatic
  var quality = 80
  var isLossless = false
  var isProgressive = false
  var effort: Int?
  var background = RGBA(255, 255, 255)
  /// The number of pixels for each unit of length, or `nil` if the client states it.
  var pixelRatio: Double? = 1
  var clientWidth: ClientWidth?
  /// Whether the source is returned unchanged.
  var isOriginal = false
  /// The time after which the URL is not valid.
  var expiry: Timestamp?

  /// The properties that a worker process needs. The service checks the expiry.
  private enum CodingKeys: CodingKey {
    case steps, format, quality, isLossless, isProgressive, effort, background, pixelRatio, clientWidth, isOriginal
  }

  /// The canonical text of the steps and of the encoder.
  var description: String {
    if isOriginal { return "original" }
    var parts = steps.map(\.description)
    if case .fixed(let format) = format { parts.append("format=\(format.name.lowercased())") }
    parts.append("quality=\(quality)")
    if isLossless { parts.append("lossless") }
    if isProgressive { parts.append("progressive") }
    if let effort { parts.append("effort=\(effort)") }
    parts.append("background=\(background.digits)")
    return parts.joined(separator: ",")
  }

  /// Whether a step can make an image larger than its input.
  var enlarges: Bool {
    steps.contains { step in
      switch step {
      case .resize(.exact, _), .resize(_, enlarges: true): true
      default: false
      }
    }
  }

  /// Returns the size of an image before the first step and after each step.
  func sizes(from size: PixelSize) -> [PixelSize] {
    steps.reduce(into: [size]) { sizes, step in sizes.append(step.size(of: sizes[sizes.count - 1])) }
  }

  var processor: ImageProcessor { steps.reduce(.none) { $0 + $1.processor } }

  /// The encoder of the result.
  func encoder(_ format: ImageFormat) -> ImageEncoder {
    var encoder = ImageEncoder(format, quality: quality)
    // A client that accepts no newer format gets PNG for transparent images.
    if format == .jpeg, self.format == .automatic { encoder.alphaFormat = .png }
    encoder.isLossless = isLossless
    encoder.isProgressive = isProgressive
    encoder.effort = effort
    encoder.background = background
    return encoder
  }

  /// Returns the operations with all lengths multiplied by a pixel ratio. No side becomes larger than `maximumSide`.
  func scaled(by ratio: Double, maximumSide: Int) -> ImageOperations {
    guard ratio != 1 else { return self }
    var scaled = self
    scaled.steps = steps.map { $0.scaled(by: Ratio(value: ratio, maximumSide: maximumSide)) }
    return scaled
  }
}

extension ImageOperations.Step {
  var processor: ImageProcessor {
    switch self {
    case .resize(let rule, let enlarges): .resize(enlarges ? rule.sizing.enlarging : rule.sizing)
    case .fill(let size, let anchor): .fill(size.width, size.height, anchor: anchor)
    case .crop(let size, let anchor): .crop(size.width, size.height, anchor: anchor)
    case .cropToAttention(let size): .crop(attention: size.width, size.height)
    case .cut(let rect): .crop(rect)
    case .rotate(let turns): .rotate(quarterTurns: turns)
    case .flip(let isHorizontal): isHorizontal ? .flipHorizontally : .flipVertically
    case .gray: .gray
    case .tint(let color, let amount): .tint(color, amount: amount)
    case .round(let radius): .roundCorners(radius: radius)
    case .circle: .circle
    case .border(let width, let color, let radius): .border(width: width, color: color, radius: radius)
    case .blur(let sigma): .blur(sigma: sigma)
    }
  }

  /// Returns the size that the step makes of an image.
  func size(of size: PixelSize) -> PixelSize {
    switch self {
    case .resize(let rule, let enlarges): (enlarges ? rule.sizing.enlarging : rule.sizing).size(of: size)
    case .fill(let part, _):
      ImageSizing.fill(part.width, part.height).size(of: size).crop(to: part).size
    case .crop(let part, _), .cropToAttention(let part): size.crop(to: part).size
    case .cut(let rect): size.clipping(rect).size
    case .rotate(let turns): turns % 2 == 0 ? size : size.transposed
    case .circle: PixelSize(min(size.width, size.height), min(size.width, size.height))
    case .flip, .gray, .tint, .round, .border, .blur: size
    }
  }

  /// The canonical text, which the parser reads.
  var description: String {
    switch self {
    case .resize(let rule, let enlarges): rule.description + (enlarges ? ":enlarge" : "")
    case .fill(let size, let anchor): "fill=\(size.text):\(anchor.text)"
    case .crop(let size, let anchor): "crop=\(size.text):\(anchor.text)"
    case .cropToAttention(let size): "crop=\(size.text):attention"
    case .cut(let rect): "rect=\(rect.x):\(rect.y):\(rect.size.width):\(rect.size.height)"
    case .rotate(let turns): "rotate=\(turns * 90)"
    case .flip(let isHorizontal): "flip=\(isHorizontal ? "horizontal" : "vertical")"
    case .gray: "gray"
    case .tint(let color, let amount): "tint=\(color.digits):\(amount)"
    case .round(let radius): "radius=\(radius)"
    case .circle: "circle"
    case .border(let width, let color, let radius): "border=\(width):\(color.digits):\(radius)"
    case .blur(let sigma): "blur=\(sigma)"
    }
  }

  fileprivate func scaled(by ratio: ImageOperations.Ratio) -> Self {
    switch self {
    case .resize(let rule, let enlarges): .resize(rule.scaled(by: ratio), enlarges: enlarges)
    case .fill(let size, let anchor): .fill(size.scaled(by: ratio), anchor)
    case .crop(let size, let anchor): .crop(size.scaled(by: ratio), anchor)
    case .cropToAttention(let size): .cropToAttention(size.scaled(by: ratio))
    // The rectangle is a part of the original, whatever the screen.
    case .cut, .rotate, .flip, .gray, .tint, .circle: self
    case .round(let radius): .round(radius: radius * ratio.value)
    case .border(let width, let color, let radius): .border(width: width * ratio.value, color, radius: radius * ratio.value)
    case .blur(let sigma): .blur(sigma: sigma * ratio.value)
    }
  }
}

extension ImageOperations.ResizeRule {
  var sizing: ImageSizing {
    switch self {
    case .width(let width): .width(width)
    case .height(let height): .height(height)
    case .fit(let size): .fit(size.width, size.height)
    case .exact(let size): .exact(size.width, size.height)
    case .maximumPixels(let count): .maxPixels(count)
    }
  }

  fileprivate var description: String {
    switch self {
    case .width(let width): "width=\(width)"
    case .height(let height): "height=\(height)"
    case .fit(let size): "fit=\(size.text)"
    case .exact(let size): "exact=\(size.text)"
    case .maximumPixels(let count): "pixels=\(count)"
    }
  }

  fileprivate func scaled(by ratio: ImageOperations.Ratio) -> Self {
    switch self {
    case .width(let width): .width(ratio.scale(width))
    case .height(let height): .height(ratio.scale(height))
    case .fit(let size): .fit(size.scaled(by: ratio))
    case .exact(let size): .exact(size.scaled(by: ratio))
    case .maximumPixels(let count):
      .maximumPixels(min(Int(Double(count) * ratio.value * ratio.value), ratio.maximumSide * ratio.maximumSide))
    }
  }
}

extension ImageOperations {
  fileprivate struct Ratio {
    let value: Double
    let maximumSide: Int

    func scale(_ side: Int) -> Int { min(max(1, Int((Double(side) * value).rounded())), maximumSide) }
  }
}

extension PixelSize {
  fileprivate var text: String { "\(width)x\(height)" }

  fileprivate func scaled(by ratio: ImageOperations.Ratio) -> PixelSize { PixelSize(ratio.scale(width), ratio.scale(height)) }
}

extension RGBA {
  /// The color in hexadecimal digits: `ff8800`, or `ff880080` if it is transparent.
  fileprivate var digits: String {
    (alpha == 255 ? [red, green, blue] : [red, green, blue, alpha])
      .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

extension ImageAnchor {
  static let names: [String: ImageAnchor] = [
    "center": .center, "top": .top, "bottom": .bottom, "left": .left, "right": .right, "top-left": .topLeft,
    "top-right": .topRight, "bottom-left": .bottomLeft, "bottom-right": .bottomRight,
  ]

  fileprivate var text: String { Self.names.first { $0.value == self }?.key ?? "center" }
}
#endif
