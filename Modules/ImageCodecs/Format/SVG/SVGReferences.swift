internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Refuses drawings that point out of themselves, to a file or a host. No engine here follows such a reference; a drawing whose
/// parts are missing would be shown as if it were whole. The pictures that one carries (`data:`) are held against the limits,
/// since the engine will not do that.
///
/// A reference to a part of the same drawing (`#name`) is none of these, nor is a link (`<a href>`). What a parser would refuse
/// anyway may get past here; what one reads is read here in the same way, in one pass.
struct SVGReferences {
  /// Reads the header of a picture within the drawing.
  typealias HeaderReader = (Data) throws(CacheError) -> ImageHeader

  private var reader: MarkupReader
  private var entities = MarkupEntities()
  /// What a style sheet says, from its first to its last tag, without what comments and sections cut it into; nil: this is no
  /// style sheet.
  private var style: [UInt8]?
  private var pictures = 0
  private var pixels = 0
  /// Of the largest picture.
  private var largest = 0
  private let limits: ImageLimits
  private let header: HeaderReader

  private init(_ data: Data, _ limits: ImageLimits, _ header: @escaping HeaderReader) {
    reader = MarkupReader(Array(data))
    self.limits = limits
    self.header = header
  }

  /// - Returns: what the pictures take while the drawing is made, in bytes: each is kept as four for a pixel, and one at a time
  ///   is decoded to as many.
  @discardableResult
  static func check(
    _ data: Data, _ limits: ImageLimits, _ watch: DecodingDeadline, header: @escaping HeaderReader
  ) throws(CacheError) -> Double {
    var references = SVGReferences(data, limits, header)
    try references.check(watch)
    return (Double(references.pixels) + Double(references.largest)) * 4
  }

  private mutating func check(_ watch: DecodingDeadline) throws(CacheError) {
    var count = 0
    while reader.current != nil {
      if count % 64 == 0, let end = watch.end { throw end }
      count += 1
      try text(reader.take(upTo: UInt8(ascii: "<")))
      if reader.isAt("<!--") {
        reader.skip(4)
        _ = reader.take(past: "-->")
      } else if reader.isAt("<![CDATA[") {
        reader.skip(9)
        let section = reader.take(past: "]]>")
        style?.append(contentsOf: section)
      } else if reader.isAt("<?") {
        try instruction()
      } else if reader.isAt("<!") {
        try documentType()
      } else if reader.isAt("</") {
        reader.skip(2)
        let name = Self.local(reader.word())
        if name == "style" { try endOfStyle() }
        _ = reader.take(past: ">")
      } else if reader.current != nil {
        try element()
      }
    }
    try endOfStyle()
  }

  private mutating func text(_ text: ArraySlice<UInt8>) throws(CacheError) {
    if style != nil { style?.append(contentsOf: try entities.unfolding(text, isAttribute: false)) }
  }

  private mutating func endOfStyle() throws(CacheError) {
    if let style, let target = StyleReferences.leadingOut(of: style) { throw Self.leadingOut(target) }
    style = nil
  }

  /// `<?name …?>`. A style sheet that is named so lies elsewhere; and in an encoding that has other characters in ASCII's places
  /// nothing could be found.
  private mutating func instruction() throws(CacheError) {
    reader.skip(2)
    let content = reader.take(past: "?>")
    if content.startsWithoutCase("xml-stylesheet") { throw Self.leadingOut(content) }
    guard content.startsWithoutCase("xml"), content.dropFirst(3).first?.isBlank == true else { return }
    var declaration = MarkupReader(Array(content))
    while declaration.current != nil {
      let word = declaration.word()
      if word.isEmpty, declaration.quoted() == nil { declaration.skip() }
      guard word.elementsEqual("encoding".utf8) else { continue }
      while let byte = declaration.current, !byte.isQuote { declaration.skip() }
      let name = String(decoding: declaration.quoted() ?? [], as: UTF8.self).lowercased()
      guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(name) || name.hasPrefix("iso-8859-") || name.hasPrefix("windows-125")
      else { throw CacheError(.unsupported, reason: "SVG: it is encoded in \(name.prefix(40)); UTF-8 and ISO 8859 are read") }
    }
  }

