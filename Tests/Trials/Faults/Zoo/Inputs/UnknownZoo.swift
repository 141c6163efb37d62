#if Service
import CacheTesting
import Foundation
import ImageFiles

/// Bytes that are not an image, images of other formats, and noise that begins like an image.
enum UnknownZoo {
  static func inputs(_ samples: ZooSamples, _ generator: inout SplitMix) -> [ZooInput] {
    other + foreign(samples) + noise(&generator)
  }

  private static var other: [ZooInput] {
    let zip: [UInt8] = Array("PK\u{3}\u{4}".utf8) + .init(repeating: 0, count: 200)
    let files: [(String, Data)] = [
      ("nothing", Data()), ("one byte", Data([0])), ("zeros", Data(count: 100_000)),
      ("ones", Data(repeating: 0xFF, count: 100_000)),
      ("text", Data("not an image\n".times(1_000).utf8)),
      ("page", Data("<!doctype html><html><body><svg></svg></body></html>".utf8)),
      ("JSON", Data(#"{"image": true}"#.utf8)), ("XML", Data("<?xml version=\"1.0\"?><note/>".utf8)),
      ("PDF", Data("%PDF-1.7\n1 0 obj <</Type /Catalog>> endobj\n".utf8)), ("PostScript", Data("%!PS-Adobe-3.0\n{} loop\n".utf8)),
      ("gzip", Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + ZooBytes.zlibZeros(100_000_000).dropFirst(2))), ("zip", Data(zip)),
      ("program", Data([0x7F] + Array("ELF".utf8) + .init(repeating: 1, count: 500))),
      ("script", Data("#!/bin/sh\nexit 1\n".utf8)),
      ("playlist", Data("#EXTM3U\nfile:///etc/passwd\n".utf8)),
      ("MVG", Data("push graphic-context\nimage over 0,0 0,0 'file:///etc/passwd'\n".utf8)),
      ("a million open tags", Data("<a>".times(600_000).utf8)),
    ]
    let formats: [(String, Data)] = [
      (
        "BMP of 2 to the 31",
        Data(Array("BM".utf8) + .init(repeating: 0, count: 12) + [40, 0, 0, 0] + .init(repeating: 0xFF, count: 60))
      ),
      ("ICO", Data([0, 0, 1, 0, 255, 255] + .init(repeating: 0xFF, count: 200))),
      ("JPEG XL", Data([0xFF, 0x0A] + .init(repeating: 0xFF, count: 200))),
      ("JPEG XL box", Data([0, 0, 0, 0x0C] + Array("JXL ".utf8) + [0x0D, 0x0A, 0x87, 0x0A] + .init(repeating: 0, count: 99))),
      ("JPEG 2000", Data([0xFF, 0x4F, 0xFF, 0x51, 0, 47] + .init(repeating: 0xFF, count: 200))),
      ("PPM", Data("P6 60000 60000 255\n".utf8)),
      ("PGM as text", Data("P2 2000 2000 255\n".utf8) + Data("1 ".times(1_000).utf8)),
      ("PFM", Data("PF 60000 60000 -1.0\n".utf8)),
      ("Photoshop", Data(Array("8BPS".utf8) + [0, 1] + .init(repeating: 0xFF, count: 60))),
      ("OpenEXR", Data([0x76, 0x2F, 0x31, 0x01] + .init(repeating: 0xFF, count: 99))),
      ("Radiance", Data("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 60000 +X 60000\n".utf8)),
      ("FITS", Data("SIMPLE  =                    T".utf8)),
      ("VIPS", Data([0xB6, 0xA6, 0xF2, 0x08] + .init(repeating: 0x7F, count: 99))),
      ("NIfTI", Data([92, 1, 0, 0] + .init(repeating: 0, count: 400))),
      ("MATLAB", Data("MATLAB 5.0".utf8)),
      ("QOI", Data(Array("qoif".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 4, 0])),
      ("SVG in gzip", Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, 5, 0, 0xFA, 0xFF] + Array("<svg>".utf8))),
    ]
    return ZooInput.family("unknown bytes", .unknown, files) + ZooInput.family("unknown formats", .unknown, formats)
      + ZooInput.family(
        "unknown bytes", .tooManyBytes,
        [
          ("beyond the limit", Data(count: ZooLimits.bytes + 1)),
          ("PNG beyond the limit", PNGFile(width: 4, height: 4, colorType: 0, rows: []).data + Data(count: ZooLimits.bytes)),
        ])
  }

  /// Files of one format with the beginning of another.
  private static func foreign(_ samples: ZooSamples) -> [ZooInput] {
    let magics: [(String, [UInt8])] = [
      ("JPEG", [0xFF, 0xD8, 0xFF]), ("PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), ("GIF", Array("GIF89a".utf8)),
      ("TIFF", [0x49, 0x49, 0x2A, 0]),
    ]
    let swapped = samples.files.flatMap { name, file in
      magics.filter { !name.hasPrefix($0.0) }.map { ("\(name) that begins as \($0.0)", Data($0.1) + file.dropFirst($0.1.count)) }
    }
    let joined = samples.files.map { name, file in
      ("\(name) before a page", file + Data("<html><script>alert(1)</script></html>".utf8))
    }
    return ZooInput.family("unknown mixtures", .either, swapped + joined)
  }

  private static func noise(_ generator: inout SplitMix) -> [ZooInput] {
    let starts: [(String, [UInt8])] = [
      ("", []), ("JPEG", [0xFF, 0xD8, 0xFF]), ("PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
      ("GIF", Array("GIF89a".utf8)), ("TIFF", [0x4D, 0x4D, 0, 0x2A]),
      ("WebP", Array("RIFF\u{0}\u{1}\0\0WEBPVP8 ".utf8)), ("WebP lossless", Array("RIFF\u{0}\u{1}\0\0WEBPVP8L".utf8)),
      ("AVIF", [0, 0, 0, 20] + Array("ftypavif\0\0\0\0mif1".utf8)),
      ("SVG", Array("<svg xmlns='http://www.w3.org/2000/svg' ".utf8)),
    ]
    var files: [(String, Data)] = []
    for (name, start) in starts {
      for length in [20, 500, 20_000] {
        files.append(
          ("\(length) bytes as \(name)", Data(start + (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) })))
      }
    }
    return ZooInput.family("unknown noise", .either, files)
  }
}

