internal import CacheCore

/// A bound on the work of drawing an SVG, computed from its markup before an engine draws it.
///
/// An engine cannot be stopped within one call, and a few hundred bytes can be hours of work: nested references, filters, long
/// texts. Each element has an estimate, and a reference adds that of its target. The estimates are measured with librsvg 2.54.
struct SVGWork {
  /// The work of an element with its content and with everything that it refers to.
  struct Amount {
    /// The number of drawn elements.
    var elements = 1.0
    /// The part of the time in microseconds that does not depend on the size of the result.
    var time = 3.0
    /// The number of times that all pixels are computed.
    var passes = 0.0
    /// The factor by which relative font sizes and transforms enlarge text.
    var gain = 1.0

    mutating func add(_ other: Amount, times count: Double = 1) {
      elements += other.elements * count
      time += other.time * count
      passes += other.passes * count
    }
  }

  /// Whether an attribute decides how much work a drawing is.
  static func counts(_ attribute: String) -> Bool {
    [
      "class", "d", "filter", "font", "font-size", "height", "id", "isolation", "kernelmatrix", "kernelunitlength", "mask",
      "mix-blend-mode", "numoctaves", "opacity", "order", "patterntransform", "points", "radius", "style", "transform", "viewbox",
      "width",
    ].contains(attribute) || attribute.hasPrefix("marker")
  }

  private struct Element {
    let name: String
    var amount = Amount()
    var style = SVGStyle()
    var classes: [String] = []
    var textLength = 0
    /// The length of the path in bytes.
    var pathLength = 0
    var viewBox: [Double] = []
    var sides: [String: SVGNumber] = [:]
    /// The index after the last element in its content.
    var end = 0
  }

  static let mostElements = 100_000
  private static let mostReferences = 1_000_000
  /// The limit of libxml2.
  private static let deepest = 256
  /// The depth of references and elements within elements.
  private static let deepestReference = 600
  /// librsvg has a fixed buffer for the numbers of a convolution, and ends the process if they are more.
  private static let mostKernelNumbers = 400
  /// The largest font size in pixels. Font libraries fail beyond it, and end the process beyond two million.
  static let largestFont = 50_000.0

  private var elements: [Element] = []
  private var open: [Int] = []
  private var depth = 0
  private var referenceCount = 0
  private var names: [String: Int] = [:]
  private var classes: [String: SVGStyle] = [:]
  /// The style of rules that may apply to any element.
  private var common = SVGStyle()
  private var ruleCount = 0.0
  /// The number of selectors that search an element's siblings.
  private var siblingSearches = 0.0
  /// The element whose attributes are being read.
  private var current = Element(name: "")

  /// The memory for the elements in bytes.
  var memory: Double { Double(elements.count) * 2_048 }

  // MARK: Reading

  mutating func begin(_ name: String) throws(CacheError) {
    guard elements.count < Self.mostElements else { throw Self.exceeded("it has more than \(Self.mostElements) elements") }
    guard open.count < Self.deepest else { throw Self.exceeded("its elements are nested more than \(Self.deepest) deep") }
    current = Element(name: name)
    switch name {
    case "fegaussianblur": current.amount.passes = 5
    case "fediffuselighting", "fespecularlighting": current.amount.passes = 2
    case "image", "femerge", "feimage", "feturbulence", "fecomposite", "feblend", "feoffset", "feflood", "fecolormatrix",
      "fecomponenttransfer", "fedisplacementmap", "femorphology", "fetile", "feconvolvematrix", "fedropshadow":
      current.amount.passes = 1
    default: break
    }
  }

