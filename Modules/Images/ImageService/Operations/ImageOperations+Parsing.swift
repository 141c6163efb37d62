#if Service
public import CacheCore
internal import ImageCodecs

extension ImageOperations {
  /// Reads operations from the text of a URL.
  ///
  /// - Parameters:
  ///   - text: The operations, separated by commas.
  ///   - presets: The operations of each preset.
  ///   - maximumSide: The largest side of a size, in pixels.
  /// - Throws: `CacheError.Code.invalidOperation` with the name of the operation.
  init(_ text: String, presets: [String: ImageOperations] = [:], maximumSide: Int) throws(CacheError) {
    var parser = OperationParser(maximumSide: maximumSide)
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let values = pair.count == 2 ? pair[1].split(separator: ":", omittingEmptySubsequences: false).map(String.init) : []
      try parser.add(String(pair[0]), values, presets)
    }
    self = parser.operations
    guard isOriginal else { return }
    var original = ImageOperations()
    (original.isOriginal, original.expiry) = (true, expiry)
    guard self == original else {
      throw CacheError(.invalidOperation, reason: "'original' cannot be combined with other operations")
    }
  }
}

extension CacheError.Code {
  /// An operation in the URL of an image is unknown, or its value is not valid.
  public static let invalidOperation = Self(rawValue: "invalidOperation")
}

/// A parser that adds one operation after the other.
private struct OperationParser {
  let maximumSide: Int
  var operations = ImageOperations()

  mutating func add(
    _ name: String, _ values: [String], _ presets: [String: ImageOperations]
  ) throws(CacheError) {
    var values = OperationValues(name: name, values: values, maximumSide: maximumSide)
    switch name {
    case "preset":
      let name = try values.text("the name of a preset")
      guard let preset = presets[name] else {
        throw CacheError(.invalidOperation, reason: "unknown preset '\(name.printable)'")
      }
      try include(preset)
    case "width" where values.next == "auto":
      values.skip()
      guard operations.clientWidth == nil else { throw values.invalid("'width=auto' once") }
      operations.clientWidth = .init(
        index: operations.steps.count, fallback: values.next == nil ? nil : try values.side())
    case "width": try resize(.width(values.side()), &values)
    case "height": try resize(.height(values.side()), &values)
    case "fit": try resize(.fit(values.size()), &values)
    case "exact": operations.steps.append(.resize(.exact(try values.size()), enlarges: false))
    case "pixels": try resize(.maximumPixels(values.integer(1...maximumSide * maximumSide)), &values)
    case "fill": operations.steps.append(.fill(try values.size(), try values.anchor()))
    case "crop":
      let size = try values.size()
      if values.next == "attention" {
        values.skip()
        operations.steps.append(.cropToAttention(size))
      } else {
        operations.steps.append(.crop(size, try values.anchor()))
      }
    case "rect":
      let (x, y) = (try values.integer(0...65_535), try values.integer(0...65_535))
      let size = PixelSize(try values.integer(1...65_535), try values.integer(1...65_535))
      operations.steps.append(.cut(PixelRect(x: x, y: y, size: size)))
    case "rotate":
      let degrees = try values.integer(0...359)
      guard degrees % 90 == 0, degrees > 0 else { throw values.invalid("90, 180 or 270") }
      operations.steps.append(.rotate(quarterTurns: degrees / 90))
    case "flip": operations.steps.append(.flip(isHorizontal: try values.choice(["vertical", "horizontal"]) == 1))
    case "gray": operations.steps.append(.gray)
    case "tint":
      operations.steps.append(.tint(try values.color(), amount: values.next == nil ? 0.5 : try values.number(0...1)))
    case "radius": operations.steps.append(.round(radius: try values.number(0...Double(maximumSide))))
    case "circle": operations.steps.append(.circle)
    case "border":
      operations.steps.append(
        .border(
          width: try values.number(0...Double(maximumSide)), try values.color(),
          radius: values.next == nil ? 0 : try values.number(0...Double(maximumSide))))
    case "blur": operations.steps.append(.blur(sigma: try values.number(0.1...100)))
    case "format":
      let formats: [ImageFormat] = [.avif, .webp, .jpeg, .png]
      let choice = try values.choice(["auto", "avif", "webp", "jpeg", "png"])
      operations.format = choice == 0 ? .automatic : .fixed(formats[choice - 1])
    case "quality": operations.quality = try values.integer(1...100)
    case "lossless": operations.isLossless = true
    case "progressive": operations.isProgressive = true
    case "effort": operations.effort = try values.integer(0...9)
    case "background": operations.background = try values.color()
    case "dpr" where values.next == "auto":
      values.skip()
      operations.pixelRatio = nil
    case "dpr": operations.pixelRatio = try values.number(1...4)
    case "original": operations.isOriginal = true
    case "expires": operations.expiry = Timestamp(seconds: try values.integer(0...253_402_300_799))
    case "": throw CacheError(.invalidOperation, reason: "an operation without a name")
    default: throw CacheError(.invalidOperation, reason: "unknown operation '\(name.printable)'")
    }
    try values.end()
  }

