#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension VIPSEngine {
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
