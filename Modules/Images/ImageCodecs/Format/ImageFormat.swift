#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The file format of an image. It is detected from the first bytes, because file names and content types are often
/// wrong.
///
/// ```swift
/// let format = ImageFormat(of: bytes)
/// print(format?.name ?? "not an image", format?.mediaType ?? "")
/// ```
public struct ImageFormat: Hashable, Codable, Sendable {
  /// The common name, such as `JPEG`.
  public let name: String
  /// The media type (RFC 6838), such as `image/jpeg`.
  public let mediaType: String
  /// The file name extension without the dot, such as `jpg`.
  public let fileExtension: String

  /// Creates a custom format.
  public init(name: String, mediaType: String, fileExtension: String) {
    self.name = name
    self.mediaType = mediaType
    self.fileExtension = fileExtension
  }

  /// JPEG (ISO/IEC 10918).
  public static let jpeg = Self(name: "JPEG", mediaType: "image/jpeg", fileExtension: "jpg")
  /// PNG (W3C PNG), including APNG: ``ImageHeader/isAnimated`` tells them apart.
  public static let png = Self(name: "PNG", mediaType: "image/png", fileExtension: "png")
  /// GIF.
  public static let gif = Self(name: "GIF", mediaType: "image/gif", fileExtension: "gif")
  /// WebP (RFC 9649).
  public static let webp = Self(name: "WebP", mediaType: "image/webp", fileExtension: "webp")
  /// AVIF: AV1 in HEIF.
  public static let avif = Self(name: "AVIF", mediaType: "image/avif", fileExtension: "avif")
  /// HEIC: HEVC in HEIF.
  public static let heic = Self(name: "HEIC", mediaType: "image/heic", fileExtension: "heic")
  /// JPEG XL (ISO/IEC 18181), bare or in its container.
  public static let jpegXL = Self(name: "JPEG XL", mediaType: "image/jxl", fileExtension: "jxl")
  /// JPEG 2000 (ISO/IEC 15444).
  public static let jpeg2000 = Self(name: "JPEG 2000", mediaType: "image/jp2", fileExtension: "jp2")
  /// TIFF, including BigTIFF.
  public static let tiff = Self(name: "TIFF", mediaType: "image/tiff", fileExtension: "tiff")
  /// SVG: a vector drawing in XML.
  public static let svg = Self(name: "SVG", mediaType: "image/svg+xml", fileExtension: "svg")
  /// BMP.
  public static let bmp = Self(name: "BMP", mediaType: "image/bmp", fileExtension: "bmp")
  /// ICO and CUR.
  public static let ico = Self(name: "ICO", mediaType: "image/vnd.microsoft.icon", fileExtension: "ico")
}

extension Set<ImageFormat> {
  /// The formats whose codecs are made for untrusted files: JPEG, PNG, GIF, WebP, AVIF, HEIC and TIFF.
  ///
  /// libvips declares its other loaders unfit for untrusted files, also that of SVG: a drawing of a few hundred bytes can
  /// take minutes, or end the process.
  public static var fitForUntrustedFiles: Set<ImageFormat> { [.jpeg, .png, .gif, .webp, .avif, .heic, .tiff] }
}

extension ImageFormat: CustomStringConvertible {
  /// The name of the format.
  public var description: String { name }
}

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

/// The first element of a markup text, after a byte order mark, a declaration, comments and a document type.
struct MarkupStart {
  /// The number of leading bytes that are read at most.
  static let length = 1 << 20

  /// The name of the first element, in lower case and without a prefix such as `svg:`. If no element is found, the name
  /// of the document type.
  let element: String

  init?(_ data: Data) {
    // Most files are not markup, and are not copied.
    var start = data[...]
    if start.starts(with: [0xEF, 0xBB, 0xBF]) { start = start.dropFirst(3) }
    guard start.prefix(ImageFormat.detectionLength).first(where: { !$0.isBlank }) == UInt8(ascii: "<") else { return nil }
    var reader = MarkupReader(Array(start.prefix(Self.length)))
    var documentType: String?
    while true {
      reader.skipBlanks()
      guard reader.current == UInt8(ascii: "<") else { break }
      if reader.skipComment() {
        continue
      } else if reader.isAt("<?") {
        _ = reader.take(past: "?>")
      } else if reader.isAt("<!") {
        reader.skip(2)
        _ = reader.word()
        reader.skipBlanks()
        documentType = Self.local(reader.word())
        reader.skipDocumentType()
      } else {
        reader.skip()
        let name = Self.local(reader.word())
        if name.isEmpty { break }
        element = name
        return
      }
    }
    guard let documentType, !documentType.isEmpty else { return nil }
    element = documentType
  }

  private static func local(_ name: ArraySlice<UInt8>) -> String {
    let name = name.prefix { $0.isNamePart || $0 == UInt8(ascii: ":") }
    return String(decoding: name.split(separator: UInt8(ascii: ":")).last ?? [], as: UTF8.self).lowercased()
  }
}

extension MarkupReader {
  /// Skips the rest of a document type. Its quoted texts, comments and declarations may contain `>` and `]`.
  fileprivate mutating func skipDocumentType() {
    skipDeclaration(upTo: UInt8(ascii: "["))
    guard current == UInt8(ascii: "[") else { return skip() }
    skip()
    while let byte = current, byte != UInt8(ascii: "]") {
      if skipComment() {
        continue
      } else if isAt("<?") {
        _ = take(past: "?>")
      } else {
        if isAt("<!") { skipDeclaration(upTo: UInt8(ascii: ">")) }
        skip()
      }
    }
    _ = take(past: ">")
  }

  private mutating func skipDeclaration(upTo end: UInt8) {
    while let byte = current, byte != end, byte != UInt8(ascii: ">") {
      if quoted() == nil { skip() }
    }
  }
}

/// A description of bytes that are not an image, for the error's reason.
struct ForeignContent: CustomStringConvertible {
  let description: String

  init(_ data: Data) {
    let bytes = Array(data.prefix(ImageFormat.detectionLength))
    let markup = MarkupStart(data)?.element
    if bytes.isEmpty {
      description = "empty"
    } else if let markup {
      description = markup == "html" || markup == "head" || markup == "body" ? "an HTML page" : "markup (<\(markup.prefix(40))>)"
    } else if bytes.starts(with: "%PDF".utf8) {
      description = "a PDF document"
    } else if bytes.starts(with: [0x1F, 0x8B]) {
      description = "gzip data (not decompressed)"
    } else if bytes.starts(with: "PK\u{3}\u{4}".utf8) {
      description = "a ZIP archive"
    } else if bytes.first == UInt8(ascii: "{") || bytes.first == UInt8(ascii: "[") {
      description = "JSON"
    } else if bytes.allSatisfy({ $0 >= 0x20 || (0x09...0x0D).contains($0) }),
      String(validating: bytes.dropLast(3), as: UTF8.self) != nil
    {
      description = "text"
    } else {
      description = "of unknown format (first bytes \(bytes.prefix(8).map { Self.hexadecimal($0) }.joined(separator: " ")))"
    }
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    let text = String(byte, radix: 16)
    return byte < 16 ? "0\(text)" : text
  }
}
