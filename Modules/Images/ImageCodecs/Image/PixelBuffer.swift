public import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Pixels in memory: rows from top to bottom, pixels from left to right, no gaps, 8 bits per channel, sRGB. Alpha is
/// **straight** (not multiplied into the colors).
///
/// ```swift
/// let pixels = image.pixels  // RGBA
/// print(pixels[0, 0].red, pixels.bytes.count)
/// ```
///
/// Copies share their bytes, which are immutable.
public struct PixelBuffer: Sendable {
  /// The channels of a pixel, one byte each.
  public enum Channels: Int, Sendable {
    /// A shade of gray.
    case gray = 1
    /// A shade of gray, and alpha.
    case grayAlpha = 2
    /// Red, green, blue.
    case rgb = 3
    /// Red, green, blue, and alpha.
    case rgba = 4

    /// Whether the channels include alpha.
    public var hasAlpha: Bool { self == .grayAlpha || self == .rgba }

    /// The fewest channels that preserve an image that the system decoded.
    ///
    /// - Parameters:
    ///   - isGray: Whether the image has only shades of gray.
    ///   - decodedAlpha: Whether the decoded image has an alpha channel. A decoder may add one to an opaque image.
    ///   - fileAlpha: Whether the file has an alpha channel, or `nil` if that is unknown.
    init(isGray: Bool, decodedAlpha: Bool, fileAlpha: Bool? = nil) {
      let hasAlpha = decodedAlpha && fileAlpha != false
      self = isGray ? (hasAlpha ? .grayAlpha : .gray) : hasAlpha ? .rgba : .rgb
    }
  }

  /// The width and height.
  public let size: PixelSize
  /// The channels of a pixel.
  public let channels: Channels
  let memory: PixelMemory

  init(size: PixelSize, channels: Channels, memory: PixelMemory) {
    self.size = size
    self.channels = channels
    self.memory = memory
  }

  /// Creates pixels.
  ///
  /// - Parameters:
  ///   - size: The size, at least one pixel.
  ///   - channels: The channels of a pixel.
  ///   - fill: A closure that is called once to write all bytes, which are zero before.
  /// - Returns: `nil` if the size is empty or there is not enough memory.
  public init?(size: PixelSize, channels: Channels = .rgba, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let (count, overflows) = size.area.multipliedReportingOverflow(by: channels.rawValue)
    guard !size.isEmpty, !overflows, let memory = PixelMemory(byteCount: count, fill) else { return nil }
    self.init(size: size, channels: channels, memory: memory)
  }

  /// The length in bytes: width × height × channels.
  public var byteCount: Int { memory.byteCount }

  /// A copy of all bytes.
  public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// Calls `body` with the bytes in place.
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try memory.withBytes(body)
  }

  /// The pixel at a column and a row, which must be within the image.
  public subscript(x: Int, y: Int) -> RGBA {
    precondition(x >= 0 && x < size.width && y >= 0 && y < size.height, "no pixel at \(x), \(y) in \(size)")
    let start = (y * size.width + x) * channels.rawValue
    return withUnsafeBytes { bytes in
      switch channels {
      case .gray: RGBA(bytes[start], bytes[start], bytes[start])
      case .grayAlpha: RGBA(bytes[start], bytes[start], bytes[start], bytes[start + 1])
      case .rgb: RGBA(bytes[start], bytes[start + 1], bytes[start + 2])
      case .rgba: RGBA(bytes[start], bytes[start + 1], bytes[start + 2], bytes[start + 3])
      }
    }
  }

  /// The pixels with four channels, **or unconverted if there is not enough memory**. ``channels`` tells the
  /// difference. ``widened()`` throws instead.
  public var rgba: PixelBuffer { (try? widened()) ?? self }

  /// Returns the pixels with four channels, which are these if they already have four.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if there is not enough memory.
  public func widened() throws(CacheError) -> PixelBuffer {
    if channels == .rgba { return self }
    let (from, step) = (self, channels.rawValue)
    let (green, blue) = step < 3 ? (0, 0) : (1, 2)
    let alpha = step == 2 ? 1 : nil
    return try Self.filled(size: size) { to in
      from.withUnsafeBytes { from in
        var (source, target) = (0, 0)
        while target < to.count {
          to[target] = from[source]
          to[target + 1] = from[source + green]
          to[target + 2] = from[source + blue]
          to[target + 3] = if let alpha { from[source + alpha] } else { 255 }
          source += step
          target += 4
        }
      }
    }
  }

  /// Returns pixels of four channels with only the given channels. For gray, the red channel is taken, because the channels of
  /// a gray pixel are equal.
  func narrowed(to channels: Channels) throws(CacheError) -> PixelBuffer {
    if channels == self.channels { return self }
    let from = self
    return try Self.filled(size: size, channels: channels) { to in
      from.withUnsafeBytes { from in
        let (step, alpha) = (channels.rawValue, channels.hasAlpha ? channels.rawValue - 1 : nil)
        let colors = alpha ?? step
        var (source, target) = (0, 0)
        while target < to.count {
          for channel in 0..<colors { to[target + channel] = from[source + channel] }
          if let alpha { to[target + alpha] = from[source + 3] }
          source += 4
          target += step
        }
      }
    }
  }

  /// Creates pixels, as ``init(size:channels:fill:)`` does.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if there is not enough memory.
  static func filled(
    size: PixelSize, channels: Channels = .rgba, _ fill: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(CacheError) -> PixelBuffer {
    if let pixels = PixelBuffer(size: size, channels: channels, fill: fill) { return pixels }
    throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(size) pixels")
  }
}

