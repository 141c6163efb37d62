/// The colors of one time of the day.
struct Palette: Sendable {
  /// The time of the day, for alternative texts.
  var name: String
  /// The colors of the sky, from the top to the horizon.
  var sky: [Color]
  var sun: Color
  /// The colors of the farthest and the nearest layer of the land. Distant land has much of the sky's color.
  var far: Color
  var near: Color
  var hasStars = false

  /// The palettes of the versions of an image, in order.
  static let all: [Palette] = [
    Palette(name: "at dawn", sky: [0x2B3A67, 0xA8628F, 0xFFC89A], sun: 0xFFF1D0, far: 0xA57C98, near: 0x2A2140),
    Palette(name: "at noon", sky: [0x2F7FC4, 0x7FC0EA, 0xE4F5FA], sun: 0xFFFCEB, far: 0x86B6CB, near: 0x1C4A47),
    Palette(name: "in the golden hour", sky: [0x3A5A86, 0xE29A62, 0xFFE6A8], sun: 0xFFF6CF, far: 0xC08A6A, near: 0x40252F),
    Palette(
      name: "under northern lights", sky: [0x041020, 0x0B3A4A, 0x1F7A72], sun: 0xD6FFF0, far: 0x1A5C60, near: 0x031019,
      hasStars: true),
    Palette(name: "in the mist", sky: [0x93AAB6, 0xC9D6D9, 0xF5F1E6], sun: 0xFFFFFF, far: 0xAFBFC2, near: 0x3E545B),
    Palette(name: "at dusk", sky: [0x1C1A44, 0x77397A, 0xFF8E6E], sun: 0xFFD3A6, far: 0x704584, near: 0x160F2D, hasStars: true),
    Palette(name: "in autumn light", sky: [0x5B3A2E, 0xC8663A, 0xFFD08A], sun: 0xFFF0C2, far: 0xA65D42, near: 0x2A1512),
    Palette(
      name: "at night", sky: [0x050A22, 0x122250, 0x2F5090], sun: 0xF0F4FF, far: 0x28407A, near: 0x040919, hasStars: true),
  ]
}

/// A color of 24 bits: red, green, blue.
struct Color: Sendable, Hashable, ExpressibleByIntegerLiteral, CustomStringConvertible {
  var rgb: Int

  init(integerLiteral rgb: Int) { self.rgb = rgb }

  init(rgb: Int) { self.rgb = rgb }

  /// Returns a mixture with another color.
  ///
  /// - Parameter part: The share of the other color, from 0 to 1.
  func mixed(with other: Color, _ part: Double) -> Color {
    let channels = [16, 8, 0].map { shift in
      let (mine, others) = (Double(rgb >> shift & 0xFF), Double(other.rgb >> shift & 0xFF))
      return Int((mine + (others - mine) * min(max(part, 0), 1)).rounded()) << shift
    }
    return Color(rgb: channels.reduce(0, |))
  }

  /// The color in the syntax of SVG: `#0a1b2c`.
  var description: String {
    let digits = String(rgb, radix: 16)
    return "#" + String(repeating: "0", count: 6 - digits.count) + digits
  }
}
