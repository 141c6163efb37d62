#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The canvas on which the frames of an animated PNG are composed: RGBA, initially transparent.
///
/// One thread at a time may use it.
final class APNGCanvas {
  private let size: PixelSize
  private let pixels: UnsafeMutableRawBufferPointer

  /// Returns `nil` if there is not enough memory.
  init?(_ size: PixelSize) {
    let (count, overflows) = size.area.multipliedReportingOverflow(by: 4)
    guard !size.isEmpty, !overflows, let start = calloc(count, 1) else { return nil }
    self.size = size
    pixels = UnsafeMutableRawBufferPointer(start: start, count: count)
  }

  deinit { free(pixels.baseAddress) }

  /// Composes a frame onto the canvas. `frame` has four channels.
  func draw(_ frame: PixelBuffer, at rect: PixelRect, _ blending: APNGFile.Blending) {
    frame.withUnsafeBytes { source in
      for row in 0..<rect.size.height {
        let (line, first) = (row * rect.size.width * 4, place(rect, row))
        let part = UnsafeRawBufferPointer(rebasing: source[line..<line + rect.size.width * 4])
        switch blending {
        case .replace: UnsafeMutableRawBufferPointer(rebasing: pixels[first..<first + part.count]).copyMemory(from: part)
        case .over: for pixel in stride(from: 0, to: part.count, by: 4) { blend(part, pixel, first + pixel) }
        }
      }
    }
  }

  /// Blends one straight-alpha pixel over another (PNG, third edition, §13.16).
  private func blend(_ source: UnsafeRawBufferPointer, _ from: Int, _ to: Int) {
    let above = Int(source[from + 3])
    guard above > 0 else { return }
    let (upper, lower) = (above * 255, (255 - above) * Int(pixels[to + 3]))
    let sum = upper + lower
    for channel in 0..<3 {
      pixels[to + channel] = UInt8((Int(source[from + channel]) * upper + Int(pixels[to + channel]) * lower + sum / 2) / sum)
    }
    pixels[to + 3] = UInt8((sum + 127) / 255)
  }

  /// Returns a copy of a part of the canvas.
  func copy(_ rect: PixelRect) -> PixelBuffer? {
    PixelBuffer(size: rect.size) { target in
      for row in 0..<rect.size.height {
        let (line, first) = (row * rect.size.width * 4, place(rect, row))
        UnsafeMutableRawBufferPointer(rebasing: target[line...]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: pixels[first..<first + rect.size.width * 4]))
      }
    }
  }

  /// Returns a copy of the whole canvas.
  func copy() -> PixelBuffer? { copy(PixelRect(x: 0, y: 0, size: size)) }

  /// Makes a part of the canvas transparent.
  func clear(_ rect: PixelRect) {
    for row in 0..<rect.size.height {
      let first = place(rect, row)
      for index in first..<first + rect.size.width * 4 { pixels[index] = 0 }
    }
  }

  private func place(_ rect: PixelRect, _ row: Int) -> Int { ((rect.y + row) * size.width + rect.x) * 4 }
}

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
