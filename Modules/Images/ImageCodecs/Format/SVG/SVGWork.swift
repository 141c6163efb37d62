internal import CacheCore

/// An estimate of the work of drawing an SVG, computed from its markup before an engine draws it.
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
    /// The number of times that all pixels are computed. Most shapes cover a small part of a drawing.
    var passes = 0.02
    /// The number of images in the size of the result that exist at the same time: layers, and all results of a filter.
    var layers = 0.0
    /// The largest factor by which relative font sizes and transforms enlarge a text, or 0 without text.
    var gain = 0.0
    /// The largest stated font size of a text in pixels, or 0.
    var fontSize = 0.0
    /// A bound on the length of all lines in the content, in their own units.
    var length = 0.0
    /// A bound on the number of vertices in the content.
    var vertices = 0.0
    /// The number of elements and references within each other.
    var depth = 1

    mutating func add(_ other: Amount, times count: Double = 1, isFilter: Bool = false) {
      elements += other.elements * count
      time += other.time * count
      passes += other.passes * count
      layers = isFilter ? layers + other.layers : max(layers, other.layers)
      gain = max(gain, other.gain)
      fontSize = max(fontSize, other.fontSize)
      length += other.length
      vertices += other.vertices
      depth = max(depth, other.depth + 1)
    }
  }

  private struct Element {
    let name: String
    var amount = Amount()
    var style = SVGStyle()
    /// The names of the elements that its `href` refers to.
    var targets: [String] = []
    var textLength = 0.0
    /// The names by which rules may apply to the element: `*`, its type, `.class` and `#id`.
    var keys: Set<String>
    var viewBox: [Double] = []
    var sides: [String: SVGNumber] = [:]
    /// The index after the last element in its content.
    var end = 0

    init(_ name: String) {
      self.name = name
      keys = ["*", name]
    }
  }

  static let mostElements = 100_000
  /// The limit of references, selectors and classes.
  private static let mostReferences = 500_000
  /// The limit of steps in following the references and rules of all elements.
  private static let mostSteps = 5_000_000
  /// The limit of libxml2.
  private static let deepest = 256
  /// The depth of references and elements within elements.
  private static let deepestReference = 600
  /// librsvg has a fixed buffer for the numbers of a convolution, and ends the process if they are more.
  private static let mostKernelNumbers = 400
  /// The largest font size in pixels. Font libraries fail beyond it, and end the process beyond two million.
  static let largestFont = 50_000.0
  /// The time in microseconds for computing a pixel once.
  static let pixelTime = 0.002

  private var elements: [Element] = []
  private var open: [Int] = []
  private var referenceCount = 0
  /// The elements with each name. A name that occurs twice counts with all of them.
  private var names: [String: [Int]] = [:]
  private var rules: [SVGStyle] = []
  /// The rules that may apply to elements with a key.
  private var selectors: [String: [Int]] = [:]
  private var selectorCount = 0.0
  /// The number of selectors that search an element's siblings.
  private var siblingSearches = 0.0
  /// The element whose attributes are being read.
  private var current = Element("")

  /// The memory for the elements in bytes.
  var memory: Double { Double(elements.count) * 2_048 }

  // MARK: Reading

  mutating func begin(_ name: String) throws(CacheError) {
    guard elements.count < Self.mostElements else { throw Self.exceeded("it has more than \(Self.mostElements) elements") }
    guard open.count < Self.deepest else { throw Self.exceeded("its elements are nested more than \(Self.deepest) deep") }
    current = Element(name)
    if name.hasPrefix("fe") {
      current.amount.passes = name == "fegaussianblur" ? 5 : name == "feturbulence" ? 20 : 2
      current.amount.layers = 1
    }
    if name == "image" { current.amount.passes = 1 }
  }

  /// Reads an attribute.
  ///
  /// - Parameter references: The names of the elements that the value refers to.
  mutating func attribute(_ name: String, _ value: [UInt8], references: [String]) throws(CacheError) {
    try count(references)
    switch name {
    case "href":
      // Animations and scripts are not drawn.
      guard !current.name.hasPrefix("animate"), !["set", "mpath", "script"].contains(current.name) else { return }
      return current.targets += references
    case "id":
      for id in Self.spellings(value[...]) {
        names[id, default: []].append(elements.count)
        current.keys.insert("#" + id)
      }
    case "class":
      let classes = value.split(maxSplits: 1_000) { $0.isBlank }
      guard classes.count <= 1_000 else { throw Self.exceeded("an element has more than 1000 classes") }
      try count(classes.count)
      for name in classes { current.keys.insert("." + String(decoding: name, as: UTF8.self)) }
    case "style": current.style.add(declarations: StyleReferences.plain(value))
    case "numoctaves":
      let octaves = numbers(value).first?.value ?? 1
      guard octaves <= 1_000 else { throw Self.exceeded("a filter has more than 1000 octaves") }
      current.amount.passes = max(current.amount.passes, octaves * 20)
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
      current.amount.passes = max(current.amount.passes, count)
    case "kernelunitlength":
      // The engine enlarges the image by this length, in units that a view box shrinks. Browsers ignore the attribute.
      throw CacheError(.decodingFailed, reason: "SVG: unsupported attribute kernelUnitLength")
    case "viewbox": current.viewBox = numbers(value).map(\.value)
    case "d", "points", "x1", "x2", "y1", "y2", "r", "rx", "ry", "radius":
      let numbers = numbers(value)
      if name == "radius", current.name == "femorphology" {
        let radius = min(numbers.map { abs($0.value) }.max() ?? 0, 5)
        current.amount.passes = (radius * 2 + 1) * (radius * 2 + 1)
      }
      // Each coordinate is an end of two lines.
      current.amount.length += numbers.reduce(0) { $0 + abs($1.value) } * 2
      current.amount.vertices += Double(numbers.count)
    case "width", "height", "markerwidth", "markerheight":
      let number = numbers(value).first
      current.sides[name.hasSuffix("width") ? "width" : "height"] = number
      current.amount.length += (number?.pixels ?? 0) * 2
    default: current.style.add(name, String(decoding: value, as: UTF8.self).lowercased())
    }
    current.style.references += references
  }

  /// Returns a name as written and without blanks around it. Which of them a reference finds depends on its context.
  static func spellings(_ name: ArraySlice<UInt8>) -> Set<String> {
    let start = name.drop { $0.isBlank }
    let trimmed = start[..<(start.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? start.startIndex)]
    return [String(decoding: name, as: UTF8.self), String(decoding: trimmed, as: UTF8.self)]
  }

  private mutating func count(_ references: [String]) throws(CacheError) {
    try count(references.count)
    // Such a name cannot be compared.
    if references.contains(where: { $0.utf8.contains(0) }) {
      throw CacheError(.decodingFailed, reason: "SVG: unsupported escape in a reference")
    }
  }

  private mutating func count(_ references: Int) throws(CacheError) {
    referenceCount += references
    guard referenceCount <= Self.mostReferences else {
      throw Self.exceeded("it has more than \(Self.mostReferences) references, selectors and classes")
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
    if !isClosed { open.append(elements.count - 1) }
  }

  mutating func close() {
    if let last = open.popLast() { elements[last].end = elements.count }
  }

  /// Counts text. Laying out one run takes quadratic time.
  mutating func text(_ length: Int) {
    guard let last = open.last, length > 0 else { return }
    switch elements[last].name {
    case "text", "tspan", "a", "textpath", "tref", "altglyph":
      elements[last].textLength += Double(length)
    default: break
    }
  }

  mutating func styleSheet(_ bytes: [UInt8], _ watch: DecodingDeadline) throws(CacheError) {
    let text = StyleReferences.plain(bytes)
    var selector = text[..<0]
    var start = 0
    for index in 0...text.count {
      let byte = index < text.count ? text[index] : UInt8(ascii: "}")
      if byte == UInt8(ascii: "{") { selector = text[start..<index] }
      guard byte == UInt8(ascii: "}") || byte == UInt8(ascii: "{") else { continue }
      if let end = watch.end { throw end }
      if byte == UInt8(ascii: "}") { try addRule(selector, text[start..<index]) }
      start = index + 1
    }
  }

  private mutating func addRule(_ selector: ArraySlice<UInt8>, _ declarations: ArraySlice<UInt8>) throws(CacheError) {
    try count(1 + selector.count { $0 == UInt8(ascii: ",") })
    var style = SVGStyle()
    style.add(declarations: declarations)
    _ = StyleReferences.embedded(in: Array(declarations)) {
      if style.references.count <= Self.mostReferences { style.references.append($0) }
    }
    try count(style.references)
    rules.append(style)
    for part in selector.split(separator: UInt8(ascii: ",")) {
      let part = String(decoding: part, as: UTF8.self)
      selectorCount += 1
      if ["~", ":nth", ":first", ":last", ":only"].contains(where: part.lowercased().contains) { siblingSearches += 1 }
      // A list such as `.a, .a` applies the rule once.
      if let key = Self.key(of: part), selectors[key]?.last != rules.count - 1 {
        selectors[key, default: []].append(rules.count - 1)
      }
    }
  }

  /// Returns the type, class or id in the last part of a selector: `line` of `.grid line:hover`. Without them, the rule may
  /// apply to any element: `*`. A step of an animation, such as `50%`, is not a selector.
  private static func key(of selector: String) -> String? {
    var plain: [UInt8] = []
    var end: UInt8?
    // Conditions in brackets only make the elements fewer.
    for byte in selector.utf8 {
      switch byte {
      case end: end = nil
      case _ where end != nil: break
      case UInt8(ascii: "["): end = UInt8(ascii: "]")
      case UInt8(ascii: "("): end = UInt8(ascii: ")")
      default: plain.append(byte)
      }
    }
    guard plain.first(where: { !$0.isBlank })?.isDigit != true else { return nil }
    guard end == nil, plain.allSatisfy({ $0.isNamePart || $0.isBlank || ".#:>+~*".utf8.contains($0) }) else { return "*" }
    let last = plain.split { $0.isBlank || ">+~".utf8.contains($0) }.last ?? []
    let simple = last.prefix { $0 != UInt8(ascii: ":") }.drop { $0 == UInt8(ascii: "*") }
    guard let first = simple.first else { return "*" }
    let name = simple.dropFirst().prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "#") }
    let key = String(decoding: simple[..<name.endIndex], as: UTF8.self)
    return first.isNamePart ? key.lowercased() : key
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

  /// Returns the work of the whole drawing.
  mutating func total(_ watch: DecodingDeadline, _ limits: ImageLimits) throws(CacheError) -> Amount {
    guard !elements.isEmpty else { return Amount() }
    while !open.isEmpty { close() }
    let count = Double(elements.count)
    let matching = selectorCount * count * 0.012 + siblingSearches * count * count * 0.003
    try limits.check(time: matching)
    var known = [Amount?](repeating: nil, count: elements.count)
    var isOpen = [Bool](repeating: false, count: elements.count)
    // References can be nested deeper than the stack of a thread allows.
    var path = [0]
    var steps = 0
    while let index = path.last {
      guard known[index] == nil else {
        path.removeLast()
        continue
      }
      if let end = watch.end { throw end }
      let pending = path.count
      let amount = try amount(index, known, &steps) { target throws(CacheError) in
        guard !isOpen[target] else { throw Self.exceeded("its references form a cycle") }
        path.append(target)
      }
      isOpen[index] = path.count > pending
      guard !isOpen[index] else { continue }
      guard amount.depth <= Self.deepestReference else { throw Self.exceeded("its references are nested too deep") }
      known[index] = amount
    }
    var sum = known[0] ?? Amount()
    sum.time += matching
    if sum.gain > 0 { sum.fontSize = max(sum.fontSize, 16 * sum.gain) }
    return sum
  }

  /// Adds up an element, its content and its references.
  ///
  /// - Parameter missing: Called with each element that must be added up first. The result is then incomplete.
  private func amount(
    _ index: Int, _ known: [Amount?], _ steps: inout Int, missing: (Int) throws(CacheError) -> Void
  ) throws(CacheError) -> Amount {
    func step() throws(CacheError) {
      steps += 1
      guard steps <= Self.mostSteps else { throw Self.exceeded("its references and rules apply too often") }
    }
    func add(_ names: [String], times: Double = 1) throws(CacheError) {
      for name in names {
        try step()
        for target in self.names[name] ?? [] where target < elements.count {
          try step()
          if let used = known[target] { amount.add(used, times: times) } else { try missing(target) }
        }
      }
    }
    let element = elements[index]
    var amount = element.amount
    if element.textLength > 0 {
      amount.time += 30 + element.textLength * element.textLength / 40
      amount.gain = 1
    }
    var child = index + 1
    while child < element.end {
      try step()
      if let content = known[child] { amount.add(content, isFilter: element.name == "filter") } else { try missing(child) }
      child = max(elements[child].end, child + 1)
    }
    try add(element.targets)
    var styles = [element.style]
    for key in element.keys {
      for rule in selectors[key] ?? [] {
        try step()
        styles.append(rules[rule])
      }
    }
    let content = amount
    var (gain, fontSize) = (1.0, 0.0)
    for style in styles {
      gain *= style.gain
      fontSize = max(fontSize, style.fontSize)
      amount.passes += style.passes * (style.isInherited ? content.elements : 1)
      amount.layers += style.layers
      // A dash takes about 1.4 µs, and its memory counts as much.
      if style.dashes.isFinite { amount.time += content.length / style.dashes * 3 }
      try add(
        style.references,
        times: style.hasMarkers ? content.vertices + content.elements : style.isInherited ? content.elements : 1)
    }
    if amount.gain > 0 {
      amount.fontSize = max(amount.fontSize, fontSize * amount.gain) * gain
      amount.gain *= gain
    }
    return amount
  }

  static func exceeded(_ what: String) -> CacheError { CacheError(.imageLimitExceeded, reason: "SVG: \(what)") }
}
