#if VIPS && os(Linux)
internal import CEtagereVIPS
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frames of an animated PNG. Each is decoded as a standalone PNG and composed onto the frames before it. Going
/// back restarts from the first frame.
final class APNGFrames: FrameSource {
  private struct State {
    var canvas: APNGCanvas?
    /// The next frame to draw.
    var next = 0
  }

  private let data: Data
  private let file: APNGFile
  private let header: ImageHeader
  private let engine: VIPSEngine
  private let size: PixelSize
  private let limits: ImageLimits
  private let state = Lock(State())

  init(_ data: Data, _ file: APNGFile, _ header: ImageHeader, _ engine: VIPSEngine, size: PixelSize, limits: ImageLimits) {
    (self.data, self.file, self.header, self.engine) = (data, file, header, engine)
    (self.size, self.limits) = (size, limits)
  }

  /// The size of the canvas. The bytes are counted as the original.
  var cost: Int { file.size.area * 4 }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    guard index < file.frames.count else {
      throw CacheError(.decodingFailed, reason: "PNG: frame \(index) is missing: \(file.damage ?? "the file has no more frames")")
    }
    if Task.isCancelled { throw .cancelled }
    let (full, watch) = try state.withLock { state throws(CacheError) in
      // The time limit starts here, because other callers may have held the lock for a long time.
      let watch = DecodingDeadline(limits, .png)
      return (try draw(index, &state, watch), watch)
    }
    let upright =
      header.orientation == .up
      ? full
      : try withWrapped(full) { image throws(CacheError) in try evaluate(image.upright(from: header.orientation), .png, watch) }
    return upright.size == size ? upright : try engine.resize(upright, to: size, watch)
  }

  private func draw(_ index: Int, _ state: inout State, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    if state.canvas == nil || index < state.next { (state.canvas, state.next) = (APNGCanvas(file.size), 0) }
    // If drawing fails, the canvas is released, because its content is undefined.
    let kept = state.canvas
    state.canvas = nil
    guard let canvas = kept else { throw outOfMemory }
    while true {
      if let end = watch.end {
        // The next call continues from here.
        state.canvas = canvas
        throw end
      }
      let frame = file.frames[state.next]
      let isLast = state.next == index
      let drawn = try draw(frame, isFirst: state.next == 0, on: canvas, isWanted: isLast, watch)
      state.next += 1
      guard isLast else { continue }
      guard let drawn else { throw outOfMemory }
      state.canvas = canvas
      return drawn
    }
  }

  /// - Returns: A copy of the canvas while the frame is shown, if `isWanted`. `nil` if there is not enough memory.
  private func draw(
    _ frame: APNGFile.Frame, isFirst: Bool, on canvas: APNGCanvas, isWanted: Bool, _ watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer? {
    let png = file.png(of: frame, in: data)
    let part = ImageHeader(format: .png, size: frame.rect.size)
    let pixels = try engine.pixels(of: png, part, size: part.size, partial: false, fast: false, watch: watch).rgba
    guard pixels.channels == .rgba, pixels.size == part.size else { throw outOfMemory }
    // Before the first frame, the canvas is empty.
    let restored = frame.disposal == .restore && !isFirst ? canvas.copy(frame.rect) : nil
    if frame.disposal == .restore, !isFirst, restored == nil { throw outOfMemory }
    canvas.draw(pixels, at: frame.rect, frame.blending)
    let drawn = isWanted ? canvas.copy() : nil
    switch frame.disposal {
    case .keep: break
    case .clear: canvas.clear(frame.rect)
    case .restore: if let restored { canvas.draw(restored, at: frame.rect, .replace) } else { canvas.clear(frame.rect) }
    }
    return drawn
  }

  private var outOfMemory: CacheError {
    CacheError(.imageLimitExceeded, reason: "PNG: not enough memory for a frame of \(file.size) pixels")
  }
}
#endif
