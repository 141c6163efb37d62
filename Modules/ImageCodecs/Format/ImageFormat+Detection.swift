#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageFormat {
  /// The number of leading bytes that detection reads at most, except in markup.
  static let detectionLength = 4096

  /// Detects the format of an image. Returns `nil` if the bytes have no known image format.
  ///
  /// - Parameter data: The whole file or its beginning. 32 bytes are enough, except for SVG: comments and a document type of
  ///   up to 1 MiB may precede its first element.
  public init?(of data: Data) {
    let bytes = Array(data.prefix(Self.detectionLength))
    guard let format = Self.byMagic(bytes) ?? (MarkupStart(data)?.element == "svg" ? .svg : nil) else { return nil }
    self = format
  }

  private static func byMagic(_ bytes: [UInt8]) -> ImageFormat? {
    for (format, magic) in signatures where bytes.starts(with: magic) { return format }
    if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) { return .webp }
    if bytes.dropFirst(4).starts(with: "ftyp".utf8) { return byBrands(bytes) }
    // A BMP's second header begins with its size. The two letters alone would also match text.
    if bytes.starts(with: "BM".utf8), bytes.count >= 18, [12, 40, 52, 56, 64, 108, 124].contains(bytes[14]), bytes[15] == 0 {
      return .bmp
    }
    // ICO and CUR: reserved 0, type 1 or 2, at least one image.
    if bytes.count >= 6, bytes[0] == 0, bytes[1] == 0, bytes[2] == 1 || bytes[2] == 2, bytes[3] == 0, bytes[4] != 0, bytes[5] == 0
    {
      return .ico
    }
    return nil
  }

  private static let signatures: [(ImageFormat, [UInt8])] = [
    (.jpeg, [0xFF, 0xD8, 0xFF]),
    (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
    (.gif, Array("GIF87a".utf8)), (.gif, Array("GIF89a".utf8)),
    (.tiff, [0x49, 0x49, 0x2A, 0x00]), (.tiff, [0x4D, 0x4D, 0x00, 0x2A]),
    (.tiff, [0x49, 0x49, 0x2B, 0x00]), (.tiff, [0x4D, 0x4D, 0x00, 0x2B]),
    (.jpegXL, [0xFF, 0x0A]),
    (.jpegXL, [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
    (.jpeg2000, [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
    (.jpeg2000, [0xFF, 0x4F, 0xFF, 0x51]),
  ]

  /// Detects a HEIF format from the first box: length, "ftyp", major brand, version, compatible brands (ISO/IEC
  /// 14496-12 §4.3).
  private static func byBrands(_ bytes: [UInt8]) -> ImageFormat? {
    guard bytes.count >= 16 else { return nil }
    let length = bytes[0..<4].reduce(0) { $0 << 8 | Int($1) }
    var brands = [Array(bytes[8..<12])]
    for start in stride(from: 16, through: min(length, bytes.count) - 4, by: 4) { brands.append(Array(bytes[start..<start + 4])) }
    for brand in brands {
      switch String(decoding: brand, as: UTF8.self) {
      case "avif", "avis": return .avif
      case "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs": return .heic
      default: continue
      }
    }
    return nil
  }
}
