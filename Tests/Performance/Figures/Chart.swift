import Foundation

/// A horizontal bar chart as SVG, in colors for a light or a dark page.
struct Chart {
  struct Bar {
    let label: String
    let key: Key
    /// Whether the bar shows a peer instead of this package.
    var isPeer = false

    init(_ label: String, _ key: Key, isPeer: Bool = false) { (self.label, self.key, self.isPeer) = (label, key, isPeer) }
  }

  /// Bars with a common heading.
  struct Group {
    let heading: String?
    let bars: [Bar]

    init(_ heading: String? = nil, _ bars: [Bar]) { (self.heading, self.bars) = (heading, bars) }
  }

  /// The file's name without its extension.
  let name: String
  let title: String
  let subtitle: String
  /// The value of the peer or limit, marked with a line.
  var reference: (value: Double, label: String)?
  let groups: [Group]

  /// Writes the SVG document. Its texts name every value, for readers who cannot see the bars.
  func svg(_ results: Results, _ palette: Palette) throws -> String {
    let figures = try groups.map { group in try group.bars.map { try results.figure($0.key) } }
    // The bars of a chart can have different units of time.
    let greatest = figures.joined().map { $0.sample.high * Format.scale(of: $0.unit) }.reduce(reference?.value ?? 0, max)
    let scale = Layout.barWidth / (greatest > 0 ? greatest : 1)
    var canvas = Canvas(palette)
    canvas.text(title, x: Layout.margin, y: 28, .title)
    canvas.text(subtitle, x: Layout.margin, y: 48, .note)
    var y = reference == nil ? 64.0 : 82.0
    let top = y
    for (group, figures) in zip(groups, figures) {
      if let heading = group.heading {
        canvas.text(heading, x: Layout.margin, y: y + 17, .heading)
        y += Layout.rowHeight
      }
      for (bar, figure) in zip(group.bars, figures) {
        canvas.bar(
          bar, figure, y: y, scale: scale * Format.scale(of: figure.unit),
          limit: reference.map { Layout.barStart + $0.value * scale })
        y += Layout.rowHeight
      }
    }
    if let reference {
      let x = Layout.barStart + reference.value * scale
      canvas.line(x: x, from: top - 6, to: y)
      canvas.text(reference.label, x: x, y: top - 10, .reference)
    }
    canvas.text(try footer(results), x: Layout.margin, y: y + 22, .note)
    let values = zip(groups, figures).flatMap { zip($0.bars, $1) }
      .map { "\($0.label): \(Format.value($1.sample.median, $1.unit))" }
    let description = ([subtitle + (reference.map { " \($0.label)." } ?? "")] + values).joined(separator: "; ")
    return canvas.document(title: title, description: description, height: y + 36)
  }

  private func footer(_ results: Results) throws -> String {
    guard let scenario = groups.first?.bars.first?.key.scenario else { return "" }
    let run = try results.run(of: scenario)
    return "Medians; thin lines show the least and the greatest value. "
      + "\(run.machine.processors) cores, Swift \(run.versions["Swift"] ?? "unknown"), \(Format.date(run.date))"
  }
}

/// The colors of a chart.
struct Palette {
  let text: String
  let note: String
  let own: String
  let peer: String
  let line: String
  var isDark = false

  static let light = Self(text: "#1d1d1f", note: "#5f6368", own: "#0b66c3", peer: "#9aa0a6", line: "#c2410c")
  static let dark = Self(text: "#f5f5f7", note: "#a1a6ad", own: "#4da3ff", peer: "#6e747c", line: "#fb923c", isDark: true)
}

private enum Layout {
  static let width = 720.0
  static let margin = 16.0
  static let rowHeight = 28.0
  static let barHeight = 16.0
  static let barStart = 272.0
  static let barWidth = 340.0
}

/// The elements of an SVG document.
private struct Canvas {
  enum Style: String {
    case title, heading, label, value, note, reference
  }

  private let palette: Palette
  private var elements: [String] = []

  init(_ palette: Palette) { self.palette = palette }

  mutating func text(_ text: String, x: Double, y: Double, _ style: Style) {
    elements.append(#"<text class="\#(style.rawValue)" x="\#(place(x))" y="\#(place(y))">\#(Self.escaped(text))</text>"#)
  }

  mutating func line(x: Double, from top: Double, to bottom: Double) {
    elements.append(
      #"<path class="limit" d="M\#(place(x)) \#(place(top))V\#(place(bottom))"/>"#)
  }

  /// Draws a bar with its label, its range and its value.
  ///
  /// - Parameter limit: The place of the reference line, which the value must not cover.
  mutating func bar(_ bar: Chart.Bar, _ figure: Figures.Figure, y: Double, scale: Double, limit: Double?) {
    let sample = figure.sample
    let (middle, top) = (y + Layout.rowHeight / 2, y + (Layout.rowHeight - Layout.barHeight) / 2)
    // A bar of less than a pixel would be invisible.
    let width = max(1.5, sample.median * scale)
    text(bar.label, x: Layout.barStart - 10, y: middle + 4.5, .label)
    elements.append(
      #"<rect class="\#(bar.isPeer ? "peer" : "own")" x="\#(place(Layout.barStart))" y="\#(place(top))" "#
        + #"width="\#(place(width))" height="\#(place(Layout.barHeight))" rx="2"/>"#)
    let (low, high) = (Layout.barStart + sample.low * scale, Layout.barStart + sample.high * scale)
    // A range of less than two pixels is not visible.
    if high - low >= 2 { elements.append(#"<path class="range" d="M\#(place(low)) \#(place(middle))H\#(place(high))"/>"#) }
    let value = Format.value(sample.median, figure.unit)
    var x = max(Layout.barStart + width, high) + 8
    if let limit, x < limit + 8, x + Double(value.count) * 8 > limit { x = limit + 8 }
    text(value, x: x, y: middle + 4.5, .value)
  }

  func document(title: String, description: String, height: Double) -> String {
    """
    <svg id="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(place(Layout.width)) \(place(height))" width="\(place(Layout.width))" \
    height="\(place(height))" role="img" aria-labelledby="title description">
    <title id="title">\(Self.escaped(title))</title>
    <desc id="description">\(Self.escaped(description))</desc>
    <style>
    text { font: 13px -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; fill: \(palette.text) }
    .title { font-size: 17px; font-weight: 600 }
    .heading { font-weight: 600 }
    .label { text-anchor: end }
    .value { font-weight: 600 }
    .note { font-size: 11.5px; fill: \(palette.note) }
    .reference { font-size: 11.5px; fill: \(palette.line); text-anchor: middle }
    .own { fill: \(palette.own) }
    .peer { fill: \(palette.peer) }
    .range { stroke: \(palette.text); stroke-width: 1.5 }
    .limit { stroke: \(palette.line); stroke-width: 1.5; stroke-dasharray: 4 3 }
    </style>
    \(elements.joined(separator: "\n"))
    </svg>

    """
  }

  /// Returns a coordinate with at most one decimal.
  private func place(_ value: Double) -> String {
    let text = Format.decimal(value, 1)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
