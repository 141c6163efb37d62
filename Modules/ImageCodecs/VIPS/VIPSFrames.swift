#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frames of a GIF or a WebP, read in order by libvips as one tall picture of which only the rows that are asked for are
/// made. Who goes back begins anew.
///
/// What reads them holds a picture in full size, or two. It is kept from the second frame to the last but one, while somebody is
/// looking: not for the first, which is all that many ever see of it.
final class VIPSFrames: FrameSource {
  private struct State {
    var reader: VIPSImage?
    /// The first frame that `reader` can still make.
    var next = 0
  }

  /// A copy: the library reads it where it is, for as long as the reader lives.
  private let bytes: PixelMemory?
  private let header: ImageHeader
  /// One frame as it is stored.
  private let stored: PixelSize
  private let loader: VIPSLibrary.Loader
  private let size: PixelSize
  private let strict: Bool
  private let limits: ImageLimits
  private let state = Lock(State())
  /// Apart from the state, which is taken for as long as frames are made.
  private let readerCost = Lock(0)

  init(
    _ data: Data, _ header: ImageHeader, _ loader: VIPSLibrary.Loader, size: PixelSize, strict: Bool, limits: ImageLimits
  ) {
    bytes = PixelMemory(byteCount: data.count) { memory in data.withUnsafeBytes { memory.copyMemory(from: $0) } }
    self.header = header
    self.stored = header.orientation.applied(to: header.size)
    self.loader = loader
    self.size = size
    self.strict = strict
    self.limits = limits
  }

  // The reader first: it looks into the bytes.
  deinit { state.withLock { $0.reader = nil } }

  var cost: Int { (bytes?.byteCount ?? 0) + readerCost.withLock { $0 } }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    let (format, orientation) = (header.format, header.orientation)
    if Task.isCancelled { throw .cancelled }
    let (full, watch) = try state.withLock { state throws(CacheError) in
      // Its time begins here: others may have taken all of theirs.
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
    // Let go of where it fails: what it would make next is unknown then.
    keep(nil, &state)
    // Each builds upon the one before it. By their last rows, one at a time: who has no time left goes on from here when asked
    // again.
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
    throw VIPSLibrary.failure("frame \(index) is damaged or cut short", header.format)
  }

  private func open() throws(CacheError) -> VIPSImage {
    guard let bytes else { throw CacheError(.other, reason: "\(header.format): no room for its \(header.byteCount) bytes") }
    let image = bytes.withBytes { loader.open($0, pages: -1, strict: strict) }
    guard let image = image?.standard()?.withoutExtraBands() else {
      throw VIPSLibrary.failure("the frames can't be read", header.format)
    }
    guard image.size.width == stored.width, image.size.height == stored.height * header.frameCount else {
      throw CacheError(.decodingFailed, reason: "\(header.format): the frames are not of one size")
    }
    return image
  }
}
#endif
