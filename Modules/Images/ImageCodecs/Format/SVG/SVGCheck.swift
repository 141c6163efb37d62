internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A check of an SVG drawing against the limits. ``SVGWork`` estimates the work of drawing it, with everything that it refers to.
///
/// Embedded images (`data:`) are checked by their headers, because the engine does not check them. Other embedded documents are
/// refused, because their work is not estimated. A reference to a file or a host is ignored: the engine does not follow it, as
/// browsers do not in an `<img>`.
///
/// A file that XML parsers refuse may pass this check. Files that parsers accept are read in the same way here, in one pass.
struct SVGCheck {
  /// A function that reads the header of an embedded image.
  typealias HeaderReader = (Data) throws(CacheError) -> ImageHeader

  /// The properties of a drawing that passed the check.
  struct Drawing {
    /// The memory for the embedded images and for the elements while the drawing is made, in bytes. Each image is stored as
    /// four bytes per pixel, and one more is being decoded.
    var memory: Double
    /// The work of drawing.
    var work: SVGWork.Amount
    /// The file for the engine, if it differs from the one that was checked.
    var file: Data?
  }

  /// The limit of libxml2 for one text or attribute, in bytes.
  private static let longest = 10_000_000
  /// The number of bytes between two checks of the time.
  private static let checkedPart = 1 << 16

  private var reader: MarkupReader
  private var work = SVGWork()
  /// The places of the type `image/jpg` in embedded images. librsvg 2.54 knows only `image/jpeg`.
  private var shortTypes: [Int] = []
  private var entities = MarkupEntities()
  /// The content of the current style sheet, from its first to its last tag, without comments and section markers.
  /// `nil` outside style sheets.
  private var style: [UInt8]?
  private var imageCount = 0
  private var pixels = 0
  /// The pixels of the largest embedded image.
  private var largest = 0
  private let limits: ImageLimits
  private let header: HeaderReader

  private init(_ data: Data, _ limits: ImageLimits, _ header: @escaping HeaderReader) {
    reader = MarkupReader(Array(data))
    self.limits = limits
    self.header = header
  }

  @discardableResult
  static func check(
    _ data: Data, _ limits: ImageLimits, _ watch: DecodingDeadline, header: @escaping HeaderReader
  ) throws(CacheError) -> Drawing {
    var check = SVGCheck(data, limits, header)
    try check.check(watch)
    let work = try check.work.total(watch, limits)
    try limits.check(time: work.time)
    guard work.fontSize <= SVGWork.largestFont else {
      throw SVGWork.exceeded(
        "its largest text has \(Int(clamping: work.fontSize)) pixels, the limit is \(Int(SVGWork.largestFont))")
    }
    return Drawing(
      memory: (Double(check.pixels) + Double(check.largest)) * 4 + check.work.memory + Double(data.count) * 4,
      work: work, file: check.completed(data))
  }

  /// Returns the file with the type `image/jpeg` in place of `image/jpg`, or `nil` if it does not differ.
  private func completed(_ data: Data) -> Data? {
    guard !shortTypes.isEmpty else { return nil }
    var (file, start) = (Data(capacity: data.count + shortTypes.count), 0)
    for place in shortTypes {
      file.append(contentsOf: reader.bytes[start..<place])
      file.append(UInt8(ascii: "e"))
      start = place
    }
    return file + reader.bytes[start...]
  }

  private mutating func check(_ watch: DecodingDeadline) throws(CacheError) {
    var (count, checked) = (0, 0)
    while reader.current != nil {
      if count % 64 == 0 || reader.next - checked >= Self.checkedPart {
        if let end = watch.end { throw end }
        checked = reader.next
      }
      count += 1
      try text(reader.take(upTo: UInt8(ascii: "<")))
      if reader.skipComment() {
        continue
      } else if reader.isAt("<![CDATA[") {
        reader.skip(9)
        let section = reader.take(past: "]]>")
        if style == nil { work.text(section.count) }
        style?.append(contentsOf: section)
      } else if reader.isAt("<?") {
        try instruction()
      } else if reader.isAt("<!") {
        try documentType()
      } else if reader.isAt("</") {
        reader.skip(2)
        let name = Self.local(reader.word())
        if name == "style" { try endOfStyle(watch) }
        work.close()
        _ = reader.take(past: ">")
      } else if reader.current != nil {
        try element()
      }
    }
    try endOfStyle(watch)
  }

