/// How large a picture becomes: a rule that turns any picture's size into another. Values, without pixels; both platforms'
/// engines compute with them.
///
/// ```swift
/// let photo = PixelSize(4000, 3000)
/// print(ImageSizing.fit(400, 400).size(of: photo))  // 400 × 300
/// print(ImageSizing.fill(400, 400).size(of: photo))  // 533 × 400
/// ```
public struct ImageSizing: Hashable, Sendable {
  enum Rule: Hashable, Sendable {
    case fit(PixelSize)
    case fill(PixelSize)
    case exact(PixelSize)
    case pixels(Int)
  }

  let rule: Rule
  /// Whether a picture that is smaller is made larger. It is not, unless said so: more pixels show no more, and cost.
  public var enlarges = false

  init(_ rule: Rule) { self.rule = rule }

  /// The largest size of the same shape that lies within `width` × `height` pixels.
  public static func fit(_ width: Int, _ height: Int) -> Self { Self(.fit(.atLeastOne(width, height))) }
  /// At most so wide, as high as that makes it.
  public static func width(_ width: Int) -> Self { Self(.fit(.atLeastOne(width, .max))) }
  /// At most so high, as wide as that makes it.
  public static func height(_ height: Int) -> Self { Self(.fit(.atLeastOne(.max, height))) }
  /// The smallest size of the same shape that covers `width` × `height` pixels. It is larger than them on one side: a crop takes
  /// the rest off.
  public static func fill(_ width: Int, _ height: Int) -> Self { Self(.fill(.atLeastOne(width, height))) }
  /// Exactly so large, whatever that does to the shape. Enlarges.
  public static func exact(_ width: Int, _ height: Int) -> Self {
    var sizing = Self(.exact(.atLeastOne(width, height)))
    sizing.enlarges = true
    return sizing
  }
  /// The largest size of the same shape with at most `count` pixels.
  public static func maxPixels(_ count: Int) -> Self { Self(.pixels(max(count, 1))) }

  /// The same rule for a picture in points, on a screen of `scale` pixels a point.
  public static func fit(points width: Double, _ height: Double, scale: Double) -> Self {
    let size = PixelSize(points: width, height, scale: scale)
    return fit(size.width, size.height)
  }

  /// The same rule, which makes smaller pictures larger too.
  public var enlarging: Self {
    var sizing = self
    sizing.enlarges = true
    return sizing
  }

  /// What becomes of a picture of `size`: at least one pixel each way. An empty size stays as it is.
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

  /// Rounded to the nearest, and never beyond the bound.
  private static func scaled(_ length: Double, _ factor: Double, _ bound: Int) -> Int {
    min(Int(clamping: length * factor), bound)
  }
}

extension ImageSizing: CustomStringConvertible {
  /// The rule with its parameters, as it stands in cache keys: `fit(400x300)`.
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
