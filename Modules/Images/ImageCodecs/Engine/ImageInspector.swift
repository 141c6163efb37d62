internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The checks before any engine, in this order: format, file length, limits that need no engine, header, limits.
enum ImageInspector {
  struct Reading {
    let engine: any ImageEngine
    let header: ImageHeader
    /// Whether the file ends before its last frame or before its end marker. Some codecs ignore that.
    var isCut: Bool
    /// The description of the damage.
    var damage = "the file is truncated"
    /// The bytes for the engine.
    let file: Data
    /// The properties of an SVG.
    let drawing: SVGCheck.Drawing?
    /// The deadline, which started before the checks.
    let watch: DecodingDeadline
  }

  /// - Parameter forDecoding: `false` skips the checks that read the whole file and do not affect the header.
  static func read(_ data: Data, _ limits: ImageLimits, forDecoding: Bool = true) throws(CacheError) -> Reading {
    guard let format = ImageFormat(of: data) else {
      throw CacheError(.decodingFailed, reason: "not an image: the bytes are \(ForeignContent(data))")
    }
    try limits.check(format)
    try limits.check(bytes: data.count, format)
    let watch = DecodingDeadline(limits, format)
    var isCut = false
    var drawing: SVGCheck.Drawing?
    var animationDamage: String?
    switch format {
    case .svg:
      drawing = try SVGCheck.check(data, limits, watch) { embedded throws(CacheError) in
        try read(embedded, limits).header
      }
    case .avif, .heic:
      let dimensions = HEIFDimensions(data, watch)
      if let end = watch.end { throw end }
      if let size = dimensions.largest { try limits.check(ImageHeader(format: format, size: size)) }
      if dimensions.isExcessive {
        throw CacheError(.imageLimitExceeded, reason: "\(format): the file has more parts than any image needs")
      }
    case .gif:
      let frames = GIFFrames(data)
      try limits.check(frames: frames.count, format)
      if !frames.largest.isEmpty { try limits.check(ImageHeader(format: format, size: frames.largest)) }
      isCut = frames.isCut
    case .jpeg: if forDecoding { try JPEGScans.check(data) }
    case .webp: try limits.check(frames: WebPFrames.count(data), format)
    case .png:
      try limits.check(frames: PNGFrames.count(data), format)
      if forDecoding { animationDamage = APNGFile(data)?.damage }
    default: break
    }
    let engine = try engine()
    let file = drawing?.file ?? data
    let header = try engine.header(of: file, format)
    try limits.check(header)
    var reading = Reading(engine: engine, header: header, isCut: isCut, file: file, drawing: drawing, watch: watch)
    if let animationDamage, header.isAnimated { (reading.isCut, reading.damage) = (true, animationDamage) }
    return reading
  }

  /// Returns whether a frame is complete, from what ImageIO reports. ImageIO may report a complete last frame as incomplete, so
  /// the status of the file counts for that frame. WebKit's `ImageDecoderCG` does the same.
  ///
  /// - Parameters:
  ///   - frame: Whether ImageIO reports that the frame is complete.
  ///   - isLast: Whether the frame is the last one. A still image has only that one.
  ///   - file: Whether ImageIO reports that the file is complete.
  static func isComplete(frame: Bool, isLast: Bool, file: Bool) -> Bool { isLast ? file : frame }

  /// The engine in place of the platform's. Tests set it.
  @TaskLocal static var replacement: (any ImageEngine)?

  /// Returns the engine of this platform.
  static func engine() throws(CacheError) -> any ImageEngine {
    if let replacement { return replacement }
    #if canImport(ImageIO)
    return ImageIOEngine()
    #elseif VIPS && os(Linux)
    return try VIPSEngine()
    #else
    throw CacheError(
      .unsupported,
      reason:
        "no image engine: enable the trait VIPS of the package Etagere and install libvips (Debian, Ubuntu: apt-get install libvips-dev)"
    )
    #endif
  }
}
