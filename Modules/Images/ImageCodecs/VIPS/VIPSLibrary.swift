#if VIPS && os(Linux)
internal import CEtagereVIPS
internal import CacheCore

/// The system's libvips, which is started on first use and shared by the whole process.
enum VIPSLibrary {
  /// Whether the library has started.
  static let isReady = etagere_vips_start() == 0

  /// Set once, because GLib ends the process if a second writer is set.
  static let discardsMessages: Void = etagere_vips_discard_messages()

  /// The version of the library, such as `8.14.1`.
  static var version: String { String(cString: etagere_vips_version()) }

  /// Returns the loader of a format, or `nil` if the library has none.
  static func loader(of format: ImageFormat) -> Loader? {
    let loader: Loader? =
      switch format {
      case .jpeg: Loader(name: "jpegload_buffer", hasPages: false, reduction: .shrink)
      case .png: Loader(name: "pngload_buffer", hasPages: false)
      case .gif: Loader(name: "gifload_buffer", hasPages: true)
      case .webp: Loader(name: "webpload_buffer", hasPages: true, reduction: .scale)
      case .avif, .heic: Loader(name: "heifload_buffer", hasPages: true)
      case .tiff: Loader(name: "tiffload_buffer", hasPages: true)
      case .svg: Loader(name: "svgload_buffer", hasPages: false, reduction: .scale)
      default: nil
      }
    guard let loader, etagere_vips_has(loader.name) else { return nil }
    return loader
  }

  struct Loader {
    /// The sizes to which a codec can decode.
    enum Reduction {
      /// Only the full size.
      case none
      /// A half, a quarter or an eighth.
      case shrink
      /// Any size.
      case scale
    }

    let name: String
    let hasPages: Bool
    var reduction = Reduction.none

    /// Opens bytes, which must stay in place.
    ///
    /// - Parameters:
    ///   - first: The index of the first frame.
    ///   - factor: The factor by which the image will be shrunk.
    ///   - fast: Whether the codec shrinks as far as sharpening can compensate.
    func open(
      _ bytes: UnsafeRawBufferPointer, from first: Int32 = 0, pages: Int32, strict: Bool, factor: Double = 1, fast: Bool = false
    ) -> VIPSImage? {
      let shrink: Int32
      switch reduction {
      // The codec's shrinking is coarse, so at least a factor of two is left to resampling. With less than 1.25, the image loses
      // 0.3 to 0.8 dB, also with sharpening.
      case .shrink: shrink = [8, 4, 2].first { factor >= Double($0) * (fast ? 1.25 : 2) } ?? 1
      case .none, .scale: shrink = 0
      }
      let scale = reduction == .scale && factor != 1 ? 1 / factor : 0
      return VIPSImage(
        etagere_vips_open(bytes.baseAddress, bytes.count, name, first, hasPages ? pages : 0, strict, shrink, scale))
    }
  }

  /// Returns an error with the library's description of the last failure on one line. The library has one list for all
  /// threads: a description can be that of another image. Therefore it only follows the package's reason and decides
  /// nothing.
  static func failure(_ what: String, _ format: ImageFormat? = nil) -> CacheError {
    var reason = format.map { "\($0): \(what)" } ?? what
    if let text = etagere_vips_take_error() {
      let lines = String(cString: text).split(whereSeparator: \.isNewline).prefix(3)
      etagere_vips_free(text)
      if !lines.isEmpty { reason += " (\(lines.joined(separator: "; ").prefix(300)))" }
    }
    return CacheError(.decodingFailed, reason: reason)
  }
}

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
