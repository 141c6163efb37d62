#if VIPS && os(Linux)
internal import CacheCore
internal import CEtagereVIPS

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The engine for Linux.
struct VIPSEngine: ImageEngine {
  /// The channels of CMYK and alpha.
  private static let mostBands = 5

  init() throws(CacheError) {
    guard VIPSLibrary.isReady else { throw CacheError(.unsupported, reason: "libvips failed to start") }
  }

  func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader {
    let file = VIPSFile(data, format)
    return try withImage(file, format, strict: false) { image throws(CacheError) in
      // Extra channels are dropped only at the end, after all have been decoded and resized.
      guard image.bands <= Self.mostBands else {
        throw CacheError(
          .imageLimitExceeded, reason: "\(format): a pixel has \(image.bands) channels, the limit is \(Self.mostBands)")
      }
      // In HEIF, pages are separate images, and libheif applies the orientation. In TIFF, they are pages.
      let isHEIF = format == .avif || format == .heic
      let isSequence = format == .gif || format == .webp
      let frameCount = isSequence ? max((image.number("n-pages") ?? 1) - file.added, 1) : 1
      let orientation = isHEIF ? .up : ImageOrientation(rawValue: image.number("orientation") ?? 1) ?? .up
      let stored = PixelSize(image.size.width, image.number("page-height") ?? image.size.height)
      let delays = Array(image.numbers("delay").dropFirst(file.added))
      var header = ImageHeader(
        format: format, size: orientation.applied(to: stored), orientation: orientation, frameCount: frameCount,
        delays: frameCount == 1
          ? [] : (0..<frameCount).map { ImageHeader.delay(.milliseconds($0 < delays.count ? delays[$0] : 0)) },
        loopCount: frameCount == 1 ? nil : ImageHeader.loopCount(stated: image.number("loop"), format),
        hasAlpha: image.hasAlpha, colorSpace: Self.colorSpace(of: image), bitDepth: image.depth, byteCount: data.count)
      // libvips reads only the first frame of an animated PNG.
      if format == .png, let file = APNGFile(data, comparesSums: false) { file.describe(in: &header) }
      return header
    }
  }