  private mutating func text(_ text: ArraySlice<UInt8>) throws(CacheError) {
    try Self.checkLength(text)
    if style != nil {
      style?.append(contentsOf: try entities.unfolding(text, isAttribute: false))
    } else if text.contains(UInt8(ascii: "&")) {
      work.text(try entities.unfolding(text, isAttribute: false).count)
    } else if text.contains(where: { !$0.isBlank }) {
      work.text(text.count)
    }
  }

  private mutating func endOfStyle(_ watch: DecodingDeadline) throws(CacheError) {
    if let style {
      if let target = StyleReferences.embedded(in: style) { throw Self.embedded(target) }
      try work.styleSheet(style, watch)
    }
    style = nil
  }

  private static func checkLength(_ text: ArraySlice<UInt8>) throws(CacheError) {
    guard text.count <= longest else { throw SVGWork.exceeded("a text or an attribute has more than \(longest) bytes") }
  }

  /// Reads `<?name …?>`. An embedded style sheet is refused. An encoding that is not ASCII-compatible is refused,
  /// because references could not be found in it.
  private mutating func instruction() throws(CacheError) {
    reader.skip(2)
    let content = reader.take(past: "?>")
    if content.startsWithoutCase("xml-stylesheet"), content.contains(UInt8(ascii: "&")) || content.containsDataURL {
      throw Self.embedded(content)
    }
    guard content.startsWithoutCase("xml"), content.dropFirst(3).first?.isBlank == true else { return }
    var declaration = MarkupReader(Array(content))
    while declaration.current != nil {
      let word = declaration.word()
      if word.isEmpty, declaration.quoted() == nil { declaration.skip() }
      guard word.elementsEqual("encoding".utf8) else { continue }
      while let byte = declaration.current, !byte.isQuote { declaration.skip() }
      let name = String(decoding: declaration.quoted() ?? [], as: UTF8.self).lowercased()
      guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(name) || name.hasPrefix("iso-8859-") || name.hasPrefix("windows-125")
      else { throw CacheError(.unsupported, reason: "SVG: unsupported encoding '\(name.prefix(40))', not UTF-8 or ISO 8859") }
    }
  }

  /// Reads `<!DOCTYPE …>` with its declarations.
  private mutating func documentType() throws(CacheError) {
    reader.skip(2)
    while let byte = reader.current, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "[") {
      if reader.quoted() == nil, reader.word().isEmpty { reader.skip() }
    }
    guard reader.current == UInt8(ascii: "[") else { return reader.skip() }
    reader.skip()
    while let byte = reader.current, byte != UInt8(ascii: "]") {
      if reader.skipComment() {
        continue
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

  /// Reads a declaration. `<!ENTITY …>` declares an entity, and `<!ATTLIST …>` adds default attributes to elements.
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
      // An external entity has a keyword after its name. The engine does not load it.
      if names.count > 1 { return }
      try entities.declare(name, value)
    } else if kind.elementsEqual("ATTLIST".utf8) {
      // A default applies to elements whose work is counted without it. Names of keywords are in upper case.
      if !values.isEmpty, let name = names.dropFirst().first(where: { !Self.isHarmless($0) }) {
        throw CacheError(
          .decodingFailed, reason: "SVG: its document type gives elements the attribute \(String(decoding: name, as: UTF8.self))")
      }
    }
  }

  /// Returns whether a word of an attribute declaration is a keyword or the name of a namespace.
  private static func isHarmless(_ word: ArraySlice<UInt8>) -> Bool {
    word.startsWithoutCase("xmlns") || word.allSatisfy { "#".utf8.contains($0) || $0 != $0.lowercased }
  }

  private static let parameterEntity = CacheError(
    .decodingFailed, reason: "SVG: it declares a parameter entity, which is not supported")

  private mutating func element() throws(CacheError) {
    reader.skip()
    let element = Self.local(reader.word())
    if style != nil {
      throw CacheError(.decodingFailed, reason: "SVG: a style sheet contains an element (\(element.prefix(40)))")
    }
    try work.begin(element)
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
    try work.end(isClosed: isClosed, limits)
    if element == "style", !isClosed { style = [] }
  }