/// One pixel: 8 bits a channel, sRGB, straight alpha.
public struct RGBA: Hashable, Codable, Sendable {
  /// Red, 0 to 255.
  public var red: UInt8
  /// Green, 0 to 255.
  public var green: UInt8
  /// Blue, 0 to 255.
  public var blue: UInt8
  /// Alpha, from 0 (transparent) to 255 (opaque).
  public var alpha: UInt8

  /// Creates a pixel from its channels.
  public init(_ red: UInt8, _ green: UInt8, _ blue: UInt8, _ alpha: UInt8 = 255) {
    self.red = red
    self.green = green
    self.blue = blue
    self.alpha = alpha
  }
}

extension PixelBuffer {
  /// Returns the image composed over one color, or itself if it has no alpha.
  func flattened(onto ground: RGBA) throws(CacheError) -> PixelBuffer {
    guard channels.hasAlpha else { return self }
    let pixels = try widened()
    let under = [Int(ground.red), Int(ground.green), Int(ground.blue)]
    return try Self.filled(size: size) { to in
      pixels.withUnsafeBytes { from in
        for start in stride(from: 0, to: from.count - 3, by: 4) {
          let alpha = Int(from[start + 3])
          for channel in 0..<3 {
            to[start + channel] = UInt8((Int(from[start + channel]) * alpha + under[channel] * (255 - alpha) + 127) / 255)
          }
          to[start + 3] = 255
        }
      }
    }
  }
}

/// A block of memory for pixels, released with its last reference.
// Proof of `@unchecked Sendable`: only the caller of the initializer writes the memory, before it shares the reference.
// After that, it is only read.
final class PixelMemory: @unchecked Sendable {
  let byteCount: Int
  private let start: UnsafeMutableRawPointer
  private let release: @Sendable (UnsafeMutableRawPointer) -> Void

  /// Allocates zeroed memory, to be released with `free`, or returns `nil`. Tests replace it to simulate exhausted
  /// memory.
  @TaskLocal static var allocate: @Sendable (Int) -> UnsafeMutableRawPointer? = { calloc(max($0, 1), 1) }

  /// Takes ownership of allocated memory.
  init(taking start: UnsafeMutableRawPointer, byteCount: Int, release: @escaping @Sendable (UnsafeMutableRawPointer) -> Void) {
    self.start = start
    self.byteCount = byteCount
    self.release = release
  }

  /// Allocates zeroed memory and calls `fill` to write it. Returns `nil` if there is not enough memory, because a trap
  /// would let an attacker stop the process.
  convenience init?(byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    guard let start = Self.allocate(byteCount) else { return nil }
    fill(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
    self.init(taking: start, byteCount: byteCount) { free($0) }
  }

  deinit { release(start) }

  func withBytes<Result, Failure: Error>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: start, count: byteCount))
  }
}