  private static func colorSpace(of image: VIPSImage) -> String {
    if let profile = image.profile, image.profileFits, let name = ICCProfile(profile)?.name {
      return name
    }
    if image.isCMYK { return ImageHeader.cmyk }
    return image.bands < 3 ? ImageHeader.gray : ImageHeader.sRGB
  }

  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, fast: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer {
    let (format, orientation) = (header.format, header.orientation)
    // The size as stored. The orientation is applied after shrinking.
    let (from, to) = (orientation.applied(to: header.size), orientation.applied(to: size))
    let stored = try withImage(
      VIPSFile(data, format), format, strict: !partial, factor: Self.factor(from, to, format), fast: fast
    ) {
      image throws(CacheError) in
      // A profile for other color channels is ignored, as in browsers.
      if !partial, let profile = image.profile, !image.profileFits, ICCProfile(profile) == nil {
        throw CacheError(.decodingFailed, reason: "\(format): its color profile is damaged")
      }
      let resized = image.size == to ? image : image.resized(to: to)
      let sharpening = fast && format == .jpeg && image.size != from ? Self.sharpening(image.size, from, to) : nil
      return try evaluate(resized?.standard()?.withoutExtraBands(), format, watch, sharpening: sharpening)
    }
    if orientation == .up { return stored }
    return try withWrapped(stored) { image throws(CacheError) in try evaluate(image.upright(from: orientation), format, watch) }
  }

  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource {
    if header.format == .png, let file = APNGFile(data) {
      return APNGFrames(data, file, header, self, size: size, limits: limits)
    }
    guard let loader = VIPSLibrary.loader(of: header.format) else { throw Self.noLoader(header.format) }
    return VIPSFrames(VIPSFile(data, header.format), header, loader, size: size, strict: !partial, limits: limits)
  }

  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    try withWrapped(pixels) { image throws(CacheError) in
      if let resized = image.resized(to: size)?.standard()?.pixels(watch) { return resized }
      let failure = VIPSLibrary.failure("an image of \(pixels.size) cannot be resized to \(size)")
      throw watch.end ?? failure
    }
  }

  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect {
    try withWrapped(pixels) { image throws(CacheError) in
      guard let place = image.attention(size) else { throw VIPSLibrary.failure("the image has no salient part") }
      return PixelRect(x: place.x, y: place.y, size: size)
    }
  }

  // MARK: Shrinking and opening

  /// Returns the factor by which the codec shrinks the image, if it can. If the aspect ratio changes, resampling does
  /// the rest.
  private static func factor(_ from: PixelSize, _ to: PixelSize, _ format: ImageFormat) -> Double {
    let (x, y) = (Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
    guard format == .svg else { return max(min(x, y), 1) }
    // An SVG is drawn as sharp as its larger side requires, with at most four times the target's pixels.
    let bounded = (Double(from.area) / Double(to.area) / 4).squareRoot()
    return min(max(x, y), max(min(x, y), bounded))
  }

  /// Returns the weights of the neighbors that compensate the blur of the codec's shrinking.
  ///
  /// Each shrunk pixel is the average of a square, whose side is a part of a pixel of the result. The inverse of an average
  /// has the weight 1/24 of the squared side. Half as much again is closest to an image that was resampled in full size: Lanczos
  /// blurs a little, too.
  private static func sharpening(_ shrunk: PixelSize, _ from: PixelSize, _ to: PixelSize) -> (x: Double, y: Double) {
    // The codec rounds a shrunk side up.
    let side = (Double(from.width) / Double(shrunk.width)).rounded()
    func weight(_ from: Int, _ to: Int) -> Double {
      let part = side * Double(to) / Double(from)
      return part * part / 16
    }
    return (weight(from.width, to.width), weight(from.height, to.height))
  }

  /// Opens bytes for the duration of `body`. The library reads them in place.
  private func withImage<Result>(
    _ file: VIPSFile, _ format: ImageFormat, strict: Bool, factor: Double = 1, fast: Bool = false,
    _ body: (VIPSImage) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    guard let loader = VIPSLibrary.loader(of: format) else { throw Self.noLoader(format) }
    return try file.data.withBytes { bytes throws(CacheError) in
      guard let image = loader.open(bytes, from: Int32(file.added), pages: 1, strict: strict, factor: factor, fast: fast) else {
        throw VIPSLibrary.failure("the header is damaged or truncated", format)
      }
      return try body(image)
    }
  }

  static func noLoader(_ format: ImageFormat) -> CacheError {
    CacheError(
      .unsupported, reason: "\(format): libvips \(VIPSLibrary.version) has no permitted decoder for this format")
  }
}

/// A file in a form that libvips draws as browsers draw the original.
struct VIPSFile {
  let data: Data
  /// The number of frames that were added before the first one.
  let added: Int

  init(_ data: Data, _ format: ImageFormat) {
    let frames = format == .gif ? GIFFrames(data) : nil
    guard let frames, frames.leavesGap else {
      (self.data, added) = (data, 0)
      return
    }
    (self.data, added) = (frames.addingTransparentScreen(to: data), 1)
  }
}

/// Computes an image's pixels or throws the reason for the failure.
func evaluate(
  _ image: VIPSImage?, _ format: ImageFormat, _ watch: DecodingDeadline, sharpening: (x: Double, y: Double)? = nil
) throws(CacheError) -> PixelBuffer {
  let pixels = image?.pixels(watch, sharpening: sharpening)
  // The library checks the deadline on another thread. On a busy machine, the work may finish before that check.
  if pixels != nil, let end = watch.end { throw end }
  if let pixels { return pixels }
  let failure = VIPSLibrary.failure("the image is damaged or truncated", format)
  throw watch.end ?? failure
}

/// Lets the library use pixels in place.
func withWrapped<Result>(
  _ buffer: PixelBuffer, _ body: (VIPSImage) throws(CacheError) -> Result
) throws(CacheError) -> Result {
  try buffer.withUnsafeBytes { bytes throws(CacheError) in
    let pointer = etagere_vips_wrap(
      bytes.baseAddress, bytes.count, Int32(buffer.size.width), Int32(buffer.size.height), Int32(buffer.channels.rawValue))
    guard let image = VIPSImage(pointer) else {
      throw CacheError(.other, reason: "libvips does not accept an image of \(buffer.size) pixels")
    }
    return try body(image)
  }
}

