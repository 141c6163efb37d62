#if Service
import Foundation
import ImageCodecs
import ImageFiles

/// JPEG files (ITU-T T.81).
enum JPEGZoo {
  static func inputs(_ samples: ZooSamples) throws -> [ZooInput] {
    let file = Array(samples.jpeg)
    return dimensions(file) + frames(file) + tables(file) + metadata(file) + (try scans(samples))
  }

  /// Returns the place of the first segment with a marker of a set, or the end of the file.
  private static func place(of markers: Set<UInt8>, in file: [UInt8], after start: Int = 2) -> Int {
    var next = start
    while next + 4 <= file.count, file[next] == 0xFF {
      if markers.contains(file[next + 1]) { return next }
      next += 2 + Int(file[next + 2]) << 8 + Int(file[next + 3])
    }
    return file.count
  }

  private static let frameMarkers: Set<UInt8> = [0xC0, 0xC1, 0xC2]

  private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    [0xFF, marker] + ZooBytes.big(content.count + 2, 2) + content
  }

  /// Returns a file with segments after the first marker.
  private static func inserting(_ segments: [UInt8], in file: [UInt8]) -> Data {
    Data(file.prefix(2) + segments + file.dropFirst(2))
  }

  /// Returns a file whose frame header has other bytes from an offset in the segment.
  private static func changed(_ file: [UInt8], _ offset: Int, _ bytes: [UInt8]) -> Data {
    var file = file
    let start = place(of: frameMarkers, in: file) + offset
    file.replaceSubrange(start..<start + bytes.count, with: bytes)
    return Data(file)
  }

  private static func dimensions(_ file: [UInt8]) -> [ZooInput] {
    func lying(_ size: (Int, Int)) -> (String, Data) {
      ("\(size.0)x\(size.1)", changed(file, 5, ZooBytes.big(size.1, 2) + ZooBytes.big(size.0, 2)))
    }
    let refused = [(65_535, 65_535), (65_500, 62), (62, 65_500), (2_001, 2_000), (0, 40), (40_000, 30_000)]
    let strange = [(60, 0), (1, 1), (61, 41), (200, 200), (2_000, 2_000), (30_000, 1), (1, 30_000)]
    return ZooInput.family("JPEG dimensions", .refusal, refused.map(lying))
      + ZooInput.family("JPEG dimensions", .either, strange.map(lying))
  }

  private static func frames(_ file: [UInt8]) -> [ZooInput] {
    var files: [(String, Data)] = []
    for kind in [0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCF] as [UInt8] {
      files.append(("kind \(kind)", changed(file, 1, [kind])))
    }
    for precision in [0, 1, 7, 9, 12, 16, 255] as [UInt8] {
      files.append(("precision \(precision)", changed(file, 4, [precision])))
    }
    for count in [0, 1, 2, 4, 5, 255] as [UInt8] { files.append(("\(count) components", changed(file, 9, [count]))) }
    for factors in [0x00, 0x01, 0x14, 0x41, 0x44, 0x33, 0x55, 0xFF] as [UInt8] {
      files.append(("sampling \(factors)", changed(file, 11, [factors])))
    }
    let start = place(of: frameMarkers, in: file)
    let header = Array(file[start..<place(of: [0xC4, 0xDA, 0xDB, 0xDD], in: file, after: start)])
    files.append(("two", Data(file[..<start] + header + file[start...])))
    files.append(("1000", Data(file[..<start] + header.times(1_000) + file[start...])))
    files.append(("none", Data(file[..<start] + file[(start + header.count)...])))
    return ZooInput.family("JPEG frames", .either, files)
  }

  private static func tables(_ file: [UInt8]) -> [ZooInput] {
    let full: [UInt8] = [0] + .init(repeating: 255, count: 16) + .init(repeating: 1, count: 16 * 255)
    let codes = place(of: [0xC4], in: file)
    let files: [(String, Data)] = [
      ("codes overfull", inserting(segment(0xC4, full), in: file)),
      ("codes empty", inserting(segment(0xC4, .init(repeating: 0, count: 17)), in: file)),
      ("codes of another table", inserting(segment(0xC4, [0x77] + .init(repeating: 0, count: 16)), in: file)),
      ("codes removed", Data(file[..<codes] + file[place(of: [0xDA], in: file)...])),
      ("divisors of zero", inserting(segment(0xDB, [0] + .init(repeating: 0, count: 64)), in: file)),
      ("divisors cut", inserting(segment(0xDB, [0, 1, 2]), in: file)),
      (
        "20000 divisors",
        inserting(
          segment(0xDB, [1] + .init(repeating: 9, count: 64)).times(20_000), in: file)
      ),
      ("restart after each block", inserting(segment(0xDD, [0, 1]), in: file)),
      ("restart 65535", inserting(segment(0xDD, [0xFF, 0xFF]), in: file)),
      ("arithmetic conditioning", inserting(segment(0xCC, [0, 255]), in: file)),
      ("segment of length 0", inserting([0xFF, 0xE5, 0, 0], in: file)),
      ("segment of length 1", inserting([0xFF, 0xE5, 0, 1], in: file)),
      ("segment beyond the end", inserting([0xFF, 0xE5, 0xFF, 0xFF], in: file)),
      ("a megabyte of fill bytes", inserting(.init(repeating: 0xFF, count: 1_000_000), in: file)),
      ("a megabyte of zeros", inserting(.init(repeating: 0, count: 1_000_000), in: file)),
      ("20000 start markers", inserting(([0xFF, 0xD8] as [UInt8]).times(20_000), in: file)),
      ("end marker first", inserting([0xFF, 0xD9], in: file)),
    ]
    return ZooInput.family("JPEG tables", .either, files)
  }

  private static func metadata(_ file: [UInt8]) -> [ZooInput] {
    func exif(_ tiff: [UInt8]) -> Data { inserting(segment(0xE1, Array("Exif\0\0".utf8) + tiff), in: file) }
    func profile(_ parts: [(UInt8, UInt8)]) -> Data {
      inserting(
        parts.flatMap { segment(0xE2, Array("ICC_PROFILE\0".utf8) + [$0.0, $0.1] + ICCFile().bytes) }, in: file)
    }
    let start: [UInt8] = Array("MM".utf8) + [0, 0x2A, 0, 0, 0, 8]
    let huge: [UInt8] = [0x01, 0x0F, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0]
    let files: [(String, Data)] = [
      ("EXIF with 65535 entries", exif(start + [0xFF, 0xFF])), ("EXIF in a loop", exif(start + [0, 0, 0, 0, 0, 8])),
      ("EXIF with a long text", exif(start + [0, 1] + huge + [0, 0, 0, 0])),
      ("EXIF at the end of memory", exif(start.prefix(4) + [0xFF, 0xFF, 0xFF, 0xFF])),
      ("EXIF with 5000 long texts", exif(start + [0x13, 0x88] + huge.times(5_000))),
      ("EXIF orientation 99", exif(start + [0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 99, 0, 0, 0, 0, 0, 0])),
      ("EXIF empty", exif([])),
      (
        "5000 EXIF",
        inserting(segment(0xE1, Array("Exif\0\0".utf8) + start).times(5_000), in: file)
      ),
      ("profile 1 of 255", profile([(1, 255)])), ("profile 0 of 0", profile([(0, 0)])),
      ("profile part twice", profile([(1, 2), (1, 2)])),
      ("profile in 60 parts", profile((1...60).map { ($0, 60) })),
      (
        "profile of noise",
        inserting(
          segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }), in: file)
      ),
      ("profile for gray", inserting(segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + ICCFile.gray.bytes), in: file)),
      ("20000 comments", inserting(segment(0xFE, [65]).times(20_000), in: file)),
      (
        "XMP of a billion laughs",
        inserting(
          segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + Array(SVGZoo.laughs(9).utf8.prefix(60_000))), in: file)
      ),
      ("Adobe CMYK", inserting(segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 2]), in: file)),
      ("JFIF thumbnail of 255x255", inserting(segment(0xE0, Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 255, 255]), in: file)),
    ]
    return ZooInput.family("JPEG metadata", .either, files)
  }

  /// Progressive files whose scans are repeated. Each scan covers the whole image, and a codec needs its time for each.
  private static func scans(_ samples: ZooSamples) throws -> [ZooInput] {
    func repeating(_ file: [UInt8], _ count: Int) -> Data {
      guard let last = file.indices.last(where: { $0 + 1 < file.count && file[$0] == 0xFF && file[$0 + 1] == 0xDA }) else {
        return Data(file)
      }
      let scan = Array(file[last..<file.count - 2])
      return Data(file.dropLast(2) + scan.times(count) + file.suffix(2))
    }
    let small = Array(samples.progressiveJPEG)
    let large = Array(try ZooSamples.progressive(ZooSamples.plain(2_000, 2_000)))
    let sequential = Array(samples.jpeg)
    return ZooInput.family(
      "JPEG scans", .slow,
      [("80 of 4 million pixels", repeating(large, 80)), ("50 of a sequential file", repeating(sequential, 50))])
      + ZooInput.family("JPEG scans", .either, [("50", repeating(small, 50))])
      + ZooInput.family(
        "JPEG scans", .refusal,
        [("200", repeating(small, 200)), ("5000", repeating(small, 5_000)), ("110 of 4 million pixels", repeating(large, 110))])
      + ZooInput.family("JPEG scans", .image, [("4 million pixels", Data(large))])
  }
}
#endif
