#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
