#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

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
        loopCount: frameCount == 1 ? nil : image.number("loop").flatMap { $0 == 0 ? nil : $0 },
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
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer {
    let (format, orientation) = (header.format, header.orientation)
    // The size as stored. The orientation is applied after shrinking.
    let (from, to) = (orientation.applied(to: header.size), orientation.applied(to: size))
    let stored = try withImage(VIPSFile(data, format), format, strict: !partial, factor: Self.factor(from, to, format)) {
      image throws(CacheError) in
      // A profile for other color channels is ignored, as in browsers.
      if !partial, let profile = image.profile, !image.profileFits, ICCProfile(profile) == nil {
        throw CacheError(.decodingFailed, reason: "\(format): its color profile is damaged")
      }
      let resized = image.size == to ? image : image.resized(to: to)
      return try evaluate(resized?.standard()?.withoutExtraBands(), format, watch)
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

  /// Opens bytes for the duration of `body`. The library reads them in place.
  private func withImage<Result>(
    _ file: VIPSFile, _ format: ImageFormat, strict: Bool, factor: Double = 1,
    _ body: (VIPSImage) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    guard let loader = VIPSLibrary.loader(of: format) else { throw Self.noLoader(format) }
    return try file.data.withBytes { bytes throws(CacheError) in
      guard let image = loader.open(bytes, from: Int32(file.added), pages: 1, strict: strict, factor: factor) else {
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
func evaluate(_ image: VIPSImage?, _ format: ImageFormat, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
  let pixels = image?.pixels(watch)
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
#endif
