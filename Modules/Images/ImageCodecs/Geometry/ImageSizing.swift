/// A rule that derives the size of a resized image from its original size. It is a value without pixels and gives equal
/// results on all platforms. A side or a number of pixels below 1 counts as 1, because a view has no size before its first
/// layout.
///
/// ```swift
/// let photo = PixelSize(4000, 3000)
/// print(ImageSizing.fit(400, 400).size(of: photo))  // 400 × 300
/// print(ImageSizing.fill(400, 400).size(of: photo))  // 533 × 400
/// ```
public struct ImageSizing: Hashable, Codable, Sendable {
  enum Rule: Hashable, Codable, Sendable {
    case fit(PixelSize)
    case fill(PixelSize)
    case exact(PixelSize)
    case pixels(Int)
  }

  let rule: Rule
  /// Whether smaller images are enlarged. By default they are not, because more pixels cost memory and show no more
  /// detail.
  public var enlarges = false

  init(_ rule: Rule) { self.rule = rule }

  /// The largest size with the same aspect ratio within `width` × `height` pixels.
  public static func fit(_ width: Int, _ height: Int) -> Self { Self(.fit(.atLeastOne(width, height))) }
  /// A size with at most the given width and the same aspect ratio.
  public static func width(_ width: Int) -> Self { Self(.fit(.atLeastOne(width, .max))) }
  /// A size with at most the given height and the same aspect ratio.
  public static func height(_ height: Int) -> Self { Self(.fit(.atLeastOne(.max, height))) }
  /// The smallest size with the same aspect ratio that covers `width` × `height` pixels. One side may be larger; a crop
  /// removes the excess.
  public static func fill(_ width: Int, _ height: Int) -> Self { Self(.fill(.atLeastOne(width, height))) }
  /// A size of exactly `width` × `height` pixels, regardless of the aspect ratio. It enlarges smaller images.
  public static func exact(_ width: Int, _ height: Int) -> Self {
    var sizing = Self(.exact(.atLeastOne(width, height)))
    sizing.enlarges = true
    return sizing
  }
  /// The largest size with the same aspect ratio and at most `count` pixels.
  public static func maxPixels(_ count: Int) -> Self { Self(.pixels(max(count, 1))) }

  /// The largest size with the same aspect ratio within a size in points, on a screen of `scale` pixels per point.
  public static func fit(points width: Double, _ height: Double, scale: Double) -> Self {
    let size = PixelSize(points: width, height, scale: scale)
    return fit(size.width, size.height)
  }

  /// The same rule with ``enlarges`` set.
  public var enlarging: Self {
    var sizing = self
    sizing.enlarges = true
    return sizing
  }

  /// Returns the size of the resized image: at least one pixel per side. An empty size is returned unchanged.
  public func size(of size: PixelSize) -> PixelSize {
    guard !size.isEmpty else { return size }
    let (width, height) = (Double(size.width), Double(size.height))
    var factor: Double
    switch rule {
    case .exact(let target): return enlarges ? target : PixelSize(min(target.width, size.width), min(target.height, size.height))
    case .fit(let target): factor = min(Double(target.width) / width, Double(target.height) / height)
    case .fill(let target): factor = max(Double(target.width) / width, Double(target.height) / height)
    case .pixels(let count): factor = (Double(count) / (width * height)).squareRoot()
    }
    if factor > 1, !enlarges { factor = 1 }
    guard factor != 1 else { return size }
    switch rule {
    case .fit(let target):
      return .atLeastOne(Self.scaled(width, factor, target.width), Self.scaled(height, factor, target.height))
    case .pixels:
      return .atLeastOne(Int(clamping: (width * factor).rounded(.down)), Int(clamping: (height * factor).rounded(.down)))
    default: return .atLeastOne(Int(clamping: width * factor), Int(clamping: height * factor))
    }
  }

  /// Rounds to the nearest integer within the bound.
  private static func scaled(_ length: Double, _ factor: Double, _ bound: Int) -> Int {
    min(Int(clamping: length * factor), bound)
  }
}

extension ImageSizing: CustomStringConvertible {
  /// The rule with its parameters, for cache keys: `fit(400x300)`.
  public var description: String {
    let text =
      switch rule {
      case .fit(let size): "fit(\(Self.text(size)))"
      case .fill(let size): "fill(\(Self.text(size)))"
      case .exact(let size): "exact(\(Self.text(size)))"
      case .pixels(let count): "pixels(\(count))"
      }
    if case .exact = rule { return enlarges ? text : text + "-" }
    return enlarges ? text + "+" : text
  }

  private static func text(_ size: PixelSize) -> String {
    "\(size.width == .max ? "" : "\(size.width)")x\(size.height == .max ? "" : "\(size.height)")"
  }
}

extension PixelSize {
  static func atLeastOne(_ width: Int, _ height: Int) -> PixelSize { PixelSize(max(width, 1), max(height, 1)) }
}

/// The position of the part of an image that a crop preserves.
public struct ImageAnchor: Hashable, Codable, Sendable {
  /// The horizontal position, from 0 (left) to 1 (right).
  public let x: Double
  /// The vertical position, from 0 (top) to 1 (bottom).
  public let y: Double

  /// Creates an anchor from 0, 0 (upper left) to 1, 1 (lower right). Values outside the range are clamped, and NaN
  /// becomes the center.
  public init(x: Double, y: Double) {
    self.x = x.isNaN ? 0.5 : min(max(x, 0), 1)
    self.y = y.isNaN ? 0.5 : min(max(y, 0), 1)
  }

  /// The center.
  public static let center = ImageAnchor(x: 0.5, y: 0.5)
  /// The center of the upper edge.
  public static let top = ImageAnchor(x: 0.5, y: 0)
  /// The center of the lower edge.
  public static let bottom = ImageAnchor(x: 0.5, y: 1)
  /// The center of the left edge.
  public static let left = ImageAnchor(x: 0, y: 0.5)
  /// The center of the right edge.
  public static let right = ImageAnchor(x: 1, y: 0.5)
  /// The upper left corner.
  public static let topLeft = ImageAnchor(x: 0, y: 0)
  /// The upper right corner.
  public static let topRight = ImageAnchor(x: 1, y: 0)
  /// The lower left corner.
  public static let bottomLeft = ImageAnchor(x: 0, y: 1)
  /// The lower right corner.
  public static let bottomRight = ImageAnchor(x: 1, y: 1)
}

extension ImageAnchor: CustomStringConvertible {
  /// The text form, such as `0.5,0.0`.
  public var description: String { "\(x),\(y)" }
}
