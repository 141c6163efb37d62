#if Service
import Foundation
import ImageFiles

/// TIFF files (TIFF 6.0), least significant byte first.
enum TIFFZoo {
  static func inputs() -> [ZooInput] { dimensions + strips + tags + compressions + directories }

  /// An entry of a directory. The values of ``offsets`` are relative to the pixels.
  private struct Entry {
    var tag: Int
    var values: [Int]
    /// 3 for numbers of two bytes, and 4 for numbers of four bytes.
    var kind = 4
    var count: Int?
  }

  private static let offsets = 273

  private static func file(
    _ changes: [Entry], removing removed: Set<Int> = [], next: Int = 0, pixels: [UInt8] = .init(repeating: 9, count: 48)
  ) -> Data {
    var entries = [256: [4], 257: [4], 258: [8, 8, 8], 259: [1], 262: [2], offsets: [0], 277: [3], 278: [4], 279: [48]]
      .map { Entry(tag: $0.key, values: $0.value, kind: [offsets, 279].contains($0.key) ? 4 : 3) }
    entries.removeAll { entry in removed.contains(entry.tag) || changes.contains { $0.tag == entry.tag } }
    entries = (entries + changes).sorted { $0.tag < $1.tag }
    let start = 8 + 2 + entries.count * 12 + 4
    let end = start + entries.reduce(0) { $0 + (length($1) > 4 ? length($1) : 0) }
    var (directory, values) = (ZooBytes.little(entries.count, 2), [UInt8]())
    for entry in entries {
      let numbers = entry.values.map { entry.tag == offsets ? $0 + end : $0 }.flatMap {
        ZooBytes.little($0, entry.kind == 3 ? 2 : 4)
      }
      directory +=
        ZooBytes.little(entry.tag, 2) + ZooBytes.little(entry.kind, 2) + ZooBytes.little(entry.count ?? entry.values.count, 4)
      if numbers.count > 4 {
        directory += ZooBytes.little(start + values.count, 4)
        values += numbers
      } else {
        directory += numbers + [UInt8](repeating: 0, count: 4 - numbers.count)
      }
    }
    return Data(Array("II".utf8) + [42, 0, 8, 0, 0, 0] + directory + ZooBytes.little(next, 4) + values + pixels)
  }

  private static func length(_ entry: Entry) -> Int { entry.values.count * (entry.kind == 3 ? 2 : 4) }

  private static func sized(_ width: Int, _ height: Int, _ more: [Entry] = [], pixels: [UInt8] = .init(repeating: 9, count: 48))
    -> Data
  {
    file(
      [
        Entry(tag: 256, values: [width]), Entry(tag: 257, values: [height]), Entry(tag: 278, values: [height]),
        Entry(tag: 279, values: [pixels.count]),
      ] + more,
      removing: [], pixels: pixels)
  }

  private static var dimensions: [ZooInput] {
    let refused = [(0xFFFF_FFFF, 0xFFFF_FFFF), (0x7FFF_FFFF, 1), (60_000, 60_000), (2_001, 2_000), (0, 4), (4, 0), (65_536, 1)]
    let lying = [(1_000, 1_000), (2_000, 2_000), (60_000, 4), (4, 60_000)]
    return ZooInput.family("TIFF dimensions", .refusal, refused.map { ("\($0.0)x\($0.1)", sized($0.0, $0.1)) })
      + ZooInput.family("TIFF dimensions", .either, lying.map { ("\($0.0)x\($0.1) with 16 pixels", sized($0.0, $0.1)) })
  }

  private static var strips: [ZooInput] {
    let deflate = Entry(tag: 259, values: [8], kind: 3)
    let files: [(String, Data)] = [
      ("offset beyond the end", file([Entry(tag: 273, values: [1 << 30])])),
      ("offset of the header", file([Entry(tag: 273, values: [-300])])),
      ("length of 4 GB", file([Entry(tag: 279, values: [0xFFFF_FFFF])])), ("length of 0", file([Entry(tag: 279, values: [0])])),
      ("0 rows per strip", file([Entry(tag: 278, values: [0])])),
      ("4 billion rows per strip", file([Entry(tag: 278, values: [0xFFFF_FFFF])])),
      ("1 row per strip with one strip", file([Entry(tag: 278, values: [1])])),
      ("4 billion strips", file([Entry(tag: 273, values: [0], count: 0xFFFF_FFFF)])),
      ("100 million lengths", file([Entry(tag: 279, values: [48], count: 100_000_000)])), ("missing", file([], removing: [273])),
      ("of 200 MB for 48 bytes", file([deflate], pixels: ZooBytes.zlibZeros(200_000_000))),
      (
        "tile of 0x0",
        file([
          Entry(tag: 322, values: [0]), Entry(tag: 323, values: [0]), Entry(tag: 324, values: [8]), Entry(tag: 325, values: [48]),
        ])
      ),
      (
        "tile of 60000x60000",
        file([
          Entry(tag: 322, values: [60_000]), Entry(tag: 323, values: [60_000]), Entry(tag: 324, values: [8]),
          Entry(tag: 325, values: [48]),
        ])
      ),
      (
        "tile of 2 to the 31",
        file([
          Entry(tag: 322, values: [0x7FFF_FFF0]), Entry(tag: 323, values: [16]), Entry(tag: 324, values: [8]),
          Entry(tag: 325, values: [48]),
        ])
      ),
      (
        "tiles without offsets", file([Entry(tag: 322, values: [16]), Entry(tag: 323, values: [16])], removing: [273, 278, 279])
      ),
    ]
    return ZooInput.family("TIFF strips", .either, files)
      + ZooInput.family(
        "TIFF strips", .image, [("deflate at the limit", sized(2_000, 2_000, [deflate], pixels: ZooBytes.zlibZeros(12_000_000)))])
  }

