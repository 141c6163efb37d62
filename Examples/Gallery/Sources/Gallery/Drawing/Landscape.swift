/// A landscape as an SVG document. The same number and version always give the same bytes.
///
/// SVG needs no codec, so the example draws its images as text.
struct Landscape: Sendable {
  enum Motif: String, CaseIterable, Sendable {
    case ridges = "Mountain ridges"
    case lake = "A lake"
    case dunes = "Dunes"
    case forest = "A forest"
    case sea = "The sea"
    case city = "A city"
  }

  static let (width, height) = (400.0, 300.0)

  let number: Int
  /// The version, which shows the landscape at another time of the day.
  let version: Int
  /// Whether the landscape is drawn with so much detail that its document exceeds 128 KiB.
  let isLarge: Bool

  var motif: Motif { Motif.allCases[(number * 5 + number / 6) % Motif.allCases.count] }
  var palette: Palette { Palette.all[(number * 3 + number / 8 + (version - 1) * 3) % Palette.all.count] }
  /// The alternative text.
  var title: String { "\(motif.rawValue) \(palette.name)" }

  /// The SVG document.
  var svg: String {
    var numbers = SeededNumbers(number + 1)
    var canvas = Canvas(palette: palette, isLarge: isLarge)
    let sun = Point(x: numbers.number(in: 80...320), y: numbers.number(in: motif == .sea ? 110...150 : 60...130))
    canvas.addSky(sun: sun, &numbers)
    switch motif {
    case .ridges: canvas.addRidges(from: 130, to: 285, count: 6, roughness: 46, &numbers)
    case .lake: canvas.addLake(&numbers)
    case .dunes: canvas.addDunes(&numbers)
    case .forest: canvas.addForest(&numbers)
    case .sea: canvas.addSea(under: sun, &numbers)
    case .city: canvas.addCity(&numbers)
    }
    return canvas.document
  }
}

struct Point: Sendable {
  var x: Double
  var y: Double
}