  /// Reads an attribute, also one that a document type gives to elements, which has no element.
  ///
  /// - Parameter references: The names of the elements that the value refers to.
  mutating func attribute(_ name: String, _ value: [UInt8], references: [String]) throws(CacheError) {
    referenceCount += references.count
    guard referenceCount <= Self.mostReferences else { throw Self.exceeded("it has more than \(Self.mostReferences) references") }
    current.style.references += references
    switch name {
    case "id":
      let id = String(decoding: value, as: UTF8.self)
      if names[id] == nil { names[id] = elements.count }
    case "class": current.classes = String(decoding: value, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
    case "d", "points": current.pathLength = value.count
    case "style": current.style.add(declarations: StyleReferences.plain(value))
    case "numoctaves":
      let octaves = numbers(value).first?.value ?? 1
      guard octaves <= 1_000 else { throw Self.exceeded("a filter has more than 1000 octaves") }
      current.amount.passes = max(current.amount.passes, octaves)
    case "radius" where current.name == "femorphology" || current.name.isEmpty:
      let radius = min(numbers(value).map { abs($0.value) }.max() ?? 0, 5)
      current.amount.passes = (radius * 2 + 1) * (radius * 2 + 1)
    case "kernelmatrix":
      guard numbers(value).count <= Self.mostKernelNumbers else {
        throw Self.exceeded("the matrix of a filter has more than \(Self.mostKernelNumbers) numbers")
      }
    case "order":
      let order = numbers(value).map { abs($0.value) }
      let count = (order.first ?? 3) * (order.count > 1 ? order[1] : order.first ?? 3)
      guard count <= Double(Self.mostKernelNumbers) else {
        throw Self.exceeded("the matrix of a filter has more than \(Self.mostKernelNumbers) numbers")
      }
      current.amount.passes = max(current.amount.passes, count / 4)
    case "kernelunitlength":
      // The engine enlarges the image by this length. Browsers ignore the attribute.
      throw CacheError(.decodingFailed, reason: "SVG: unsupported attribute kernelUnitLength")
    case "viewbox": current.viewBox = numbers(value).map(\.value)
    case "width", "markerwidth": current.sides["width"] = numbers(value).first
    case "height", "markerheight": current.sides["height"] = numbers(value).first
    case _ where Self.counts(name): current.style.add(name, String(decoding: value, as: UTF8.self).lowercased())
    default: break
    }
  }

  private func numbers(_ value: [UInt8]) -> [SVGNumber] {
    SVGNumber.all(in: String(decoding: value, as: UTF8.self).lowercased())
  }

  /// Ends the attributes of the current element.
  mutating func end(isClosed: Bool, _ limits: ImageLimits) throws(CacheError) {
    if elements.isEmpty { try checkSize(limits) }
    if let scale = scaleOfViewBox { current.style.gain *= max(scale, 1) }
    current.end = elements.count + 1
    elements.append(current)
    if !isClosed {
      open.append(elements.count - 1)
      depth = max(depth, open.count)
    }
  }

  mutating func close() {
    if let last = open.popLast() { elements[last].end = elements.count }
  }

  /// Counts text. Laying out one run takes quadratic time.
  mutating func text(_ length: Int) {
    guard let last = open.last else { return }
    switch elements[last].name {
    case "text", "tspan", "a", "textpath", "tref", "altglyph": elements[last].textLength += length
    default: break
    }
  }

  mutating func styleSheet(_ bytes: [UInt8]) {
    let text = StyleReferences.plain(bytes)
    var selector = text[..<0]
    var start = 0
    for index in 0...text.count {
      let byte = index < text.count ? text[index] : UInt8(ascii: "}")
      if byte == UInt8(ascii: "{") { selector = text[start..<index] }
      guard byte == UInt8(ascii: "}") || byte == UInt8(ascii: "{") else { continue }
      if byte == UInt8(ascii: "}") { addRule(selector, text[start..<index]) }
      start = index + 1
    }
  }

  private mutating func addRule(_ selector: ArraySlice<UInt8>, _ declarations: ArraySlice<UInt8>) {
    ruleCount += 1
    siblingSearches += Double(selector.count { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: ":") })
    var style = SVGStyle()
    style.add(declarations: declarations)
    _ = StyleReferences.leadingOut(of: Array(declarations)) { style.references.append($0) }
    for part in selector.split(separator: UInt8(ascii: ",")) {
      let name = part.drop { $0.isBlank }
      let end = name.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? name.startIndex
      if name.first == UInt8(ascii: "."), name[..<end].dropFirst().allSatisfy(StyleReferences.isNamePart) {
        classes[String(decoding: name[..<end].dropFirst(), as: UTF8.self), default: SVGStyle()].add(style)
      } else {
        common.add(style)
      }
    }
  }

  // MARK: The size

