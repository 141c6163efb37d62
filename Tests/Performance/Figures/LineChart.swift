import Foundation

/// A chart of lines as SVG, in colors for a light or a dark page.
struct LineChart {
  /// The horizontal axis.
  struct Axis {
    let label: String
    /// Whether equal ratios have equal lengths, and not equal differences.
    var isLogarithmic = false
    /// The marked values, or `nil` for those of all points.
    var marks: [Double]?
  }

  struct Line {
    let label: String
    let points: [(x: Double, y: Double)]
    /// The indices of the points that begin another piece of the line. They are not connected to the point before.
    var starts: Set<Int> = []
  }

  let title: String
  let subtitle: String
  let axis: Axis
  let lines: [Line]
  /// The description of the lines, or `nil` for all of their values.
  var description: String?

  private static let (left, right, top, bottom) = (64.0, 480.0, 72.0, 320.0)
  private static let colors = ["#c2410c", "#b45309", "#0b66c3", "#6d28d9", "#0f766e", "#1d1d1f"]
  private static let darkColors = ["#fb923c", "#fbbf24", "#4da3ff", "#c4b5fd", "#5eead4", "#f5f5f7"]
  // Lines that cover each other stay visible, because their dashes differ.
  private static let dashes = ["none", "8 3", "2 3", "12 4", "5 5", "1 4"]

  /// Writes the SVG document. Its texts name every value, for readers who cannot see the lines.
  func svg(_ palette: Palette = .light) -> String {
    let colors = palette.isDark ? Self.darkColors : Self.colors
    let points = lines.flatMap(\.points)
    let greatest = max(1, points.map(\.x).max() ?? 1)
    let step = Self.step(points.map(\.y).max() ?? 1)
    let steps = max(1, ((points.map(\.y).max() ?? 1) / step).rounded(.up))
    func x(_ value: Double) -> Double {
      Self.left + (Self.right - Self.left) * (axis.isLogarithmic ? log(value) / log(max(2, greatest)) : value / greatest)
    }
    func y(_ value: Double) -> Double { Self.bottom - (Self.bottom - Self.top) * value / (step * steps) }
    var elements = [
      #"<text class="title" x="16" y="28">\#(title)</text>"#, #"<text class="note" x="16" y="48">\#(subtitle)</text>"#,
    ]
    for number in 0...Int(steps) {
      let value = Double(number) * step
      elements.append(#"<path class="grid" d="M\#(place(Self.left)) \#(place(y(value)))H\#(place(Self.right))"/>"#)
      elements.append(
        #"<text class="end" x="\#(place(Self.left - 8))" y="\#(place(y(value) + 4))">\#(Format.number(value, 0))</text>"#)
    }
    for value in axis.marks ?? Set(points.map(\.x)).sorted() {
      elements.append(
        #"<text class="middle" x="\#(place(x(value)))" y="\#(place(Self.bottom + 20))">\#(Format.number(value, 0))</text>"#)
    }
    let (middle, foot) = (place((Self.left + Self.right) / 2), place(Self.bottom + 40))
    elements.append(#"<text class="middle note" x="\#(middle)" y="\#(foot)">\#(axis.label)</text>"#)
    for (index, line) in lines.enumerated() {
      let style =
        #"stroke="\#(colors[index % colors.count])" stroke-dasharray="\#(Self.dashes[index % Self.dashes.count])""#
      let path = line.points.enumerated().map { index, point in
        let step = index == 0 ? "" : line.starts.contains(index) ? "M" : "L"
        return "\(step)\(place(x(point.x))) \(place(y(point.y)))"
      }.joined()
      elements.append(#"<path class="line" \#(style) d="M\#(path)"/>"#)
      let middle = Self.top + 16 + Double(index) * 24
      elements.append(#"<path class="line" \#(style) d="M\#(place(Self.right + 20)) \#(place(middle))h32"/>"#)
      elements.append(#"<text x="\#(place(Self.right + 60))" y="\#(place(middle + 4))">\#(line.label)</text>"#)
    }
    let values =
      description.map { [$0] }
      ?? lines.map { line in
        "\(line.label): " + line.points.map { "\(Format.number($0.x, 0)): \(Format.number($0.y, 0))" }.joined(separator: ", ")
      }
    return """
      <svg id="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 376" width="720" height="376" role="img" \
      aria-labelledby="title description">
      <title id="title">\(title)</title>
      <desc id="description">\(([subtitle] + values).joined(separator: "; "))</desc>
      <style>
      text { font: 13px -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; fill: \(palette.text) }
      .title { font-size: 17px; font-weight: 600 }
      .note { font-size: 11.5px; fill: \(palette.note) }
      .end { text-anchor: end }
      .middle { text-anchor: middle }
      .grid { stroke: \(palette.peer); stroke-width: 0.5 }
      .line { fill: none; stroke-width: 2.5 }
      </style>
      \(elements.joined(separator: "\n"))
      </svg>

      """
  }

  /// Returns a round step that divides a value into four to ten parts.
  private static func step(_ value: Double) -> Double {
    let power = pow(10, log10(max(value, 1e-9)).rounded(.down))
    return value / power >= 4 ? power : value / power >= 2 ? power / 2 : power / 5
  }

  private func place(_ value: Double) -> String {
    let text = Format.decimal(value, 1)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
