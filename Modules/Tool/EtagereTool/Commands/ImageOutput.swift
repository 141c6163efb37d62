#if Tool
import ArgumentParser
import Etagere
import Foundation

/// The options for the images that `get` makes.
struct ImageOutput: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      Shrink images: 400x (width), x300 (height), 400x300 (fit within), 400x300^ (fill and crop), 400x300! (stretch). \
      Only '!' makes an image larger.
      """, valueName: "size"))
  var resize: ImageGeometry?

  @Option(
    help: ArgumentHelp(
      """
      Encode images in this format. The default is the extension of the output file, or else jpeg. Images with transparency \
      become webp (png on Apple platforms).
      """, valueName: "format"))
  var format: FormatName?

  @Option(
    help: ArgumentHelp(
      "The quality of jpeg, webp and avif, from 1 (smallest file) to 100 (best image).", valueName: "number"))
  var quality: Int?

  enum FormatName: String, ExpressibleByArgument, CaseIterable {
    case jpeg, png, webp, avif, gif, tiff

    var format: ImageFormat {
      switch self {
      case .jpeg: .jpeg
      case .png: .png
      case .webp: .webp
      case .avif: .avif
      case .gif: .gif
      case .tiff: .tiff
      }
    }

    /// Creates the format from the extension of a file name.
    init?(fileName: String) {
      let ending = URL(filePath: fileName).pathExtension.lowercased()
      let names = ["jpg": Self.jpeg, "tif": .tiff]
      guard let known = names[ending] ?? Self(rawValue: ending) else { return nil }
      self = known
    }
  }

  func validate() throws {
    if let quality, !(1...100).contains(quality) { throw ValidationError("--quality takes a number from 1 to 100") }
  }

  /// Whether the options request an image instead of the bytes.
  var isWanted: Bool { resize != nil || format != nil || quality != nil }

  /// Returns the transform of a load: the bytes themselves, or an image file made from them.
  func transform(output: String?) -> ResourceTransform<Data> {
    guard isWanted else { return .bytes }
    var encoder = ImageEncoder.automatic
    if let name = format ?? output.flatMap(FormatName.init(fileName:)) { encoder = ImageEncoder(name.format) }
    if let quality { encoder.quality = quality }
    return .imageFile(resize?.processor ?? .none, as: encoder)
  }
}

/// The size of `--resize`: `400x`, `x300`, `400x300`, `400x300^`, `400x300!`.
///
/// The syntax is that of ImageMagick and vipsthumbnail. Unlike in ImageMagick, only `!` makes an image larger.
struct ImageGeometry: ExpressibleByArgument {
  let processor: ImageProcessor

  init?(argument: String) {
    var sizes = argument[...]
    let mark = sizes.last.flatMap { "^!".contains($0) ? $0 : nil }
    if mark != nil { sizes.removeLast() }
    let sides = sizes.split(separator: "x", omittingEmptySubsequences: false).map(Self.length)
    switch (sides.count, mark) {
    // A single number is the side of a square.
    case (1, nil):
      guard case .pixels(let side) = sides[0] else { return nil }
      processor = .resize(.fit(side, side))
    case (2, nil):
      switch (sides[0], sides[1]) {
      case (.pixels(let width), .pixels(let height)): processor = .resize(.fit(width, height))
      case (.pixels(let width), .open): processor = .resize(.width(width))
      case (.open, .pixels(let height)): processor = .resize(.height(height))
      default: return nil
      }
    case (2, let mark?):
      guard case (.pixels(let width), .pixels(let height)) = (sides[0], sides[1]) else { return nil }
      processor = mark == "!" ? .resize(.exact(width, height)) : .fill(width, height)
    default: return nil
    }
  }

  private enum Length {
    case pixels(Int), open, none
  }

  private static func length(_ text: Substring) -> Length {
    if text.isEmpty { return .open }
    guard text.allSatisfy({ ("0"..."9").contains($0) }), let number = Int(text), (1...65_535).contains(number) else {
      return .none
    }
    return .pixels(number)
  }
}
#endif
