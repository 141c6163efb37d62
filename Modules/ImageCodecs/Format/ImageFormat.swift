/// The file format of an image. It is detected from the first bytes, because file names and content types are often
/// wrong.
///
/// ```swift
/// let format = ImageFormat(of: bytes)
/// print(format?.name ?? "not an image", format?.mediaType ?? "")
/// ```
public struct ImageFormat: Hashable, Sendable {
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
