public import CacheCore

/// Limits on images, checked in the header before decoding: 1,340 bytes can decode to 289 million pixels.
///
/// An image that exceeds a limit is refused with `CacheError.Code.imageLimitExceeded`. The reason contains the value
/// and the limit. With a negative limit, every image is refused with
/// `CacheError.Code.invalidConfiguration`. A format that ``formats`` excludes is refused with `CacheError.Code.unsupported`.
public struct ImageLimits: Hashable, Codable, Sendable {
  /// The size of the file in bytes.
  public var bytes = 64 << 20
  /// The pixels of one frame as stored: width times height. A decoded pixel has up to four bytes.
  public var pixels = 100_000_000
  /// The width and the height.
  public var side = 65_535
  /// The number of frames.
  public var frames = 2_000
  /// The time for decoding one frame. It is checked between parts of the image. A codec cannot be stopped within one
  /// call, so the other limits are checked first.
  public var time: Duration = .seconds(20)
  /// The formats that may be decoded, or `nil` for all formats that the engine reads. No codec reads a file of another
  /// format. For files from untrusted sources, use `Set.fitForUntrustedFiles`.
  public var formats: Set<ImageFormat>?

  /// Creates limits and applies `change` to the default values.
  public init(_ change: (inout ImageLimits) -> Void = { _ in }) { change(&self) }

  /// 64 MiB, 100 million pixels, 65,535 pixels per side, 2,000 frames, 20 seconds.
  public static let standard = ImageLimits()

  func check(_ format: ImageFormat) throws(CacheError) {
    try CacheError.require("bytes", bytes, in: 0...)
    try CacheError.require("pixels", pixels, in: 0...)
    try CacheError.require("side", side, in: 0...)
    try CacheError.require("frames", frames, in: 0...)
    try CacheError.require("time", time, in: .zero...)
    guard formats?.contains(format) ?? true else {
      throw CacheError(.unsupported, reason: "\(format): the limits do not allow images of this format")
    }
  }

  func check(bytes count: Int, _ format: ImageFormat) throws(CacheError) {
    guard count <= bytes else { throw exceeded(format, "the file has \(count) bytes, the limit is \(bytes)") }
  }

  func check(_ header: ImageHeader) throws(CacheError) {
    let (size, format) = (header.size, header.format)
    guard !size.isEmpty else { throw CacheError(.decodingFailed, reason: "\(format): the image has no pixels (\(size))") }
    guard size.width <= side, size.height <= side else {
      throw exceeded(format, "the image has \(size) pixels, the limit of a side is \(side)")
    }
    guard size.area <= pixels else {
      throw exceeded(format, "the image has \(size) = \(size.area) pixels, the limit is \(pixels)")
    }
    try check(frames: header.frameCount, format)
  }

  /// Checks the work of drawing an SVG in a size. All its layers at one time may have four times the limit of pixels.
  func check(_ work: SVGWork.Amount?, _ size: PixelSize, in target: PixelSize) throws(CacheError) {
    guard let work else { return }
    let area = Double(target.area)
    let layers = work.layers * area
    guard layers <= Double(pixels) * 4 else {
      let count = Int(clamping: layers)
      throw exceeded(.svg, "its layers and filters have \(count) pixels in a size of \(target), the limit is \(pixels) × 4")
    }
    try check(time: work.time + work.passes * area * SVGWork.pixelTime)
    let factor = max(Double(target.width) / Double(size.width), Double(target.height) / Double(size.height), 1)
    guard work.fontSize * factor <= SVGWork.largestFont * 16 else {
      throw exceeded(.svg, "its largest text is beyond the limit in a size of \(target)")
    }
  }

  /// Checks an estimated time in microseconds.
  func check(time estimate: Double) throws(CacheError) {
    let (seconds, most) = (estimate / 1e6, Double(time.components.seconds) + 1)
    guard seconds <= most else {
      throw exceeded(.svg, "drawing would take about \(Int(clamping: seconds)) s, the limit is \(Int(clamping: most)) s")
    }
  }

  func check(frames count: Int, _ format: ImageFormat) throws(CacheError) {
    guard count <= frames else { throw exceeded(format, "the image has \(count) frames, the limit is \(frames)") }
  }

  func exceededTime(_ format: ImageFormat, _ work: String) -> CacheError {
    exceeded(format, "\(work) took longer than the limit of \(time)")
  }

  private func exceeded(_ format: ImageFormat, _ what: String) -> CacheError {
    CacheError(.imageLimitExceeded, reason: "\(format): \(what)")
  }

  /// The text form for cache keys: a value cached under looser limits must not satisfy a load with tighter limits.
  var parameters: String { self == .standard ? Self.standardParameters : written }

  /// Computed once, because the identity of every image transform contains it.
  private static let standardParameters = standard.written

  private var written: String {
    let formats = formats.map { ",\($0.map(\.name).sorted().joined(separator: "+"))" } ?? ""
    return "\(bytes),\(pixels),\(side),\(frames),\(time.components.seconds).\(time.components.attoseconds)\(formats)"
  }
}

extension CacheError.Code {
  /// The image exceeds a size, frame or time limit (see ``ImageLimits``), or there is not enough memory for it now.
  public static let imageLimitExceeded = Self(rawValue: "imageLimitExceeded")
}
