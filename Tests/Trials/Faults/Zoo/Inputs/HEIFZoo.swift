#if Service
import Foundation
import ImageFiles

/// AVIF and HEIC files (ISO/IEC 23008-12).
enum HEIFZoo {
  static func inputs(_ samples: ZooSamples) -> [ZooInput] {
    let files = [("AVIF", samples.avif), ("HEIC", samples.heic)].compactMap { name, file in file.map { (name, Array($0)) } }
    return dimensions(files) + boxes(files) + items + nesting
  }

  private static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] { HEIFFile.box(kind, content) }

  private static func number(_ value: Int) -> [UInt8] { PNGFile.number(value) }

  private static func head(_ brand: String = "avif", meta: [UInt8]...) -> Data {
    Data(
      box("ftyp", Array(brand.utf8) + [0, 0, 0, 0] + Array("mif1".utf8))
        + box("meta", meta.reduce(into: [0, 0, 0, 0]) { $0 += $1 }))
  }

  /// Returns a file in which bytes after the first box of a kind are others.
  private static func changed(_ file: [UInt8], _ kind: String, _ offset: Int, _ bytes: [UInt8]) -> Data {
    var file = file
    guard let start = file.indices.first(where: { file[$0...].starts(with: kind.utf8) }) else { return Data(file) }
    let end = min(start + offset + bytes.count, file.count)
    if start + offset < end { file.replaceSubrange(start + offset..<end, with: bytes.prefix(end - start - offset)) }
    return Data(file)
  }

  private static func dimensions(_ files: [(String, [UInt8])]) -> [ZooInput] {
    let declared = [(17_000, 17_000), (65_535, 65_535), (0x7FFF_FFFF, 0x7FFF_FFFF), (0, 0), (2_001, 2_000)].map { width, height in
      (
        "declared \(width)x\(height)",
        head(meta: box("iprp", box("ipco", box("ispe", number(0) + number(width) + number(height)))))
      )
    }
    let lying = files.flatMap { name, file in
      [(0, 0), (1, 1), (4, 3), (0xFFFF_FFFF, 0xFFFF_FFFF), (0x8000_0000, 1), (1_000, 1_000), (60_000, 60_000)].map {
        width, height in
        ("\(name) \(width)x\(height)", changed(file, "ispe", 8, number(width) + number(height)))
      }
    }
    return ZooInput.family("HEIF dimensions", .refusal, declared) + ZooInput.family("HEIF dimensions", .either, lying)
  }

  private static func boxes(_ files: [(String, [UInt8])]) -> [ZooInput] {
    files.flatMap { name, file in
      var changes: [(String, Data)] = []
      for kind in [
        "ftyp", "meta", "iloc", "iinf", "infe", "iprp", "ipco", "ispe", "ipma", "mdat", "pixi", "av1C", "hvcC", "iref", "pitm",
      ] {
        let exists = file.indices.contains { file[$0...].starts(with: kind.utf8) }
        guard exists else { continue }
        for length in [0, 1, 7, 0x7FFF_FFFF, 0xFFFF_FFFF] {
          changes.append(("\(kind) length \(length)", changed(file, kind, -4, number(length))))
        }
        changes.append(("\(kind) of ones", changed(file, kind, 4, .init(repeating: 0xFF, count: 12))))
        changes.append(("\(kind) renamed", changed(file, kind, 0, Array("free".utf8))))
      }
      return ZooInput.family("\(name) boxes", .either, changes)
    }
  }

  /// Files whose items refer to each other or are too many.
  private static var items: [ZooInput] {
    let grid: [UInt8] = [0, 0, 255, 255] + ZooBytes.big(2_000, 2) + ZooBytes.big(2_000, 2)
    let hugeGrid: [UInt8] = [0, 1, 255, 255] + number(0x7FFF_FFFF) + number(0x7FFF_FFFF)
    let overlay: [UInt8] = [0, 0] + .init(repeating: 0, count: 8) + ZooBytes.big(1_000, 2) + ZooBytes.big(1_000, 2)
    func derived(_ kind: String, from items: [Int]) -> [UInt8] {
      box(
        "iref",
        [0, 0, 0, 0] + box(kind, ZooBytes.big(1, 2) + ZooBytes.big(items.count, 2) + items.flatMap { ZooBytes.big($0, 2) }))
        + box("pitm", [0, 0, 0, 0, 0, 1])
    }
    let extents: [UInt8] = [0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + (0..<65_535).flatMap { _ in [0, 1, 0, 0, 0xFF, 0xFF] as [UInt8] }
    let entries = (1...2_000).flatMap { box("infe", [2, 0, 0, 0] + ZooBytes.big($0, 2) + [0, 0] + Array("av01".utf8) + [0]) }
    let properties = (0..<20_000).flatMap { _ in box("irot", [1]) }
    let files: [(String, Data)] = [
      ("grid of itself", HEIFFile.file("grid", grid, properties: derived("dimg", from: .init(repeating: 1, count: 60_000)))),
      ("grid of nothing", HEIFFile.file("grid", grid, properties: derived("dimg", from: []))),
      ("grid of missing items", HEIFFile.file("grid", grid, properties: derived("dimg", from: [9, 9, 9]))),
      ("grid of 2 to the 31", HEIFFile.file("grid", hugeGrid, properties: derived("dimg", from: [1]))),
      ("overlay of itself", HEIFFile.file("iovl", overlay, properties: derived("dimg", from: [1, 1, 1]))),
      ("identity of itself", HEIFFile.file("iden", [], properties: derived("dimg", from: [1]))),
      ("thumbnail of itself", HEIFFile.file("av01", [0x12, 0], properties: derived("thmb", from: [1]))),
      ("alpha of itself", HEIFFile.file("av01", [0x12, 0], properties: derived("auxl", from: [1]))),
      ("65535 items without extents", head(meta: box("iloc", extents))),
      ("2000 items", head(meta: box("iinf", [0, 0, 0, 0] + ZooBytes.big(2_000, 2) + entries))),
      ("65535 items announced", head(meta: box("iinf", [0, 0, 0, 0, 0xFF, 0xFF]))),
      ("20000 rotations", head(meta: box("iprp", box("ipco", properties)))),
      ("400000 units", HEIFFile.file("av01", (0..<400_000).flatMap { _ in [0x12, 0] as [UInt8] })),
      ("unit longer than the file", HEIFFile.file("av01", [0x0A, 0xFF, 0xFF, 0xFF, 0x7F])),
      ("empty item", HEIFFile.file("av01", [])),
      ("text as an image", HEIFFile.file("mime", Array("text".utf8))),
      ("image of noise", HEIFFile.file("av01", (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 73) })),
      ("HEVC of noise", HEIFFile.file("hvc1", (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 73) })),
    ]
    return ZooInput.family("HEIF items", .refusal, files)
  }

  private static var nesting: [ZooInput] {
    func nested(_ kind: String, _ depth: Int) -> [UInt8] {
      // From the innermost box outwards: each length includes all boxes within.
      var bytes: [UInt8] = []
      for level in stride(from: depth, to: 0, by: -1) { bytes += number(level * 8) + Array(kind.utf8) }
      return bytes
    }
    var files: [(String, Data)] = []
    for kind in ["meta", "iprp", "ipco", "moov", "iref", "dinf", "free"] {
      files += [100, 50_000].map { ("\($0) \(kind)", head(meta: nested(kind, $0))) }
    }
    files += ["heic", "avis", "msf1", "mif1", "hevc", "jpeg", "crx "].map { ("brand \($0) alone", head($0)) }
    files.append(("16 MB box of 64 bits", Data(Array(head()) + number(1) + Array("mdat".utf8) + ZooBytes.big(1 << 24, 8))))
    files.append(("2 to the 63 box", Data(Array(head()) + number(1) + Array("meta".utf8) + ZooBytes.big(Int.max, 8))))
    return ZooInput.family("HEIF nesting", .refusal, files)
  }
}
#endif
