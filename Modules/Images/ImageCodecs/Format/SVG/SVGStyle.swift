internal import CacheCore

/// The part of a style that decides how much work a drawing is: presentation attributes, a `style` attribute, or the
/// declarations of a rule.
struct SVGStyle {
  /// The number of times that all pixels are computed, for layers, masks and paint servers.
  var passes = 0.0
  /// The number of layers.
  var layers = 0.0
  /// The factor by which relative font sizes and transforms enlarge text, at least 1.
  var gain = 1.0
  /// The largest stated font size in pixels.
  var fontSize = 0.0
  /// The length of the shortest pattern of dashes, or infinity without dashes.
  var dashes = Double.infinity
  /// Whether elements within the element inherit the references: paint servers and markers.
  var isInherited = false
  /// Whether the style has markers, which are drawn at each vertex of a path.
  var hasMarkers = false
  /// The names of the elements that the style refers to.
  var references: [String] = []

  /// Adds declarations such as `opacity: 0.5; font-size: 2em`, without escapes and comments.
  mutating func add(declarations text: some Collection<UInt8>) {
    for declaration in text.split(separator: UInt8(ascii: ";")) {
      let parts = declaration.split(separator: UInt8(ascii: ":"), maxSplits: 1)
      guard parts.count == 2 else { continue }
      let name = String(decoding: parts[0], as: UTF8.self).split(whereSeparator: \.isWhitespace).joined().lowercased()
      add(name, String(decoding: parts[1], as: UTF8.self).lowercased())
    }
  }

  /// Adds a property with its value in lower case.
  mutating func add(_ name: String, _ value: String) {
    switch name {
    case "font-size", "font":
      // In the shorthand, a number without a unit is a weight, and a number after a slash is the height of a line.
      for number in SVGNumber.all(in: value.prefix { $0 != "/" }) where name == "font-size" || !number.unit.isEmpty {
        switch number.unit {
        case "em", "rem", "ex", "ch": gain *= max(number.value, 1)
        case "%": gain *= max(number.value / 100, 1)
        default: fontSize = max(fontSize, number.pixels)
        }
      }
      if value.contains("larger") { gain *= 1.2 }
    case "opacity":
      let number = SVGNumber.all(in: value).first
      if number?.value != (number?.unit == "%" ? 100 : 1) { addLayer(passes: 1) }
    case "mask": if !isNone(value) { addLayer(passes: 2) }
    case "mix-blend-mode", "isolation": addLayer(passes: 1)
    // Functions such as `blur(2px)`. A reference also counts by its element.
    case "filter": if !isNone(value) { addLayer(passes: Double(value.utf8.count { $0 == UInt8(ascii: "(") }) * 5) }
    case "transform", "patterntransform": gain *= max(SVGNumber.scale(of: value), 1)
    case "fill", "stroke":
      // A gradient or a pattern is computed for each pixel.
      if value.contains("url(") { (passes, isInherited) = (passes + 1, true) }
    case "stroke-dasharray":
      let length = SVGNumber.all(in: value).reduce(0) { $0 + abs($1.value) }
      if length > 0 { dashes = min(dashes, length) }
    default: if name.hasPrefix("marker"), value.contains("url(") { (hasMarkers, isInherited) = (true, true) }
    }
  }

  private mutating func addLayer(passes count: Double) {
    layers += 1
    passes += count
  }

  private func isNone(_ value: String) -> Bool { value.split(whereSeparator: \.isWhitespace).joined() == "none" }
}

/// A number in an attribute, with its unit.
struct SVGNumber {
  let value: Double
  /// The letters after the number, or `%`.
  let unit: String

  /// The value in pixels (CSS Values 3 §6). Relative units count as sixteen pixels.
  var pixels: Double {
    let size = abs(value)
    return switch unit {
    case "", "px": size
    case "pt": size * 4 / 3
    case "pc", "em", "rem", "ex", "ch": size * 16
    case "mm": size * 3.78
    case "cm": size * 37.8
    default: size * 96
    }
  }