  private mutating func attribute(_ name: String, of element: String, _ text: ArraySlice<UInt8>) throws(CacheError) {
    try Self.checkLength(text)
    let value = try entities.unfolding(text, isAttribute: true)
    guard name == "href" || name == "src" else {
      var references: [String] = []
      if let target = StyleReferences.embedded(in: value, inside: { references.append($0) }) { throw Self.embedded(target) }
      return try work.attribute(name, value, references: references)
    }
    let target = value.drop { $0.isBlank }
    guard element != "a", let first = target.first else { return }
    guard first != UInt8(ascii: "#") else {
      return try work.attribute("href", [], references: Array(SVGWork.spellings(target.dropFirst())))
    }
    guard target.isDataURL else { return }
    guard target.startsWithoutCase("data:"), element == "image" || element == "feimage" else { throw Self.embedded(target) }
    try checkImage(EmbeddedImage(target))
    guard target.startsWithoutCase("data:image/jpg") else { return }
    let written = text.drop { $0.isBlank }
    guard written.startsWithoutCase("data:image/jpg") else {
      throw CacheError(.decodingFailed, reason: "SVG: unsupported type image/jpg of an embedded image, in place of image/jpeg")
    }
    shortTypes.append(written.startIndex + "data:image/jp".utf8.count)
  }

  /// Counts an embedded image. Engines may decode all of them, so together they may have as many pixels as one image,
  /// with all frames.
  private mutating func checkImage(_ image: EmbeddedImage) throws(CacheError) {
    let found: ImageHeader
    do throws(CacheError) { found = try header(image.data) } catch {
      throw CacheError(error.code, reason: "SVG: in an embedded image: \(error.reason)")
    }
    imageCount += 1
    let (area, overflows) = found.size.area.multipliedReportingOverflow(by: max(found.frameCount, 1))
    largest = max(largest, area)
    pixels = overflows || area > .max - pixels ? .max : pixels + area
    guard pixels <= limits.pixels, imageCount <= limits.frames else {
      throw CacheError(
        .imageLimitExceeded,
        reason:
          "SVG: it embeds at least \(imageCount) images of \(pixels) pixels, the limits are \(limits.frames) and \(limits.pixels)"
      )
    }
  }

  private static func embedded(_ target: ArraySlice<UInt8>) -> CacheError {
    CacheError(.decodingFailed, reason: "SVG: unsupported embedded document \(target.excerpt)")
  }

  /// Returns a name without its prefix, in lower case.
  private static func local(_ name: ArraySlice<UInt8>) -> String {
    let start = name.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? name.startIndex
    return String(decoding: name[start...], as: UTF8.self).lowercased()
  }
}

/// An image that an SVG contains as a `data:` URL (RFC 2397): PNG, JPEG or GIF, in base64. Every engine draws these
/// formats. In other formats, a codec without known limits would read the image, or the image would be missing without
/// an error.
struct EmbeddedImage {
  let data: Data
  let format: ImageFormat

  init(_ url: ArraySlice<UInt8>) throws(CacheError) {
    let content = url.dropFirst("data:".utf8.count)
    let head = content.prefix { $0 != UInt8(ascii: ",") }
    let words = head.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self).split(separator: " ").joined().lowercased()
    }
    guard let format = Self.formats[words.first ?? ""], words.last == "base64", head.endIndex < content.endIndex else {
      throw CacheError(
        .decodingFailed,
        reason: "SVG: unsupported embedded image data:\(head.excerpt.prefix(60)); supported are PNG, JPEG and GIF in base64")
    }
    guard let data = Self.decoded(content[(head.endIndex + 1)...]), ImageFormat(of: data) == format else {
      throw CacheError(.decodingFailed, reason: "SVG: an embedded image is not a \(format)")
    }
    self.data = data
    self.format = format
  }

  private static let formats: [String: ImageFormat] = [
    "image/png": .png, "image/jpeg": .jpeg, "image/jpg": .jpeg, "image/gif": .gif,
  ]

  private static func decoded(_ text: ArraySlice<UInt8>) -> Data? {
    var digits = Data(capacity: text.count + 3)
    var index = text.startIndex
    while index < text.endIndex {
      var byte = text[index]
      index += 1
      if byte == UInt8(ascii: "%") {
        guard index + 1 < text.endIndex, let high = text[index].hexValue, let low = text[index + 1].hexValue
        else { return nil }
        byte = high << 4 | low
        index += 2
      }
      if !byte.isBlank { digits.append(byte) }
    }
    // Decoders accept missing padding.
    if digits.count % 4 != 0 { digits.append(contentsOf: repeatElement(UInt8(ascii: "="), count: 4 - digits.count % 4)) }
    return Data(base64Encoded: digits)
  }
}