extension VIPSImage {
  /// Returns the image without channels beyond color and alpha, which some files have.
  func withoutExtraBands() -> VIPSImage? { bands > 4 ? firstBands(4) : self }
}

extension Data {
  /// `withUnsafeBytes` with typed throws.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws(CacheError) -> Result) throws(CacheError) -> Result {
    let outcome: Swift.Result<Result, CacheError> = withUnsafeBytes { bytes in
      do throws(CacheError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try outcome.get()
  }
}

extension VIPSEngine {
  /// Whether libvips writes AVIF, or `nil` if that is unknown. Its operation exists without an AV1 encoder, too.
  private static let knownAVIF = Lock<Bool?>(nil)

  func canEncode(_ format: ImageFormat) -> Bool {
    guard let file = Self.file(ImageEncoder(format)), etagere_vips_has(file.saver) else { return false }
    return format != .avif || encodesAVIF
  }

  private var encodesAVIF: Bool {
    if let known = Self.knownAVIF.withLock({ $0 }) { return known }
    let gray = PixelBuffer(size: PixelSize(16, 16), channels: .rgb) { bytes in for index in bytes.indices { bytes[index] = 128 } }
    guard let gray else { return true }
    let settings = ImageEncoder(.avif)
    do throws(CacheError) {
      _ = try encode(gray, settings, DecodingDeadline(ImageLimits { $0.time = settings.timeLimit }, .avif, work: "encoding"))
      Self.knownAVIF.withLock { $0 = true }
      return true
    } catch {
      // Work that was stopped says nothing about the encoder.
      guard error.code == .encodingFailed else { return true }
      Self.knownAVIF.withLock { $0 = false }
      return false
    }
  }

  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data {
    guard let file = Self.file(settings), etagere_vips_has(file.saver) else {
      throw CacheError(
        .unsupported,
        reason: "\(settings.format): libvips \(VIPSLibrary.version) has no permitted encoder for this format")
    }
    let shown = try settings.format == .jpeg ? pixels.flattened(onto: settings.background) : pixels
    return try withWrapped(shown) { image throws(CacheError) in
      if let data = image.encoded(file.suffix, watch) { return data }
      var failure = VIPSLibrary.failure("the image cannot be encoded", settings.format)
      failure.code = .encodingFailed
      throw watch.end ?? failure
    }
  }

  /// Returns the library's file suffix for a format with options, and the operation that writes it.
  private static func file(_ settings: ImageEncoder) -> (suffix: String, saver: String)? {
    let lossless = settings.isLossless ? ",lossless" : ""
    switch settings.format {
    case .jpeg:
      return (".jpg[Q=\(settings.quality),optimize_coding\(settings.isProgressive ? ",interlace" : "")]", "jpegsave_buffer")
    case .png:
      return (".png[compression=\(settings.effort ?? 6)\(settings.isProgressive ? ",interlace" : "")]", "pngsave_buffer")
    case .webp:
      return (".webp[Q=\(settings.quality)\(lossless),effort=\(settings.effort.map { min($0, 6) } ?? 4)]", "webpsave_buffer")
    case .avif:
      return (".heif[compression=av1,Q=\(settings.quality)\(lossless),effort=\(settings.effort ?? 4)]", "heifsave_buffer")
    case .gif:
      return (".gif[effort=\(settings.effort.map { $0 + 1 } ?? 7)]", "gifsave_buffer")
    case .tiff:
      return (".tif[compression=deflate,predictor=horizontal]", "tiffsave_buffer")
    default:
      return nil
    }
  }
}

extension VIPSImage {
  /// Returns an encoded file, or `nil` if encoding failed or was stopped.
  fileprivate func encoded(_ suffix: String, _ watch: DecodingDeadline) -> Data? {
    var count = 0
    let made = withUnsafePointer(to: watch) { watch in
      etagere_vips_encode(
        pointer, suffix, &count, { $0?.assumingMemoryBound(to: DecodingDeadline.self).pointee.end != nil },
        UnsafeRawPointer(watch))
    }
    guard let made else { return nil }
    return Data(bytesNoCopy: made, count: count, deallocator: .custom { memory, _ in etagere_vips_free(memory) })
  }
}
#endif
