public import CacheCore

/// Pixels in memory: rows from top to bottom, pixels from left to right, no gaps, 8 bits a channel, sRGB. Alpha is **straight**
/// (not multiplied into the colours).
///
/// ```swift
/// let pixels = image.pixels  // RGBA
/// print(pixels[0, 0].red, pixels.bytes.count)
/// ```
///
/// Copies share their bytes, which nothing changes any more.
public struct PixelBuffer: Sendable {
  /// What one pixel consists of, a byte each.
  public enum Channels: Int, Sendable {
    /// A shade of grey.
    case gray = 1
    /// A shade of grey, and alpha.
    case grayAlpha = 2
    /// Red, green, blue.
    case rgb = 3
    /// Red, green, blue, and alpha.
    case rgba = 4

    /// Whether one of them is alpha.
    public var hasAlpha: Bool { self == .grayAlpha || self == .rgba }
  }

  /// Width and height.
  public let size: PixelSize
  /// What one pixel consists of.
  public let channels: Channels
  let memory: PixelMemory

  init(size: PixelSize, channels: Channels, memory: PixelMemory) {
    self.size = size
    self.channels = channels
    self.memory = memory
  }

  /// Pixels of one's own.
  ///
  /// - Parameters:
  ///   - size: at least one pixel.
  ///   - channels: what one pixel consists of.
  ///   - fill: called once, writes all of the bytes. They are zero before.
  /// - Returns: nil for an empty size, or one that has no room in memory.
  public init?(size: PixelSize, channels: Channels = .rgba, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let (count, overflows) = size.area.multipliedReportingOverflow(by: channels.rawValue)
    guard !size.isEmpty, !overflows, let memory = PixelMemory(byteCount: count, fill) else { return nil }
    self.init(size: size, channels: channels, memory: memory)
  }

  /// The length in bytes: width × height × channels.
  public var byteCount: Int { memory.byteCount }

  /// All bytes, copied.
  public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// Reads the bytes where they are.
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try memory.withBytes(body)
  }

  /// One pixel. Column and row must be within the picture.
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

  /// The same pixels with four channels; these, where they have four, **or where memory runs out**: ``channels`` says which.
  /// ``widened()`` throws then.
  public var rgba: PixelBuffer { (try? widened()) ?? self }

  /// The same pixels with four channels; these, where they have four.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` where there is no room for them.
  public func widened() throws(CacheError) -> PixelBuffer {
    if channels == .rgba { return self }
    let (from, step) = (self, channels.rawValue)
    let (green, blue) = step < 3 ? (0, 0) : (1, 2)
    let alpha = step == 2 ? 1 : nil
    let widened = PixelBuffer(size: size) { to in
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
    guard let widened else { throw Self.noRoom(for: size) }
    return widened
  }

  static func noRoom(for size: PixelSize) -> CacheError {
    CacheError(.imageLimitExceeded, reason: "there is no room for a picture of \(size) pixels")
  }
}

/// One pixel: 8 bits a channel, sRGB, straight alpha.
public struct RGBA: Hashable, Sendable {
  /// Red, 0 to 255.
  public var red: UInt8
  /// Green, 0 to 255.
  public var green: UInt8
  /// Blue, 0 to 255.
  public var blue: UInt8
  /// From 0, nothing is seen of it, to 255, nothing is seen through it.
  public var alpha: UInt8

  /// A pixel of its channels.
  public init(_ red: UInt8, _ green: UInt8, _ blue: UInt8, _ alpha: UInt8 = 255) {
    self.red = red
    self.green = green
    self.blue = blue
    self.alpha = alpha
  }
}
