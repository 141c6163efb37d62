/// A color profile built from bytes (ICC.1:2001-04, three primaries or gray, one gamma).
package struct ICCFile: Sendable {
  /// The X, Y and Z of red, green and blue for D50. Empty for a gray profile.
  package var primaries: [[Double]]

  package init(
    primaries: [[Double]] = [[0.4360, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]]
  ) {
    self.primaries = primaries
  }

  package static let gray = ICCFile(primaries: [])
  /// A profile with red and green exchanged.
  package static let swapped = ICCFile(primaries: [ICCFile().primaries[1], ICCFile().primaries[0], ICCFile().primaries[2]])

  package var bytes: [UInt8] {
    var tags: [(String, [UInt8])] = [("wtpt", Self.xyz([0.9642, 1, 0.8249])), ("desc", Self.description)]
    for (name, primary) in zip(["r", "g", "b"], primaries) {
      tags += [("\(name)XYZ", Self.xyz(primary)), ("\(name)TRC", Self.gamma)]
    }
    if primaries.isEmpty { tags.append(("kTRC", Self.gamma)) }
    var table = PNGFile.number(tags.count)
    var content: [UInt8] = []
    for (name, value) in tags {
      table += Array(name.utf8) + PNGFile.number(128 + 4 + tags.count * 12 + content.count) + PNGFile.number(value.count)
      content += value + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }
    let colors = primaries.isEmpty ? "GRAY" : "RGB "
    let length = 128 + table.count + content.count
    var header = PNGFile.number(length) + [0, 0, 0, 0, 2, 0x20, 0, 0] + Array("mntr\(colors)XYZ ".utf8)
    header += [UInt8](repeating: 0, count: 12) + Array("acsp".utf8) + [UInt8](repeating: 0, count: 28)
    header += Self.fixed(0.9642) + Self.fixed(1) + Self.fixed(0.8249)
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + table + content
  }

  private static let gamma = Array("curv".utf8) + [0, 0, 0, 0, 0, 0, 0, 1, 0x02, 0x33]
  private static let description =
    Array("desc".utf8) + [0, 0, 0, 0] + PNGFile.number(5) + Array("made\0".utf8) + [UInt8](repeating: 0, count: 78)
  private static func xyz(_ values: [Double]) -> [UInt8] { Array("XYZ ".utf8) + [0, 0, 0, 0] + values.flatMap(fixed) }
  private static func fixed(_ value: Double) -> [UInt8] { PNGFile.number(Int(value * 65_536)) }
}
