/// A collector of the elements of an SVG document.
struct Canvas {
  let palette: Palette
  /// Whether outlines have many more points.
  let isLarge: Bool
  private var elements: [String] = []

  init(palette: Palette, isLarge: Bool) { (self.palette, self.isLarge) = (palette, isLarge) }

  var document: String {
    let stops = zip(palette.sky, ["0", ".55", "1"]).map { #"<stop offset="\#($1)" stop-color="\#($0)"/>"# }.joined()
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="400" height="300" preserveAspectRatio="xMidYMid slice">
      <defs>
      <linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">\(stops)</linearGradient>
      <linearGradient id="haze" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="\(palette.sky[2])" stop-opacity="0"/>\
      <stop offset="1" stop-color="\(palette.sky[2])" stop-opacity=".55"/></linearGradient>
      <radialGradient id="glow"><stop offset="0" stop-color="\(palette.sun)" stop-opacity=".8"/>\
      <stop offset=".35" stop-color="\(palette.sun)" stop-opacity=".25"/><stop offset="1" stop-color="\(palette.sun)" stop-opacity="0"/>\
      </radialGradient>
      </defs>
      \(elements.joined(separator: "\n"))
      </svg>

      """
  }

  /// Returns the color of a layer of the land. 0 is the farthest layer, and 1 the nearest.
  func land(_ depth: Double) -> Color { palette.far.mixed(with: palette.near, depth) }

  mutating func add(_ element: String) { elements.append(element) }

  /// Adds a closed shape from a line down to a lower edge.
  mutating func addLand(under line: [Point], downTo bottom: Double = Landscape.height, fill: String, opacity: Double = 1) {
    guard let first = line.first, let last = line.last else { return }
    let outline = line.map { "L\(Self.text($0.x)) \(Self.text($0.y))" }.joined()
    let (left, right, edge) = (Self.text(first.x), Self.text(last.x), Self.text(bottom))
    let paint = #"fill="\#(fill)"\#(Self.attribute(opacity: opacity))"#
    add(#"<path \#(paint) d="M\#(left) \#(edge)\#(outline)L\#(right) \#(edge)Z"/>"#)
  }

  mutating func addRectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, fill: String, opacity: Double = 1) {
    let place = #"x="\#(Self.text(x))" y="\#(Self.text(y))" width="\#(Self.text(width))" height="\#(Self.text(height))""#
    add(#"<rect \#(place) fill="\#(fill)"\#(Self.attribute(opacity: opacity))/>"#)
  }

  mutating func addCircle(_ center: Point, _ radius: Double, fill: String, opacity: Double = 1) {
    let place = #"cx="\#(Self.text(center.x))" cy="\#(Self.text(center.y))" r="\#(Self.text(radius))""#
    add(#"<circle \#(place) fill="\#(fill)"\#(Self.attribute(opacity: opacity))/>"#)
  }

  private static func attribute(opacity: Double) -> String { opacity < 1 ? #" opacity="\#(text(opacity))""# : "" }

  /// Returns a number with at most two decimals.
  static func text(_ number: Double) -> String {
    let hundredths = Int((number * 100).rounded())
    let (whole, rest) = (abs(hundredths) / 100, abs(hundredths) % 100)
    let sign = hundredths < 0 ? "-" : ""
    guard rest > 0 else { return "\(sign)\(whole)" }
    return "\(sign)\(whole).\(rest % 10 == 0 ? "\(rest / 10)" : rest < 10 ? "0\(rest)" : "\(rest)")"
  }
}
