/// The layout of the pixels in a Core Graphics image.
struct BitmapLayout: Hashable, Sendable {
  enum Alpha: Hashable, Sendable {
    /// There is no byte for alpha.
    case absent
    /// The last byte is straight alpha.
    case last
    /// The last byte is ignored.
    case skipped
  }

  /// Whether a pixel has a shade of gray in place of red, green and blue.
  let isGray: Bool
  let alpha: Alpha

  /// - Parameter keepsGray: Whether gray pixels stay gray. Other pixels have four bytes, because Core Graphics has no layout of
  ///   three.
  init(_ channels: PixelBuffer.Channels, keepsGray: Bool) {
    isGray = keepsGray && (channels == .gray || channels == .grayAlpha)
    alpha = channels.hasAlpha ? .last : isGray ? .absent : .skipped
  }

  /// The layout in which ImageIO encodes pixels. JPEG, PNG and TIFF files have fewer channels for gray images.
  init(_ channels: PixelBuffer.Channels, encodedAs format: ImageFormat) {
    self.init(channels, keepsGray: [.jpeg, .png, .tiff].contains(format))
  }

  var bytesPerPixel: Int { isGray ? alpha == .last ? 2 : 1 : 4 }
}

extension ICCProfile {
  /// The profile of gray pixels with the curve of sRGB (ICC.1:2022).
  ///
  /// The gray color spaces of Core Graphics have a gamma of 2.2. A stored image would be read with darker shadows than it had.
  static let gray: [UInt8] = {
    let text: [UInt8] = "sRGB gray".utf8.flatMap { [0, $0] as [UInt8] }
    // One text in one language (§10.15), padded to a multiple of four bytes.
    let name = tag("mluc", words([1, 12]), Array("enUS".utf8), words([text.count, 28]), text, [0, 0])
    // y = (a·x + b)^g from d on, and c·x below (§10.18).
    let curve = tag("para", words([3 << 16]), fixed([2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045]))
    let tags: [(String, [UInt8])] = [("desc", name), ("cprt", name), ("wtpt", tag("XYZ ", fixed(d50))), ("kTRC", curve)]

    var table = words([tags.count])
    var content: [UInt8] = []
    for (signature, value) in tags {
      table += Array(signature.utf8)
      table += words([132 + tags.count * 12 + content.count, value.count])
      content += value
    }
    var header = words([128 + table.count + content.count, 0, 0x0420_0000])
    header += Array("mntrGRAYXYZ ".utf8)
    header += words([0, 0, 0])
    header += Array("acsp".utf8)
    header += words([0, 0, 0, 0, 0, 0, 0])
    header += fixed(d50)
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + table + content
  }()

  /// The white of the connection space (§7.2.16).
  private static let d50 = [0.9642, 1, 0.8249]

  private static func tag(_ type: String, _ parts: [UInt8]...) -> [UInt8] { Array(type.utf8) + words([0]) + parts.joined() }

  private static func words(_ values: [Int]) -> [UInt8] {
    values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - $0 * 8)) } }
  }

  private static func fixed(_ values: [Double]) -> [UInt8] { words(values.map { Int(($0 * 65_536).rounded()) }) }
}
