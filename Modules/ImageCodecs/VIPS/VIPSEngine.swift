#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The engine of Linux.
struct VIPSEngine: ImageEngine {
  /// Those of CMYK, and alpha.
  private static let mostBands = 5

  init() throws(CacheError) {
    guard VIPSLibrary.isReady else { throw CacheError(.unsupported, reason: "libvips can't be started") }
  }

  func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader {
    try withImage(data, format, strict: false) { image throws(CacheError) in
      // The rest is left out at the end alone: all of them are decoded, and resized.
      guard image.bands <= Self.mostBands else {
        throw CacheError(
          .imageLimitExceeded, reason: "\(format): a pixel has \(image.bands) channels, the limit is \(Self.mostBands)")
      }
      // A HEIF file's pages are pictures of their own, and libheif turns them itself; a TIFF's are pages.
      let isHEIF = format == .avif || format == .heic
      let isSequence = format == .gif || format == .webp
      let frameCount = isSequence ? max(image.number("n-pages") ?? 1, 1) : 1
      let orientation = isHEIF ? .up : ImageOrientation(rawValue: image.number("orientation") ?? 1) ?? .up
      let stored = PixelSize(image.size.width, image.number("page-height") ?? image.size.height)
      let delays = image.numbers("delay")
      var header = ImageHeader(
        format: format, size: orientation.applied(to: stored), orientation: orientation, frameCount: frameCount,
        delays: frameCount == 1
          ? [] : (0..<frameCount).map { ImageHeader.delay(.milliseconds($0 < delays.count ? delays[$0] : 0)) },
        loopCount: frameCount == 1 ? nil : image.number("loop").flatMap { $0 == 0 ? nil : $0 },
        hasAlpha: image.hasAlpha, colorSpace: Self.colorSpace(of: image), bitDepth: image.depth, byteCount: data.count)
      // The library knows an animated PNG's first frame alone.
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
    // As it is stored: it is turned when it is small.
    let (from, to) = (orientation.applied(to: header.size), orientation.applied(to: size))
    let stored = try withImage(data, format, strict: !partial, factor: Self.factor(from, to, format)) {
      image throws(CacheError) in
      // One that is made for other colours than these is passed over, as in browsers.
      if !partial, let profile = image.profile, !image.profileFits, ICCProfile(profile) == nil {
        throw CacheError(.decodingFailed, reason: "\(format): its colour profile is damaged")
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
    return VIPSFrames(data, header, loader, size: size, strict: !partial, limits: limits)
  }

  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    try withWrapped(pixels) { image throws(CacheError) in
      if let resized = image.resized(to: size)?.standard()?.pixels(watch) { return resized }
      let failure = VIPSLibrary.failure("no picture of \(size) can be made of one of \(pixels.size)")
      throw watch.end ?? failure
    }
  }

  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect {
    try withWrapped(pixels) { image throws(CacheError) in
      guard let place = image.attention(size) else { throw VIPSLibrary.failure("nothing in the picture draws the eye") }
      return PixelRect(x: place.x, y: place.y, size: size)
    }
  }

  // MARK: Parts of it

  /// How many times smaller a codec that can is to make the picture. The rest, where the shape becomes another one, is
  /// resampling.
  private static func factor(_ from: PixelSize, _ to: PixelSize, _ format: ImageFormat) -> Double {
    let (x, y) = (Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
    guard format == .svg else { return max(min(x, y), 1) }
    // A drawing is as sharp as its larger side asks for, within four times the pixels that are wanted.
    let bounded = (Double(from.area) / Double(to.area) / 4).squareRoot()
    return min(max(x, y), max(min(x, y), bounded))
  }

  /// Opens bytes for as long as `body` runs: the library reads them where they are.
  private func withImage<Result>(
    _ data: Data, _ format: ImageFormat, strict: Bool, factor: Double = 1, _ body: (VIPSImage) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    guard let loader = VIPSLibrary.loader(of: format) else { throw Self.noLoader(format) }
    return try data.withBytes { bytes throws(CacheError) in
      guard let image = loader.open(bytes, pages: 1, strict: strict, factor: factor) else {
        throw VIPSLibrary.failure("the header is damaged or cut short", format)
      }
      return try body(image)
    }
  }

  static func noLoader(_ format: ImageFormat) -> CacheError {
    CacheError(
      .unsupported, reason: "\(format): the libvips here (\(VIPSLibrary.version)) has no decoder that may be used for it")
  }
}

/// Makes an image's pixels, or says why there are none.
func evaluate(_ image: VIPSImage?, _ format: ImageFormat, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
  let pixels = image?.pixels(watch)
  // The library asks on another thread than the one that works: on a busy machine the work may be done by then.
  if pixels != nil, let end = watch.end { throw end }
  if let pixels { return pixels }
  let failure = VIPSLibrary.failure("the picture is damaged or cut short", format)
  throw watch.end ?? failure
}

/// Lets the library work on pixels where they are.
func withWrapped<Result>(
  _ buffer: PixelBuffer, _ body: (VIPSImage) throws(CacheError) -> Result
) throws(CacheError) -> Result {
  try buffer.withUnsafeBytes { bytes throws(CacheError) in
    let pointer = etagere_vips_wrap(
      bytes.baseAddress, bytes.count, Int32(buffer.size.width), Int32(buffer.size.height), Int32(buffer.channels.rawValue))
    guard let image = VIPSImage(pointer) else {
      throw CacheError(.other, reason: "libvips takes no picture of \(buffer.size) pixels")
    }
    return try body(image)
  }
}

extension VIPSImage {
  /// Colours and alpha alone: some files have bands beyond them.
  func withoutExtraBands() -> VIPSImage? { bands > 4 ? firstBands(4) : self }
}

extension Data {
  /// `withUnsafeBytes` with the errors' type kept.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws(CacheError) -> Result) throws(CacheError) -> Result {
    let outcome: Swift.Result<Result, CacheError> = withUnsafeBytes { bytes in
      do throws(CacheError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try outcome.get()
  }
}
#endif
