internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What comes before any engine, in this order: the format, the file's length, the header, its limits.
enum EngineRoom {
  struct Reading {
    let engine: any ImageEngine
    let header: ImageHeader
  }

  static func read(_ data: Data, _ limits: ImageLimits) throws(CacheError) -> Reading {
    guard let format = ImageFormat(of: data) else {
      throw CacheError(.decodingFailed, reason: "not a picture: the bytes are \(ForeignContent(data))")
    }
    try limits.check(bytes: data.count, format)
    if format == .svg { try SVGReferences.check(data) }
    if format == .avif || format == .heic, let size = HEIFDimensions(data).largest {
      try limits.check(ImageHeader(format: format, size: size))
    }
    if format == .gif { try limits.check(frames: GIFFrames.count(data), format) }
    let engine = try engine()
    let header = try engine.header(of: data, format)
    try limits.check(header)
    return Reading(engine: engine, header: header)
  }

  /// This platform's engine.
  static func engine() throws(CacheError) -> any ImageEngine {
    #if canImport(ImageIO)
    return ImageIOEngine()
    #elseif VIPS && os(Linux)
    return try VIPSEngine()
    #else
    throw CacheError(
      .unsupported,
      reason:
        "no engine for pictures is built in: enable the trait VIPS of the package Etagere, and install libvips (Debian, Ubuntu: apt-get install libvips-dev)"
    )
    #endif
  }
}
