#if Tool
import ArgumentParser
import Etagere
import Foundation

/// What `get` makes of pictures.
struct ImageOutput: ParsableArguments {
  @Option(
    help: """
      Make pictures smaller: 400x (so wide), x300 (so high), 400x300 (within), 400x300^ (cut to it), 400x300! (stretched). \
      Nothing is made larger, but by '!'.
      """)
  var resize: ImageGeometry?

  @Option(
    help: """
      Write pictures as \(FormatName.allCases.map(\.rawValue).joined(separator: ", ")). Without it: as the output file's name says, \
      else JPEG, and WebP (on Apple's platforms PNG) where there is transparency.
      """)
  var format: FormatName?

  @Option(help: "From 1, the smallest file, to 100, the best picture; for jpeg, webp and avif.")
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

    /// By the end of a file's name.
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

  /// Whether pictures are asked for, and not bytes.
  var isWanted: Bool { resize != nil || format != nil || quality != nil }

  /// What is loaded: the bytes as they are, or files made of them.
  func transform(output: String?) -> ResourceTransform<Data> {
    guard isWanted else { return .bytes }
    var encoder = ImageEncoder.automatic
    if let name = format ?? output.flatMap(FormatName.init(fileName:)) { encoder = ImageEncoder(name.format) }
    if let quality { encoder.quality = quality }
    return .imageFile(resize?.processor ?? .none, as: encoder)
  }
}
#endif