/// The samples with random damage.
enum DamagedZoo {
  private static let flips = 18
  private static let parts = 6

  static func inputs(_ samples: ZooSamples, _ generator: inout SplitMix) -> [ZooInput] {
    var inputs: [ZooInput] = []
    for (name, file) in samples.files {
      let bytes = Array(file)
      var (flipped, cut, moved): ([(String, Data)], [(String, Data)], [(String, Data)]) = ([], [], [])
      for number in 1...flips { flipped.append(("\(name) \(number)", Data(flipping(bytes, number, &generator)))) }
      for number in 1...parts {
        cut.append(
          ("\(name) \(number)", file.prefix(bytes.count * number / (parts + 1) + Int.random(in: 0...3, using: &generator))))
        moved.append(("\(name) \(number)", Data(moving(bytes, &generator))))
      }
      inputs +=
        ZooInput.family("flipped", .either, flipped) + ZooInput.family("truncated", .either, cut)
        + ZooInput.family("spliced", .either, moved)
    }
    return inputs
  }

  /// Flips bits or replaces bytes: few in the first files, and more in the later ones. Half of them are in the header.
  private static func flipping(_ bytes: [UInt8], _ number: Int, _ generator: inout SplitMix) -> [UInt8] {
    var bytes = bytes
    let bound = number % 2 == 0 ? bytes.count : min(bytes.count, 80)
    for _ in 0..<(number / 4 + 1) {
      let place = Int.random(in: 0..<bound, using: &generator)
      let value = UInt8.random(in: 0...255, using: &generator)
      bytes[place] = number % 3 == 0 ? value : bytes[place] ^ 1 << (value & 7)
    }
    return bytes
  }

  /// Removes a part or writes it twice.
  private static func moving(_ bytes: [UInt8], _ generator: inout SplitMix) -> [UInt8] {
    var bytes = bytes
    let start = Int.random(in: 0..<bytes.count, using: &generator)
    let end = min(bytes.count, start + Int.random(in: 1...60, using: &generator))
    if Bool.random(using: &generator) {
      bytes.removeSubrange(start..<end)
    } else {
      bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &generator))
    }
    return bytes
  }
}
#endif
