import CacheUI
import Foundation

/// The image files on the server, in two versions.
struct ListContent: Sendable {
  /// One image file.
  struct File: Sendable, Equatable {
    var bytes: Data
    /// The opaque part of the entity tag.
    var tag: String
    var mediaType: String
  }

  /// The widths of the photographs in pixels. The sizes of the files are about 0.12, 0.30 and 1.11 MB.
  static let photographWidths = [820, 1_312, 2_556]

  /// The number of changes on the server.
  private(set) var version = 0
  private let before: [File]
  private let after: [File]

  /// Draws all images in both versions.
  ///
  /// - Parameter photographWidths: The widths of the three photographs in pixels.
  /// - Throws: `CacheError.Code.unsupported` on Linux without the trait `VIPS`.
  init(photographWidths: [Int] = Self.photographWidths) throws(CacheError) {
    var (before, after): ([File], [File]) = ([], [])
    for row in ListRow.all {
      let file = try Self.draw(row, photographWidths, isChanged: false)
      before.append(file)
      after.append(row.changes ? try Self.draw(row, photographWidths, isChanged: true) : file)
    }
    (self.before, self.after) = (before, after)
  }

  /// The current files, in the order of the rows.
  var files: [File] { version % 2 == 0 ? before : after }

  /// The number of bytes of all current files.
  var byteCount: Int { files.reduce(0) { $0 + $1.bytes.count } }

  /// Replaces the images of the rows that change. The next change restores the previous images.
  mutating func change() { version += 1 }

  private static func draw(_ row: ListRow, _ widths: [Int], isChanged: Bool) throws(CacheError) -> File {
    let image = DrawnImage(seed: row.number + (isChanged ? 28 : 0) + (row.kind == .symbol ? 0 : 1))
    let encoder = row.kind == .symbol ? ImageEncoder(.png) : ImageEncoder(.jpeg, quality: 85)
    let pixels =
      row.kind == .symbol
      ? try image.symbol(26 + row.number / 2) : try image.landscape(PixelSize(widths[row.number], widths[row.number] * 2 / 3))
    return File(
      bytes: try encoder.encode(DecodedImage(pixels)), tag: "\(row.path.dropFirst())-\(isChanged ? 2 : 1)",
      mediaType: encoder.format.mediaType)
  }
}
