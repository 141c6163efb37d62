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
#endif