  /// Returns all numbers in a text in lower case.
  static func all(in text: some StringProtocol) -> [SVGNumber] {
    let bytes = Array(text.utf8)
    func isDigit(_ index: Int) -> Bool { index < bytes.count && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) }
    var numbers: [SVGNumber] = []
    var next = 0
    while next < bytes.count {
      guard isDigit(next) || bytes[next] == UInt8(ascii: ".") && isDigit(next + 1) else {
        next += 1
        continue
      }
      let start = next
      while isDigit(next) { next += 1 }
      if next < bytes.count, bytes[next] == UInt8(ascii: ".") { next += 1 }
      while isDigit(next) { next += 1 }
      if next < bytes.count, bytes[next] == UInt8(ascii: "e") {
        let hasSign = next + 1 < bytes.count && [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(bytes[next + 1])
        if isDigit(next + (hasSign ? 2 : 1)) {
          next += hasSign ? 2 : 1
          while isDigit(next) { next += 1 }
        }
      }
      let end = next
      while next < bytes.count, bytes[next] == UInt8(ascii: "%") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(bytes[next])
      {
        next += 1
      }
      var digits = String(decoding: bytes[start..<end], as: UTF8.self)
      if digits.last == "." { digits.removeLast() }
      let isNegative = start > 0 && bytes[start - 1] == UInt8(ascii: "-")
      // A number beyond the range of `Double` is infinite.
      let value = Double(digits) ?? .infinity
      numbers.append(
        SVGNumber(value: isNegative ? -value : value, unit: String(decoding: bytes[end..<next], as: UTF8.self)))
    }
    return numbers
  }

  /// Returns the largest factor by which a list of transforms enlarges a length.
  static func scale(of transforms: String) -> Double {
    transforms.split(separator: ")").reduce(1) { product, text in
      let parts = text.split(separator: "(", maxSplits: 1)
      guard parts.count == 2 else { return product }
      let numbers = all(in: parts[1]).map(\.value)
      let name = parts[0].split { !$0.isLetter }.last ?? ""
      switch name {
      case "scale", "scalex", "scaley": return product * (numbers.map(abs).max() ?? 1)
      case "matrix" where numbers.count >= 4:
        // The largest singular value.
        let (a, b, c, d) = (numbers[0], numbers[1], numbers[2], numbers[3])
        let (sum, determinant) = (a * a + b * b + c * c + d * d, a * d - b * c)
        let scale = ((sum + max(sum * sum - 4 * determinant * determinant, 0).squareRoot()) / 2).squareRoot()
        return product * (scale.isNaN ? .infinity : scale)
      // An angle near 90° has no bound.
      case "skewx", "skewy", "skew": return product * (numbers.contains { abs($0) > 80 } ? .infinity : 6)
      default: return product
      }
    }
  }
}

/// The references of a style by `url(…)` and `@import` (CSS Syntax Module Level 3 §4.3).
enum StyleReferences {
  /// The placeholder for an escaped character that is not a letter, digit or dash. Such a character is part of a name
  /// or a string, whatever its meaning without the escape.
  static let escaped: UInt8 = 0

  /// Returns the first reference to an embedded document other than a font, or `nil` if there is none. References to files and
  /// hosts are ignored.
  ///
  /// - Parameter inside: Called with the name of each element of the drawing that the style refers to.
  static func embedded(in style: [UInt8], inside: (String) -> Void = { _ in }) -> ArraySlice<UInt8>? {
    let text = style.contains(UInt8(ascii: "\\")) ? withoutEscapes(style) : style
    var next = 0
    var importsAreExternal = false
    while next < text.count {
      switch text[next] {
      case UInt8(ascii: "/") where text[next...].startsWithoutCase("/*"):
        next = endOfComment(text, next + 2)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        next = endOfString(text, next) + 1
      case UInt8(ascii: "@") where text[next...].startsWithoutCase("@import"):
        // The rest of the style is checked once, because a comment can hide the end of the rule.
        guard !importsAreExternal else {
          next += 1
          continue
        }
        if text[next...].containsDataURL { return text[next...] }
        importsAreExternal = true
      case UInt8(ascii: "(") where isURL(text[..<next]):
        let target = target(text, next + 1)
        if isDocument(target) { return target }
        let name = target.drop { $0.isBlank }
        if name.first == UInt8(ascii: "#") { SVGWork.spellings(name.dropFirst()).forEach(inside) }
        next = target.endIndex
      default:
        next += 1
      }
    }
    return nil
  }

