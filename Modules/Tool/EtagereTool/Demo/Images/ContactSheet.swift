#if Demo
import Etagere
import Foundation

/// A sheet of thumbnails in rows, each in a frame.
struct ContactSheet {
  /// A thumbnail and the color of its frame.
  struct Cell {
    var image: DecodedImage
    var frame: RGBA
  }

  private static let columns = 6
  private static let gap = 12
  private static let frame = 4
  private static let ground = RGBA(246, 246, 244)

  private var rows: [[Cell]] = []

  /// Adds thumbnails, starting in a new row.
  mutating func add(_ cells: [Cell]) {
    for start in stride(from: 0, to: cells.count, by: Self.columns) {
      rows.append(Array(cells[start..<min(start + Self.columns, cells.count)]))
    }
  }

  private static func height(of row: [Cell]) -> Int { (row.map(\.image.size.height).max() ?? 0) + frame * 2 }

  /// The size of the whole sheet in pixels.
  var size: PixelSize {
    let widths = rows.map { $0.reduce(Self.gap) { $0 + $1.image.size.width + Self.frame * 2 + Self.gap } }
    return PixelSize(widths.max() ?? Self.gap, rows.reduce(Self.gap) { $0 + Self.height(of: $1) + Self.gap })
  }

  /// Returns the sheet as a PNG file.
  ///
  /// - Throws: `CacheError` if there is not enough memory, or if the sheet cannot be encoded.
  func png() throws(CacheError) -> Data {
    let size = size
    let drawn = PixelBuffer(size: size, channels: .rgb) { bytes in
      var canvas = Canvas(bytes: bytes, width: size.width)
      canvas.fill(0, 0, size.width, size.height, Self.ground)
      var y = Self.gap
      for row in rows {
        var x = Self.gap
        for cell in row {
          let (width, height) = (cell.image.size.width, cell.image.size.height)
          canvas.fill(x, y, width + Self.frame * 2, height + Self.frame * 2, cell.frame)
          canvas.fill(x + Self.frame, y + Self.frame, width, height, Self.ground)
          canvas.draw(cell.image.pixels, x + Self.frame, y + Self.frame)
          x += width + Self.frame * 2 + Self.gap
        }
        y += Self.height(of: row) + Self.gap
      }
    }
    guard let drawn else { throw CacheError(.other, reason: "not enough memory for a sheet of \(size) pixels") }
    return try ImageEncoder(.png).encode(DecodedImage(drawn))
  }
}

/// RGB pixels to draw on.
private struct Canvas {
  let bytes: UnsafeMutableRawBufferPointer
  let width: Int

  mutating func fill(_ x: Int, _ y: Int, _ columns: Int, _ rows: Int, _ color: RGBA) {
    for row in y..<y + rows { for column in x..<x + columns { set(column, row, color) } }
  }

  /// Draws pixels over the present ones, blended by alpha.
  mutating func draw(_ pixels: PixelBuffer, _ x: Int, _ y: Int) {
    for row in 0..<pixels.size.height {
      for column in 0..<pixels.size.width { set(x + column, y + row, pixels[column, row]) }
    }
  }

  private func set(_ x: Int, _ y: Int, _ color: RGBA) {
    let start = (y * width + x) * 3
    let alpha = Int(color.alpha)
    for (channel, value) in [color.red, color.green, color.blue].enumerated() {
      bytes[start + channel] = UInt8((Int(value) * alpha + Int(bytes[start + channel]) * (255 - alpha) + 127) / 255)
    }
  }
}
#endif