  private mutating func resize(_ rule: ImageOperations.ResizeRule, _ values: inout OperationValues) throws(CacheError) {
    let enlarges = values.next == "enlarge"
    if enlarges { values.skip() }
    operations.steps.append(.resize(rule, enlarges: enlarges))
  }

  /// Adds the steps of a preset, and its settings in place of the current ones.
  private mutating func include(_ preset: ImageOperations) throws(CacheError) {
    var merged = preset
    merged.steps = operations.steps + preset.steps
    merged.expiry = operations.expiry
    if let width = preset.clientWidth {
      guard operations.clientWidth == nil else {
        throw CacheError(.invalidOperation, reason: "'width=auto' is given more than once")
      }
      merged.clientWidth = .init(index: width.index + operations.steps.count, fallback: width.fallback)
    } else {
      merged.clientWidth = operations.clientWidth
    }
    operations = merged
  }
}

/// The values of an operation, which are read in order.
private struct OperationValues {
  let name: String
  let values: [String]
  let maximumSide: Int
  private var index = 0

  init(name: String, values: [String], maximumSide: Int) {
    (self.name, self.values, self.maximumSide) = (name, values, maximumSide)
  }

  var next: String? { index < values.count ? values[index] : nil }

  mutating func skip() { index += 1 }

  func invalid(_ expected: String) -> CacheError {
    CacheError(.invalidOperation, reason: "the operation '\(name)' needs \(expected)")
  }

  mutating func text(_ expected: String) throws(CacheError) -> String {
    guard let text = next, !text.isEmpty else { throw invalid(expected) }
    index += 1
    return text
  }

  mutating func integer<Number: FixedWidthInteger>(_ range: ClosedRange<Number>) throws(CacheError) -> Number {
    let expected = "an integer from \(range.lowerBound) to \(range.upperBound)"
    let text = try text(expected)
    guard text.utf8.allSatisfy({ (48...57).contains($0) }), let number = Number(text), range.contains(number) else {
      throw invalid(expected)
    }
    return number
  }

  mutating func number(_ range: ClosedRange<Double>) throws(CacheError) -> Double {
    let expected = "a number from \(range.lowerBound) to \(range.upperBound)"
    let text = try text(expected)
    guard text.utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }), let number = Double(text), range.contains(number) else {
      throw invalid(expected)
    }
    // Three decimals tell apart all results that differ visibly, and give equal numbers equal text.
    return (number * 1_000).rounded() / 1_000
  }

  mutating func side() throws(CacheError) -> Int { try integer(1...maximumSide) }

  mutating func size() throws(CacheError) -> PixelSize {
    let expected = "a size such as 400x300, with sides from 1 to \(maximumSide)"
    let sides = try text(expected).split(separator: "x", omittingEmptySubsequences: false).map { text in
      text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }
    guard sides.count == 2, let width = sides[0], let height = sides[1], (1...maximumSide).contains(width),
      (1...maximumSide).contains(height)
    else { throw invalid(expected) }
    return PixelSize(width, height)
  }

  /// Reads an anchor, or returns the center if there is no further value.
  mutating func anchor() throws(CacheError) -> ImageAnchor {
    guard let name = next else { return .center }
    guard let anchor = ImageAnchor.names[name] else { throw invalid("an anchor such as center, top or bottom-left") }
    index += 1
    return anchor
  }

  mutating func color() throws(CacheError) -> RGBA {
    let expected = "a color of six or eight hexadecimal digits"
    let digits = try text(expected).compactMap(\.hexDigitValue)
    guard digits.count == values[index - 1].utf8.count, digits.count == 6 || digits.count == 8 else { throw invalid(expected) }
    let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    return RGBA(bytes[0], bytes[1], bytes[2], bytes.count == 4 ? bytes[3] : 255)
  }

  mutating func choice(_ names: [String]) throws(CacheError) -> Int {
    let expected = "one of " + names.joined(separator: ", ")
    guard let choice = names.firstIndex(of: try text(expected)) else { throw invalid(expected) }
    return choice
  }

  func end() throws(CacheError) {
    guard index == values.count else {
      throw invalid(index == 0 ? "no value" : "no more than \(index) value\(index == 1 ? "" : "s")")
    }
  }
}

extension String {
  /// The start of a name from a URL, for an error message.
  fileprivate var printable: String {
    String(prefix(40).map { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) ? $0 : "?" })
  }
}
#endif