  /// Refuses a drawing whose own size is beyond the limits. The engine would compute a wrong size.
  private func checkSize(_ limits: ImageLimits) throws(CacheError) {
    let (width, height) = (side("width"), side("height"))
    let box = current.viewBox.count == 4 && current.viewBox[2] > 0 && current.viewBox[3] > 0 ? current.viewBox : nil
    let ratio = box.map { $0[2] / $0[3] }
    let size =
      switch (width, height) {
      case (let width?, let height?): (width, height)
      case (let width?, nil): (width, ratio.map { width / $0 } ?? width)
      case (nil, let height?): (ratio.map { height * $0 } ?? height, height)
      case (nil, nil): (box?[2] ?? 0, box?[3] ?? 0)
      }
    guard max(size.0, size.1) <= Double(limits.side) else {
      throw Self.exceeded("the drawing has \(size.0) × \(size.1) pixels, the limit of a side is \(limits.side)")
    }
  }

  private func side(_ name: String) -> Double? {
    guard let number = current.sides[name], number.unit != "%" else { return nil }
    return number.pixels
  }

  /// The factor from units of the view box to those around it. An element without its own size has at most that of the root.
  private var scaleOfViewBox: Double? {
    guard current.viewBox.count == 4, current.viewBox[2] > 0, current.viewBox[3] > 0 else { return nil }
    let own = [side("width"), side("height")].compactMap(\.self).max()
    let root = elements.first.flatMap { root in (Array(root.sides.values.map(\.pixels)) + root.viewBox.suffix(2)).max() }
    guard let outer = own ?? root else { return nil }
    return outer / min(current.viewBox[2], current.viewBox[3])
  }

  // MARK: Adding up

  /// Returns the work of the whole drawing, and its largest font size in pixels.
  func total(_ watch: DecodingDeadline) throws(CacheError) -> (amount: Amount, fontSize: Double) {
    guard !elements.isEmpty else { return (Amount(), 0) }
    var known = [Amount?](repeating: nil, count: elements.count)
    var path: Set<Int> = []
    var sum = try amount(0, &known, &path, watch)
    // A rule that may apply to any element is assumed to apply to all.
    var shared = Amount(elements: 0, time: 0, passes: common.passes)
    for name in common.references {
      if let target = names[name], target < elements.count { shared.add(try amount(target, &known, &path, watch)) }
    }
    sum.add(shared, times: sum.elements)
    if common.gain > 1 { for _ in 0..<min(depth, 1_000) { sum.gain *= common.gain } }
    let count = Double(elements.count)
    sum.time += ruleCount * count * 0.015 + siblingSearches * count * count * 0.003
    let stated = max(elements.map(\.style.fontSize).max() ?? 0, classes.values.map(\.fontSize).max() ?? 0)
    return (sum, max(16, common.fontSize, stated) * sum.gain)
  }

  private func amount(
    _ index: Int, _ known: inout [Amount?], _ path: inout Set<Int>, _ watch: DecodingDeadline
  ) throws(CacheError) -> Amount {
    if let amount = known[index] { return amount }
    // An element that refers to itself is not drawn.
    guard path.insert(index).inserted else { return Amount(elements: 0, time: 0) }
    defer { path.remove(index) }
    guard path.count <= Self.deepestReference else { throw Self.exceeded("its references are nested too deep") }
    if index % 1_024 == 0, let end = watch.end { throw end }
    let element = elements[index]
    var style = element.style
    for name in element.classes { if let more = classes[name] { style.add(more) } }
    var amount = element.amount
    amount.passes += style.passes
    let length = Double(element.textLength)
    if length > 0 { amount.time += 30 + length * length / 40 }
    var gain = 1.0
    var child = index + 1
    while child < element.end {
      let content = try self.amount(child, &known, &path, watch)
      amount.add(content)
      gain = max(gain, content.gain)
      child = max(elements[child].end, child + 1)
    }
    let times = style.hasMarkers ? Double(element.pathLength / 4 + 1) : 1
    for name in style.references {
      guard let target = names[name], target < elements.count else { continue }
      let content = try self.amount(target, &known, &path, watch)
      amount.add(content, times: times)
      gain = max(gain, content.gain)
    }
    amount.gain = gain * style.gain
    known[index] = amount
    return amount
  }

  static func exceeded(_ what: String) -> CacheError { CacheError(.imageLimitExceeded, reason: "SVG: \(what)") }
}