  private static func isURL(_ before: ArraySlice<UInt8>) -> Bool {
    guard before.suffix(3).startsWithoutCase("url") else { return false }
    guard let byte = before.dropLast(3).last else { return true }
    return !isNamePart(byte)
  }

  private static func isNamePart(_ byte: UInt8) -> Bool { byte.isNamePart || byte == escaped }

  /// Returns a style without escapes and comments. Punctuation in strings becomes a part of the string.
  static func plain(_ style: some Collection<UInt8>) -> [UInt8] {
    let style = Array(style)
    let text = style.contains(UInt8(ascii: "\\")) ? withoutEscapes(style) : style
    var plain: [UInt8] = []
    plain.reserveCapacity(text.count)
    var next = 0
    while next < text.count {
      switch text[next] {
      case UInt8(ascii: "/") where text[next...].startsWithoutCase("/*"):
        next = min(endOfComment(text, next + 2), text.count)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        let end = min(endOfString(text, next) + 1, text.count)
        plain += text[next..<end].map { byte in ":;{}".utf8.contains(byte) ? escaped : byte }
        next = end
      case let byte:
        plain.append(byte)
        next += 1
      }
    }
    return plain
  }

  /// Returns the text in the parentheses, quoted or not.
  private static func target(_ text: [UInt8], _ start: Int) -> ArraySlice<UInt8> {
    let rest = text[start...].drop { $0.isBlank }
    if rest.first?.isQuote == true { return text[rest.startIndex + 1..<endOfString(text, rest.startIndex)] }
    return rest.prefix { $0 != UInt8(ascii: ")") }
  }

  private static func endOfComment(_ text: [UInt8], _ start: Int) -> Int {
    var next = start
    while next + 1 < text.count, text[next] != UInt8(ascii: "*") || text[next + 1] != UInt8(ascii: "/") { next += 1 }
    return next + 2
  }

  /// Returns the index of the closing quote or of the end of the line, which also ends a string.
  private static func endOfString(_ text: [UInt8], _ start: Int) -> Int {
    var next = start + 1
    while next < text.count, text[next] != text[start], text[next] != 0x0A, text[next] != 0x0D, text[next] != 0x0C { next += 1 }
    return next
  }

  /// Returns whether a reference is to a part of an embedded document. Data without a fragment is a font, or nothing that the
  /// engines draw.
  private static func isDocument(_ target: ArraySlice<UInt8>) -> Bool {
    target.isDataURL && (target.contains(UInt8(ascii: "#")) || target.contains(escaped))
  }

  /// Resolves escapes: `\75rl` is "url".
  private static func withoutEscapes(_ style: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(style.count)
    var next = 0
    while next < style.count {
      guard style[next] == UInt8(ascii: "\\") else {
        text.append(style[next])
        next += 1
        continue
      }
      next += 1
      let digits = style[next...].prefix(6).prefix { $0.hexValue != nil }
      guard !digits.isEmpty else {
        if next < style.count { text.append(named(UInt32(style[next]))) }
        next += 1
        continue
      }
      text.append(named(UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0))
      next = digits.endIndex
      // One white space character belongs to the escape, and CR LF counts as one.
      if style[next...].startsWithoutCase("\r\n") {
        next += 2
      } else if next < style.count, style[next].isBlank {
        next += 1
      }
    }
    return text
  }

  private static func named(_ character: UInt32) -> UInt8 {
    guard let byte = UInt8(exactly: character), byte < 0x80, isNamePart(byte) else { return escaped }
    return byte
  }
}
