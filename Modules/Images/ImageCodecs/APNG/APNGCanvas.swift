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
