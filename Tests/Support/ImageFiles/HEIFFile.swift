#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// HEIF files (ISO/IEC 23008-12) built from boxes, and a small HEIC, which no encoder of the tests writes.
package enum HEIFFile {
  /// A HEIC of 200 × 120 black pixels, in base64.
  private static let text = """
    AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAYNtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAAAAAAAB
    AAAANGlsb2MAAAAAREAAAgABAAAAAAGnAAEAAAAAAAAATgACAAAAAAH1AAEAAAAAAAAAvgAAADhpaW5mAAAAAAACAAAAFWluZmUCAAAAAAEAAGh2YzEA
    AAAAFWluZmUCAAABAAIAAEV4aWYAAAAAwmlwcnAAAACkaXBjbwAAAHhodmNDAQNwAAAAAAAAAAAAHvAA/P34+AAADwMgAAEAGEABDAH//wNwAAADAJAA
    AAMAAAMAHroCQCEAAQArQgEBA3AAAAMAkAAAAwAAAwAeoBkgeWW6kkprm4EBAwIAAAMAAgAAAwACECIAAQAHRAHBcrBiQAAAABRpc3BlAAAAAAAAAMgA
    AAB4AAAAEHBpeGkAAAAAAwgICAAAABZpcG1hAAAAAAAAAAEAAQOBAoMAAAAaaXJlZgAAAAAAAAAOY2RzYwACAAEAAQAAARRtZGF0AAAASigBrxNF5ObI
    aFP//7rjp5RhoHKRTP0/2agyEOaMAAADABSQoy3qe8VJ8AAAAwAAAwPkAAADAAADAAADAEmAAAADAAADACPAAAy4AAAABkV4aWYAAElJKgAIAAAABgAS
    AQMAAQAAAAEAAAAaAQUAAQAAAFYAAAAbAQUAAQAAAF4AAAAoAQMAAQAAAAIAAAATAgMAAQAAAAEAAABphwQAAQAAAGYAAAAAAAAAOGMAAOgDAAA4YwAA
    6AMAAAYAAJAHAAQAAAAwMjEwAZEHAAQAAAABAgMAAKAHAAQAAAAwMTAwAaADAAEAAAD//wAAAqAEAAEAAADIAAAAA6AEAAEAAAB4AAAAAAAAAA==
    """

  /// A HEIC of 200 × 120 black pixels.
  package static let heic = Data(base64Encoded: text.filter { !$0.isWhitespace }) ?? Data()

  /// Returns a box with its length.
  package static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
    PNGFile.number(content.count + 8) + Array(kind.utf8) + content
  }

  /// Returns a file with one item: its properties in `meta`, and its bytes at the end.
  package static func file(_ kind: String, _ content: [UInt8], pieces: Int = 1, properties: [UInt8] = []) -> Data {
    let entry = box("infe", [2, 0, 0, 0, 0, 1, 0, 0] + Array(kind.utf8) + [0])
    let head = box("ftyp", Array("avif".utf8) + [0, 0, 0, 0] + Array("mif1".utf8))
    let length = (content.count + pieces - 1) / pieces
    func meta(_ start: Int) -> [UInt8] {
      var table: [UInt8] = [0, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 0, 0, UInt8(pieces)]
      for piece in 0..<pieces {
        table += PNGFile.number(start + piece * length) + PNGFile.number(min(length, content.count - piece * length))
      }
      return box("meta", [0, 0, 0, 0] + box("iloc", table) + box("iinf", [0, 0, 0, 0, 0, 1] + entry) + properties)
    }
    return Data(head + meta(head.count + meta(0).count + 8) + box("mdat", content))
  }
}
