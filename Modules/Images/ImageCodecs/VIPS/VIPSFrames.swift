#if VIPS && os(Linux)
internal import CEtagereVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frames of a GIF or WebP. libvips reads them in order as one tall image and computes only the rows that are
/// requested. Going back restarts from the first frame.
///
/// The reader uses memory for one or two full-size images. It exists from the second frame to the last but one. The
/// first frame does not keep a reader, because many callers read no other.
final class VIPSFrames: FrameSource {
  private struct State {
    var reader: VIPSImage?
    /// The first frame that `reader` can still decode.
    var next = 0
  }

  /// A copy that exists as long as the reader, because the library reads it in place.
  private let bytes: PixelMemory?
  /// The number of frames in `bytes` before the first one of the image.
  private let added: Int32
  private let header: ImageHeader
  /// The size of one frame as stored.
  private let stored: PixelSize
  private let loader: VIPSLibrary.Loader
  private let size: PixelSize
  private let strict: Bool
  private let limits: ImageLimits
  private let state = Lock(State())
  /// Separate from the state, whose lock is held while frames are decoded.
  private let readerCost = Lock(0)

  init(
    _ file: VIPSFile, _ header: ImageHeader, _ loader: VIPSLibrary.Loader, size: PixelSize, strict: Bool, limits: ImageLimits
  ) {
    bytes = PixelMemory(byteCount: file.data.count) { memory in file.data.withUnsafeBytes { memory.copyMemory(from: $0) } }
    added = Int32(file.added)
    self.header = header
    self.stored = header.orientation.applied(to: header.size)
    self.loader = loader
    self.size = size
    self.strict = strict
    self.limits = limits
  }

  // The reader is released first, because it refers to the bytes.
  deinit { state.withLock { $0.reader = nil } }

  var cost: Int { (bytes?.byteCount ?? 0) + readerCost.withLock { $0 } }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    let (format, orientation) = (header.format, header.orientation)
    if Task.isCancelled { throw .cancelled }
    let (full, watch) = try state.withLock { state throws(CacheError) in
      // The time limit starts here, because other callers may have held the lock for a long time.
      let watch = DecodingDeadline(limits, format)
      if Task.isCancelled { throw .cancelled }
      return (try read(index, &state, watch), watch)
    }
    if let end = watch.end { throw end }
    let target = orientation.applied(to: size)
    if target == full.size { return try full.upright(from: orientation) }
    let resized = try withWrapped(full) { image throws(CacheError) in try evaluate(image.resized(to: target), format, watch) }
    return try resized.upright(from: orientation)
  }

  private func read(_ index: Int, _ state: inout State, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    let reader: VIPSImage
    if let current = state.reader, index >= state.next {
      reader = current
    } else {
      state.next = 0
      reader = try open()
    }
    // If decoding fails, the reader is released, because its position is undefined.
    keep(nil, &state)
    // Each frame builds on the one before it. Skipped frames are read one at a time, by their last row, so that a call
    // after a timeout continues from there.
    for passed in state.next..<index {
      if let end = watch.end {
        keep(reader, &state)
        throw end
      }
      _ = try rows(reader, (passed + 1) * stored.height - 1, 1, ofFrame: passed)
      state.next = passed + 1
    }
    let frame = try rows(reader, index * stored.height, stored.height, ofFrame: index)
    state.next = index + 1
    if index > 0, index < header.frameCount - 1 { keep(reader, &state) }
    return frame
  }

  private func keep(_ reader: VIPSImage?, _ state: inout State) {
    state.reader = reader
    let cost = reader == nil ? 0 : stored.area * 8
    readerCost.withLock { $0 = cost }
  }

  private func rows(_ reader: VIPSImage, _ first: Int, _ count: Int, ofFrame index: Int) throws(CacheError) -> PixelBuffer {
    if let rows = try reader.rows(from: first, count) { return rows }
    throw VIPSLibrary.failure("frame \(index) is damaged or truncated", header.format)
  }

  private func open() throws(CacheError) -> VIPSImage {
    guard let bytes else { throw CacheError(.other, reason: "\(header.format): no memory for \(header.byteCount) bytes") }
    let image = bytes.withBytes { loader.open($0, from: added, pages: Int32(clamping: header.frameCount), strict: strict) }
    guard let image = image?.standard()?.withoutExtraBands() else {
      throw VIPSLibrary.failure("the frames cannot be read", header.format)
    }
    guard image.size.width == stored.width, image.size.height == stored.height * header.frameCount else {
      throw CacheError(.decodingFailed, reason: "\(header.format): the frames differ in size")
    }
    return image
  }
}
#endif
