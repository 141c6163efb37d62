#if VIPS && os(Linux)
import Foundation
import ImageCodecs

/// A drawn image that costs a codec about as much as a photograph: gradients, edges, and grain.
///
/// The same seed gives the same image in every run.
enum DrawnPhotograph {
  static func jpeg(_ size: PixelSize, seed: UInt64 = 1, quality: Int = 85) throws -> Data {
    try ImageEncoder(.jpeg, quality: quality).encode(DecodedImage(try pixels(size, seed: seed)))
  }

  private static func pixels(_ size: PixelSize, seed: UInt64) throws -> PixelBuffer {
    var dice = Dice(seed: seed)
    func phase() -> Double { Double(dice.next() % 10_000) / 10_000 * 2 * .pi }
    // One table for the columns and one for the rows: a sine for each pixel would take longer than the measurement.
    let (columns, rows) = (size.width, size.height)
    let across = (0..<3).map { channel in wave(columns, [1.3, 3.1, 17, 61].map { ($0 + Double(channel) * 0.2, phase()) }) }
    let down = (0..<3).map { channel in wave(rows, [0.9, 2.3, 13, 47].map { ($0 + Double(channel) * 0.2, phase()) }) }
    let tiles = (0..<4096).map { _ in Int(dice.next() % 48) - 24 }
    var grain = dice.next() | 1
    let buffer = PixelBuffer(size: size, channels: .rgb) { bytes in
      var place = 0
      for y in 0..<rows {
        for x in 0..<columns {
          grain = grain &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          let noise = Int(grain >> 60) - 8
          let tile = tiles[(x / 97 + y / 89 * 61) % tiles.count]
          for channel in 0..<3 {
            bytes[place] = UInt8(clamping: 128 + across[channel][x] + down[channel][y] + tile + noise)
            place += 1
          }
        }
      }
    }
    guard let buffer else { throw BenchmarkFailure("no memory for an image of \(size)") }
    return buffer
  }

  private static func wave(_ count: Int, _ waves: [(frequency: Double, phase: Double)]) -> [Int] {
    (0..<count).map { index in
      let place = Double(index) / Double(count) * 2 * .pi
      return Int(
        waves.enumerated().reduce(0) { $0 + sin(place * $1.element.frequency + $1.element.phase) * 28 / Double($1.offset + 1) })
    }
  }
}
#endif
