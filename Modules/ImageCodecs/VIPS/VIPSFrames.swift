#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frames of a GIF or a WebP, read in order by libvips as one tall picture of which only the rows that are asked for are made. Who goes back begins anew.
final class VIPSFrames: FrameSource {
  private struct State {
    var reader: VIPSImage?
    /// The first frame that `reader` can still make.
    var next = 0
  }

  /// A copy: the library reads it where it is, for as long as the reader lives.
  private let bytes: PixelMemory?
  private let header: ImageHeader
  private let loader: VIPSLibrary.Loader
  private let size: PixelSize
  private let strict: Bool
  private let limits: ImageLimits
  private let state = Lock(State())

  init(
    _ data: Data, _ header: ImageHeader, _ loader: VIPSLibrary.Loader, size: PixelSize, strict: Bool, limits: ImageLimits
  ) {
    bytes = PixelMemory(byteCount: data.count) { memory in data.withUnsafeBytes { memory.copyMemory(from: $0) } }
    self.header = header
    self.loader = loader
    self.size = size
    self.strict = strict
    self.limits = limits
  }

  // The reader first: it looks into the bytes.
  deinit { state.withLock { $0.reader = nil } }

  var cost: Int { bytes?.byteCount ?? 0 }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    let format = header.format
    let watch = DecodingWatch(limits, format)
    let full = try state.withLock { state throws(CacheError) in
      let reader: VIPSImage
      if let current = state.reader, index >= state.next { reader = current } else { reader = try open() }
      // Let go of where it fails: what it would make next is unknown then.
      state.reader = nil
      guard let frame = reader.rows(from: index * header.size.height, header.size.height) else {
        throw VIPSLibrary.failure("frame \(index) is damaged or cut short", format)
      }
      state.reader = reader
      state.next = index + 1
      return frame
    }
    if let end = watch.end { throw end }
    if size == full.size { return full }
    return try withWrapped(full) { image throws(CacheError) in try evaluate(image.resized(to: size), format, watch) }
  }

  private func open() throws(CacheError) -> VIPSImage {
    guard let bytes else { throw CacheError(.other, reason: "\(header.format): no room for its \(header.byteCount) bytes") }
    let image = bytes.withBytes { loader.open($0, pages: -1, strict: strict) }
    guard let image = image?.standard()?.withoutExtraBands() else {
      throw VIPSLibrary.failure("the frames can't be read", header.format)
    }
    guard image.size.width == header.size.width, image.size.height == header.size.height * header.frameCount else {
      throw CacheError(.decodingFailed, reason: "\(header.format): the frames are not of one size")
    }
    return image
  }
}
#endif