  private static var tags: [ZooInput] {
    var files: [(String, Data)] = []
    for count in [0, 1, 2, 4, 5, 6, 255, 65_535] {
      files.append(("\(count) channels", file([Entry(tag: 277, values: [count], kind: 3)])))
    }
    for bits in [0, 1, 4, 12, 16, 32, 64, 65_535] {
      files.append(("\(bits) bits", file([Entry(tag: 258, values: [bits, bits, bits], kind: 3)])))
    }
    for kind in [0, 1, 3, 4, 5, 6, 8, 9, 10, 32_844, 32_845, 65_535] {
      files.append(("photometry \(kind)", file([Entry(tag: 262, values: [kind], kind: 3)])))
    }
    for sample in [2, 3, 4, 5, 6] {
      files.append(
        (
          "sample format \(sample)",
          file([Entry(tag: 339, values: [sample, sample, sample], kind: 3), Entry(tag: 258, values: [32, 32, 32], kind: 3)])
        ))
    }
    files += [
      ("planes", file([Entry(tag: 284, values: [2], kind: 3)])), ("plane 99", file([Entry(tag: 284, values: [99], kind: 3)])),
      ("orientation 99", file([Entry(tag: 274, values: [99], kind: 3)])),
      ("predictor 3", file([Entry(tag: 317, values: [3], kind: 3), Entry(tag: 259, values: [8], kind: 3)])),
      ("YCbCr sampling 0", file([Entry(tag: 262, values: [6], kind: 3), Entry(tag: 530, values: [0, 0], kind: 3)])),
      ("profile of 4 GB", file([Entry(tag: 34_675, values: [8], count: 0xFFFF_FFFF)])),
      ("XMP of 1 GB", file([Entry(tag: 700, values: [8], count: 1 << 30)])),
      ("description of 4 GB", file([Entry(tag: 270, values: [8], kind: 2, count: 0xFFFF_FFFF)])),
      ("type 99", file([Entry(tag: 256, values: [4], kind: 99)])),
      ("palette", file([Entry(tag: 262, values: [3], kind: 3), Entry(tag: 320, values: [8], kind: 3, count: 768)])),
    ]
    return ZooInput.family("TIFF tags", .either, files)
  }

  private static var compressions: [ZooInput] {
    let kinds = [
      0, 2, 3, 4, 5, 6, 7, 8, 9, 32_773, 32_809, 32_909, 32_946, 34_661, 34_676, 34_677, 34_712, 34_887, 34_925, 50_000, 50_001,
      65_535,
    ]
    let noise = (0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 73 ^ $0 >> 3) }
    return ZooInput.family(
      "TIFF codecs", .either,
      kinds.map { ("\($0) with noise", sized(64, 64, [Entry(tag: 259, values: [$0], kind: 3)], pixels: noise)) }
        + [2, 3, 4].map {
          (
            "\($0) with one bit",
            sized(
              1_999, 1_999,
              [
                Entry(tag: 259, values: [$0], kind: 3), Entry(tag: 258, values: [1], kind: 3),
                Entry(tag: 277, values: [1], kind: 3), Entry(tag: 262, values: [0], kind: 3),
              ], pixels: noise)
          )
        })
  }

  private static var directories: [ZooInput] {
    let pages = (0..<40_000).flatMap { ZooBytes.little(0, 2) + ZooBytes.little(8 + ($0 + 1) * 6, 4) }
    func big(_ offset: Int) -> Data {
      Data(Array("II".utf8) + [43, 0, 8, 0, 0, 0] + ZooBytes.little(offset, 8) + .init(repeating: 0xFF, count: 64))
    }
    let files: [(String, Data)] = [
      ("in a loop", file([], next: 8)), ("next at the end of memory", file([], next: 0xFFFF_FFFF)),
      ("next in the pixels", file([], next: 150)),
      ("child in a loop", file([Entry(tag: 330, values: [8])])), ("EXIF in a loop", file([Entry(tag: 34_665, values: [8])])),
      ("10000 children", file([Entry(tag: 330, values: .init(repeating: 8, count: 10_000))])),
    ]
    let refused: [(String, Data)] = [
      ("65535 entries", Data(Array("II".utf8) + [42, 0, 8, 0, 0, 0, 0xFF, 0xFF] + .init(repeating: 0xFF, count: 786_420))),
      ("0 entries", Data(Array("II".utf8) + [42, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
      ("beyond the end", Data(Array("MM".utf8) + [0, 42, 0x7F, 0xFF, 0xFF, 0xFF])),
      ("40000 empty", Data(Array("II".utf8) + [42, 0, 8, 0, 0, 0] + pages)),
      ("of the header", Data(Array("II".utf8) + [42, 0, 0, 0, 0, 0] + .init(repeating: 0, count: 64))),
      ("BigTIFF at 2 to the 63", big(Int.max)), ("BigTIFF before its start", big(-1)), ("BigTIFF of ones", big(16)),
    ]
    return ZooInput.family("TIFF directories", .either, files) + ZooInput.family("TIFF directories", .refusal, refused)
  }
}
#endif
