#if VIPS && os(Linux)
internal import CEtagereVIPS
internal import CacheCore

/// A reference to a libvips image: a header, and pixels that are computed on demand.
final class VIPSImage {
  let pointer: OpaquePointer

  /// Takes ownership of the reference.
  init?(_ pointer: OpaquePointer?) {
    guard let pointer else { return nil }
    self.pointer = pointer
  }

  deinit { etagere_vips_release(pointer) }

  var size: PixelSize { PixelSize(Int(etagere_vips_width(pointer)), Int(etagere_vips_height(pointer))) }
  var bands: Int { Int(etagere_vips_bands(pointer)) }
  var hasAlpha: Bool { etagere_vips_has_alpha(pointer) }
  var depth: Int { Int(etagere_vips_depth(pointer)) }
  var isCMYK: Bool { etagere_vips_is_cmyk(pointer) }

  /// Returns an integer field of the header.
  func number(_ name: String) -> Int? {
    let value = etagere_vips_number(pointer, name, .min)
    return value == .min ? nil : Int(value)
  }

  /// Returns an integer list of the header.
  func numbers(_ name: String) -> [Int] {
    var count: Int32 = 0
    guard let values = etagere_vips_numbers(pointer, name, &count) else { return [] }
    return UnsafeBufferPointer(start: values, count: Int(count)).map(Int.init)
  }

  /// The embedded color profile, or `nil`.
  var profile: [UInt8]? {
    var count = 0
    guard let bytes = etagere_vips_profile(pointer, &count) else { return nil }
    return Array(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// Whether the embedded profile matches the color channels.
  var profileFits: Bool { etagere_vips_profile_fits(pointer) }

  /// Applies an orientation to pixels in memory.
  func upright(from orientation: ImageOrientation) -> VIPSImage? {
    VIPSImage(etagere_vips_upright(pointer, Int32(orientation.rawValue)))
  }
  func standard() -> VIPSImage? { VIPSImage(etagere_vips_standard(pointer)) }
  func firstBands(_ count: Int) -> VIPSImage? { VIPSImage(etagere_vips_first_bands(pointer, Int32(count))) }

  func resized(to size: PixelSize) -> VIPSImage? {
    VIPSImage(etagere_vips_resize(pointer, Int32(size.width), Int32(size.height)))
  }

  /// Returns the upper left corner of the most salient part of the given size.
  func attention(_ size: PixelSize) -> (x: Int, y: Int)? {
    var (x, y): (Int32, Int32) = (0, 0)
    guard etagere_vips_attention(pointer, Int32(size.width), Int32(size.height), &x, &y) else { return nil }
    return (Int(x), Int(y))
  }

  /// Computes all pixels, or returns `nil` if that fails or `watch` stops it.
  ///
  /// - Parameter sharpening: The weights of the neighbors in each direction, or `nil`.
  func pixels(_ watch: DecodingDeadline, sharpening: (x: Double, y: Double)? = nil) -> PixelBuffer? {
    guard let channels = PixelBuffer.Channels(rawValue: bands) else { return nil }
    var count = 0
    let size = size
    let made = withUnsafePointer(to: watch) { watch in
      etagere_vips_pixels(
        pointer, &count, { $0?.assumingMemoryBound(to: DecodingDeadline.self).pointee.end != nil }, UnsafeRawPointer(watch))
    }
    guard let made else { return nil }
    let memory = PixelMemory(taking: made, byteCount: count) { etagere_vips_free($0) }
    guard count == size.area * bands else { return nil }
    if let (x, y) = sharpening, !etagere_vips_sharpen(made, Int32(size.width), Int32(size.height), Int32(bands), x, y) {
      return nil
    }
    return PixelBuffer(size: size, channels: channels, memory: memory)
  }

  /// Computes rows below those computed before. Returns `nil` if that fails.
  func rows(from first: Int, _ count: Int) throws(CacheError) -> PixelBuffer? {
    guard let channels = PixelBuffer.Channels(rawValue: bands) else { return nil }
    var isDone = false
    let size = PixelSize(size.width, count)
    let buffer = try PixelBuffer.filled(size: size, channels: channels) { bytes in
      guard let start = bytes.baseAddress else { return }
      isDone = etagere_vips_rows(pointer, Int32(first), Int32(count), start, bytes.count)
    }
    return isDone ? buffer : nil
  }
}
#endif
