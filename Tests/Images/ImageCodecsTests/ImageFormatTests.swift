import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Image formats")
struct ImageFormatTests {
  private static func heif(_ major: String, _ compatible: String...) -> [UInt8] {
    let brands = compatible.joined()
    return [0, 0, 0, UInt8(16 + brands.utf8.count)] + Array("ftyp\(major)".utf8) + [0, 0, 0, 0] + Array(brands.utf8)
  }

  private static let boxed: [UInt8] = [0x0D, 0x0A, 0x87, 0x0A]
  private static let bmp: [UInt8] = Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40, 0, 0, 0]

  private static let binary: [(ImageFormat, [UInt8])] = [
    (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]), (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
    (.avif, heif("avif", "mif1", "miaf")), (.avif, heif("avis", "msf1")), (.avif, heif("mif1", "avif")),
    (.heic, heif("heic", "mif1")), (.heic, heif("mif1", "heic")), (.heic, heif("msf1", "hevc")),
    (.tiff, [0x49, 0x49, 0x2A, 0, 8]), (.tiff, [0x4D, 0x4D, 0, 0x2A, 0]), (.tiff, [0x49, 0x49, 0x2B, 0]),
    (.jpegXL, [0xFF, 0x0A, 0]), (.jpegXL, [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20] + boxed),
    (.jpeg2000, [0xFF, 0x4F, 0xFF, 0x51]), (.jpeg2000, [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20] + boxed),
    (.bmp, bmp), (.ico, [0, 0, 1, 0, 1, 0]),
  ]
  private static let text: [(ImageFormat, String)] = [
    (.gif, "GIF87a"), (.gif, "GIF89a"), (.webp, "RIFF....WEBPVP8 "), (.svg, "<svg xmlns='http://www.w3.org/2000/svg'/>"),
    (.svg, "\u{FEFF}<?xml version='1.0'?>\n<!-- <html> -->\n<!DOCTYPE svg [<!ENTITY a '>'>]>\n<svg:svg/>"),
  ]

  @Test("a format is detected from the first bytes", arguments: binary + text.map { ($0.0, Array($0.1.utf8)) })
  func detection(format: ImageFormat, bytes: [UInt8]) {
    #expect(ImageFormat(of: Data(bytes)) == format)
    // The indices of a slice of a larger buffer do not start at zero.
    #expect(ImageFormat(of: (Data([1, 2, 3]) + Data(bytes)).dropFirst(3)) == format)
  }

  @Test(
    "bytes that are not an image have no format, and the error describes them",
    arguments: [
      ("", "empty"), ("<!DOCTYPE html><html><svg></svg></html>", "an HTML page"), ("  <HTML>", "an HTML page"),
      ("<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "markup (<error>)"), ("{\"error\": 1}", "JSON"),
      ("%PDF-1.7", "a PDF document"), ("Not found", "text"), ("PK\u{3}\u{4}", "a ZIP archive"), ("BMW", "text"),
      ("\u{0}\u{0}\u{1}", "of unknown format (first bytes 00 00 01)"), ("RIFF....WAVE", "text"),
    ])
  func foreign(text: String, name: String) {
    let data = Data(text.utf8)
    #expect(ImageFormat(of: data) == nil)
    let error = #expect(throws: CacheError.self) { try ImageDecoder().decode(data) }
    #expect(error?.code == .decodingFailed)
    #expect(error?.reason == "not an image: the bytes are \(name)")
  }

  @Test("a format is detected from few bytes, and shorter prefixes never trap")
  func beginnings() {
    let texts = ["<?xml?><!-- a --><!DOCTYPE svg [ <x> ]><svg", "<a:"].map { Array($0.utf8) }
    let long: [UInt8] = [0, 0, 0, 0xFF, 0x66, 0x74, 0x79, 0x70, 0x6D, 0x69, 0x66, 0x31]
    let files = texts + [Self.heif("mif1", "avif"), Self.bmp, [0, 0, 1, 0, 1, 0], long]
    for file in files {
      for length in 0...file.count { _ = ImageFormat(of: Data(file.prefix(length))) }
    }
  }

  @Test("comments and a document type of any length may precede the first element of a drawing")
  func farRoot() {
    let comment = "<!-- \(String(repeating: "<svg> > ", count: 20_000)) -->"
    for before in [
      comment, "\u{FEFF}<?xml version='1.0'?>\n\(comment)", "<!DOCTYPE svg [<!ENTITY a \"]>\"> \(comment) <?b ]> ?>]>",
      "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' '\(String(repeating: "a>", count: 9_000))'>",
    ] {
      #expect(ImageFormat(of: Data("\(before)<svg/>".utf8)) == .svg, "\(before.prefix(40))")
      #expect(ImageFormat(of: Data("\(before)<html>".utf8)) == nil, "\(before.prefix(40))")
    }
  }

  @Test("a format has a name, a media type and an extension")
  func names() {
    #expect(ImageFormat.jpegXL.name == "JPEG XL")
    #expect(ImageFormat.svg.mediaType == "image/svg+xml")
    #expect(ImageFormat.jpeg.fileExtension == "jpg")
    #expect("\(ImageFormat.webp)" == "WebP")
  }
}
