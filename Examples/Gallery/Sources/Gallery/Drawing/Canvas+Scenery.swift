import Foundation

extension Canvas {
  // MARK: Sky

  mutating func addSky(sun: Point, _ numbers: inout SeededNumbers) {
    addRectangle(0, 0, Landscape.width, Landscape.height, fill: "url(#sky)")
    if palette.hasStars {
      for _ in 0..<(isLarge ? 160 : 45) {
        let star = Point(x: numbers.number(in: 0...400), y: numbers.number(in: 0...170))
        addCircle(star, numbers.number(in: 0.3...1.1), fill: "#fff", opacity: numbers.number(in: 0.25...0.95))
      }
    }
    if palette.name.contains("northern") { addNorthernLights(&numbers) }
    addCircle(sun, 95, fill: "url(#glow)")
    addCircle(sun, 17, fill: "\(palette.sun)")
  }

  private mutating func addNorthernLights(_ numbers: inout SeededNumbers) {
    for color in ["#6dffc8", "#4fd6ff", "#b08cff"] {
      let (base, phase) = (numbers.number(in: 40...90), numbers.number(in: 0...6))
      let line = stride(from: 0.0, through: 400, by: 20).map {
        Point(x: $0, y: base + sin($0 / 62 + phase) * 22 + sin($0 / 25 + phase) * 6)
      }
      let points = line.map { "L\(Self.text($0.x)) \(Self.text($0.y))" }.joined().dropFirst()
      for (width, opacity) in [(46, ".08"), (26, ".1"), (9, ".16")] {
        let stroke = #"stroke="\#(color)" stroke-width="\#(width)" stroke-linecap="round" opacity="\#(opacity)""#
        add(#"<path d="M\#(points)" fill="none" \#(stroke)/>"#)
      }
    }
  }

  // MARK: Mountains

  /// Adds several ridges, with haze between them.
  mutating func addRidges(
    from top: Double, to bottom: Double, count: Int, roughness: Double, downTo edge: Double = Landscape.height,
    _ numbers: inout SeededNumbers
  ) {
    for layer in 0..<count {
      let depth = Double(layer) / Double(max(count - 1, 1))
      let level = top + (bottom - top) * depth
      let line = ridge(at: level, roughness: roughness * (1 - depth * 0.45), &numbers)
      addLand(under: line, downTo: edge, fill: "\(land(depth))")
      if layer < count - 1 { addRectangle(0, level, Landscape.width, edge - level, fill: "url(#haze)", opacity: 0.5) }
    }
  }

  /// Returns a line from midpoint displacement: each halving moves the new middle points up or down, by less each time.
  private func ridge(at level: Double, roughness: Double, _ numbers: inout SeededNumbers) -> [Point] {
    var heights = [numbers.number(in: -0.5...0.5), numbers.number(in: -1...0.2), numbers.number(in: -0.5...0.5)]
    var step = 0.85
    for _ in 0..<(isLarge ? 10 : 5) {
      var finer = [heights[0]]
      for (left, right) in zip(heights, heights.dropFirst()) {
        finer += [(left + right) / 2 + numbers.number(in: -step...step) / 2, right]
      }
      heights = finer
      step *= 0.55
    }
    return heights.enumerated().map {
      Point(x: Double($0.offset) / Double(heights.count - 1) * Landscape.width, y: level + $0.element * roughness)
    }
  }

  /// Adds mountains on the far shore and their reflection in the water.
  mutating func addLake(_ numbers: inout SeededNumbers) {
    let shore = 190.0
    var mirrored = numbers
    addRidges(from: 135, to: 178, count: 3, roughness: 52, downTo: shore, &numbers)
    addRectangle(0, shore, Landscape.width, Landscape.height - shore, fill: "\(palette.sky[1].mixed(with: palette.near, 0.25))")
    add(#"<g transform="matrix(1 0 0 -.8 0 \#(Self.text(shore * 1.8)))" opacity=".45">"#)
    addRidges(from: 135, to: 178, count: 3, roughness: 52, downTo: shore, &mirrored)
    add("</g>")
    for _ in 0..<(isLarge ? 420 : 34) {
      let y = shore + pow(numbers.number(in: 0...1), 1.6) * (Landscape.height - shore)
      let length = 6 + (y - shore) * numbers.number(in: 0.2...0.9)
      addRectangle(
        numbers.number(in: -20...400), y, length, 0.6 + (y - shore) / 90, fill: "\(palette.sun)",
        opacity: numbers.number(in: 0.05...0.3))
    }
    addLand(under: ridge(at: 288, roughness: 14, &numbers), fill: "\(palette.near)")
  }

  // MARK: Sand, trees, water, houses

  mutating func addDunes(_ numbers: inout SeededNumbers) {
    addRidges(from: 168, to: 180, count: 2, roughness: 16, &numbers)
    for layer in 0..<5 {
      let depth = Double(layer) / 4
      let (level, phase) = (185 + depth * 80, numbers.number(in: 0...6))
      let line = stride(from: 0.0, through: 400, by: isLarge ? 0.4 : 8).map {
        Point(x: $0, y: level + sin($0 / (95 - depth * 20) + phase) * (12 + depth * 14) + sin($0 / 41 + phase * 2) * 3)
      }
      let color = palette.far.mixed(with: palette.near, 0.1 + depth * 0.75)
      addLand(under: line, fill: "\(color.mixed(with: palette.sun, 0.28 * (1 - depth)))")
      let shadow = line.map { Point(x: $0.x, y: $0.y + 7 + (sin($0.x / 60 + phase) + 1) * 11) }
      addLand(under: shadow, fill: "\(color)", opacity: 0.75)
    }
  }

  mutating func addForest(_ numbers: inout SeededNumbers) {
    addRidges(from: 140, to: 175, count: 2, roughness: 44, &numbers)
    for layer in 0..<4 {
      let depth = 0.25 + Double(layer) / 4
      let (level, size) = (195 + Double(layer) * 30, 26 + Double(layer) * 17)
      let color = "\(land(min(depth, 1)))"
      addLand(under: ridge(at: level + 6, roughness: 9, &numbers), fill: color)
      var x = -10.0
      while x < 410 {
        let height = size * numbers.number(in: 0.7...1.25)
        addTree(at: Point(x: x, y: level + 8), height: height, fill: color, &numbers)
        x += height * numbers.number(in: 0.2...0.5) * (isLarge ? 0.28 : 1)
      }
      if layer < 3 { addRectangle(0, level - 20, Landscape.width, 320 - level, fill: "url(#haze)", opacity: 0.35) }
    }
  }

  private mutating func addTree(at foot: Point, height: Double, fill: String, _ numbers: inout SeededNumbers) {
    let half = height * 0.2
    var left: [String] = []
    var right: [String] = []
    let tiers = isLarge ? 7 : 4
    for tier in 1...tiers {
      let part = Double(tier) / Double(tiers)
      let (y, reach) = (foot.y - height * (1 - part), half * part * numbers.number(in: 0.85...1.15))
      left.append("L\(Self.text(foot.x - reach)) \(Self.text(y))L\(Self.text(foot.x - reach * 0.55)) \(Self.text(y - 1))")
      right.insert("L\(Self.text(foot.x + reach * 0.55)) \(Self.text(y - 1))L\(Self.text(foot.x + reach)) \(Self.text(y))", at: 0)
    }
    add(#"<path fill="\#(fill)" d="M\#(Self.text(foot.x)) \#(Self.text(foot.y - height))\#((left + right).joined())Z"/>"#)
  }

  mutating func addSea(under sun: Point, _ numbers: inout SeededNumbers) {
    let horizon = 165.0
    addLand(under: ridge(at: horizon - 4, roughness: 16, &numbers), downTo: horizon, fill: "\(palette.far)")
    addRectangle(0, horizon, Landscape.width, 135, fill: "\(palette.sky[1].mixed(with: palette.near, 0.3))")
    for _ in 0..<(isLarge ? 560 : 46) {
      let y = horizon + numbers.number(in: 0.5...90)
      let spread = 8 + (y - horizon) * 0.75
      addRectangle(
        sun.x + numbers.number(in: -spread...spread) - 6, y, numbers.number(in: 6...22), 1 + (y - horizon) / 70,
        fill: "\(palette.sun)", opacity: numbers.number(in: 0.15...0.6))
    }
    let boat = Point(x: sun.x < 200 ? 290 : 110, y: horizon + 22)
    let (x, y) = (Self.text(boat.x), Self.text(boat.y))
    add(#"<path fill="\#(palette.near)" d="M\#(x) \#(y)m-17 0h34l-6 7h-22z"/>"#)
    add(#"<path fill="\#(palette.sky[2].mixed(with: 0xFFFFFF, 0.5))" d="M\#(x) \#(y)m-1 -2v-38l-15 38zm3 0v-31l13 31z"/>"#)
    for layer in 0..<5 {
      let depth = Double(layer) / 4
      let (level, phase) = (225 + depth * 58, numbers.number(in: 0...6))
      let line = stride(from: 0.0, through: 400, by: isLarge ? 0.25 : 8).map {
        Point(x: $0, y: level + sin($0 / (14 + depth * 22) + phase) * (2 + depth * 5))
      }
      addLand(under: line, fill: "\(palette.sky[1].mixed(with: palette.near, 0.4 + depth * 0.6))", opacity: 0.85)
    }
  }

  mutating func addCity(_ numbers: inout SeededNumbers) {
    addRidges(from: 150, to: 165, count: 2, roughness: 30, &numbers)
    for layer in 0..<3 {
      let depth = 0.2 + Double(layer) * 0.4
      var x = -8.0
      while x < 400 {
        let width = numbers.number(in: 16...34) * (0.75 + depth * 0.4)
        let height = numbers.number(in: 34...118) * (1.12 - depth * 0.42)
        let top = 232 + Double(layer) * 32 - height
        addRectangle(x, top, width, 300 - top, fill: "\(land(depth))")
        addWindows(x, top, width, litShare: palette.hasStars ? 0.55 : 0.22, &numbers)
        x += width + numbers.number(in: -3...5)
      }
      if layer < 2 { addRectangle(0, 150, Landscape.width, 150, fill: "url(#haze)", opacity: 0.4) }
    }
  }

  /// Adds the lit windows of a house, as one path.
  private mutating func addWindows(
    _ x: Double, _ top: Double, _ width: Double, litShare: Double, _ numbers: inout SeededNumbers
  ) {
    let (step, size) = isLarge ? (2.8, 1.4) : (6.5, 2.4)
    let window = "h\(Self.text(size))v\(Self.text(size * 1.3))h-\(Self.text(size))z"
    var path = ""
    for y in stride(from: top + 5, to: 298, by: step * 1.25) {
      for place in stride(from: x + 3, to: x + width - size - 1, by: step) where numbers.number(in: 0...1) < litShare {
        path += "M\(Self.text(place)) \(Self.text(y))\(window)"
      }
    }
    add(#"<path fill="\#(palette.sun)" opacity=".75" d="\#(path)"/>"#)
  }
}