  /// `<!DOCTYPE …>` with the declarations in it.
  private mutating func documentType() throws(CacheError) {
    reader.skip(2)
    while let byte = reader.current, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "[") {
      if reader.quoted() == nil, reader.word().isEmpty { reader.skip() }
    }
    guard reader.current == UInt8(ascii: "[") else { return reader.skip() }
    reader.skip()
    while let byte = reader.current, byte != UInt8(ascii: "]") {
      if reader.isAt("<!--") {
        reader.skip(4)
        _ = reader.take(past: "-->")
      } else if reader.isAt("<?") {
        try instruction()
      } else if reader.isAt("<!") {
        try declaration()
      } else if byte == UInt8(ascii: "%") {
        throw Self.parameterEntity
      } else {
        reader.skip()
      }
    }
    _ = reader.take(past: ">")
  }

  /// `<!ENTITY name "…">`; one with `SYSTEM "…"` reads a file. `<!ATTLIST …>` gives elements attributes that they don't show.
  private mutating func declaration() throws(CacheError) {
    reader.skip(2)
    let kind = reader.word()
    reader.skipBlanks()
    if reader.current == UInt8(ascii: "%") { throw Self.parameterEntity }
    var names: [ArraySlice<UInt8>] = []
    var values: [ArraySlice<UInt8>] = []
    while let byte = reader.current, byte != UInt8(ascii: ">") {
      if let value = reader.quoted() {
        values.append(value)
      } else {
        let name = reader.word()
        if name.isEmpty { reader.skip() } else { names.append(name) }
      }
    }
    reader.skip()
    if kind.elementsEqual("ENTITY".utf8), let name = names.first, let value = values.last {
      if names.count > 1 { throw Self.leadingOut(value) }
      try entities.declare(name, value)
    } else if kind.elementsEqual("ATTLIST".utf8) {
      for name in names where ["href", "src"].contains(Self.local(name)) { throw Self.leadingOut(values.first ?? name) }
      for value in values { try attribute("", of: "", value) }
    }
  }

  private static let parameterEntity = CacheError(
    .decodingFailed, reason: "SVG: it declares a parameter entity, which is not read")

  private mutating func element() throws(CacheError) {
    reader.skip()
    let element = Self.local(reader.word())
    if style != nil {
      throw CacheError(.decodingFailed, reason: "SVG: there is an element in a style sheet (\(element.prefix(40)))")
    }
    var isClosed = false
    while let byte = reader.current, byte != UInt8(ascii: ">") {
      let name = reader.word()
      if name.isEmpty {
        if !byte.isBlank { isClosed = byte == UInt8(ascii: "/") }
        if reader.quoted() == nil { reader.skip() }
        continue
      }
      isClosed = false
      reader.skipBlanks()
      guard reader.current == UInt8(ascii: "=") else { continue }
      reader.skip()
      reader.skipBlanks()
      if let value = reader.quoted() { try attribute(Self.local(name), of: element, value) }
    }
    reader.skip()
    if element == "style", !isClosed { style = [] }
  }

  private mutating func attribute(_ name: String, of element: String, _ value: ArraySlice<UInt8>) throws(CacheError) {
    let value = try entities.unfolding(value, isAttribute: true)
    guard name == "href" || name == "src" else {
      if let target = StyleReferences.leadingOut(of: value) { throw Self.leadingOut(target) }
      return
    }
    let target = value.drop { $0.isBlank }
    guard element != "a", let first = target.first, first != UInt8(ascii: "#") else { return }
    guard target.startsWithoutCase("data:"), element == "image" || element == "feimage" else { throw Self.leadingOut(target) }
    try picture(EmbeddedPicture(target))
  }

  /// All of a drawing's pictures together may have as many pixels as one picture, with all frames: engines may make them all.
  private mutating func picture(_ picture: EmbeddedPicture) throws(CacheError) {
    let found: ImageHeader
    do throws(CacheError) { found = try header(picture.data) } catch {
      throw CacheError(error.code, reason: "SVG: in a picture that it carries: \(error.reason)")
    }
    pictures += 1
    let (area, overflows) = found.size.area.multipliedReportingOverflow(by: max(found.frameCount, 1))
    largest = max(largest, area)
    pixels = overflows || area > .max - pixels ? .max : pixels + area
    guard pixels <= limits.pixels, pictures <= limits.frames else {
      throw CacheError(
        .imageLimitExceeded,
        reason:
          "SVG: it carries \(pictures) pictures or more, of \(pixels) pixels, the limits are \(limits.frames) and \(limits.pixels)"
      )
    }
  }

  private static func leadingOut(_ target: ArraySlice<UInt8>) -> CacheError {
    CacheError(.decodingFailed, reason: "SVG: it points out of itself, to \(target.excerpt), which is not followed")
  }

  /// A name without its prefix, in lower case.
  private static func local(_ name: ArraySlice<UInt8>) -> String {
    let start = name.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? name.startIndex
    return String(decoding: name[start...], as: UTF8.self).lowercased()
  }
}
