#if Tool
import ArgumentParser
import Etagere

/// The size of `--resize`: `400x`, `x300`, `400x300`, `400x300^`, `400x300!`.
///
/// The syntax is that of ImageMagick and vipsthumbnail. Unlike in ImageMagick, only `!` makes an image larger.
struct ImageGeometry: ExpressibleByArgument, Equatable {
  let processor: ImageProcessor
  private let text: String

  init?(argument: String) {
    var sizes = argument[...]
    let mark = sizes.last.flatMap { "^!".contains($0) ? $0 : nil }
    if mark != nil { sizes.removeLast() }
    let sides = sizes.split(separator: "x", omittingEmptySubsequences: false).map(Self.length)
    switch (sides.count, mark) {
    // A single number is the side of a square.
    case (1, nil):
      guard case .pixels(let side) = sides[0] else { return nil }
      processor = .resize(.fit(side, side))
    case (2, nil):
      switch (sides[0], sides[1]) {
      case (.pixels(let width), .pixels(let height)): processor = .resize(.fit(width, height))
      case (.pixels(let width), .open): processor = .resize(.width(width))
      case (.open, .pixels(let height)): processor = .resize(.height(height))
      default: return nil
      }
    case (2, let mark?):
      guard case (.pixels(let width), .pixels(let height)) = (sides[0], sides[1]) else { return nil }
      processor = mark == "!" ? .resize(.exact(width, height)) : .fill(width, height)
    default: return nil
    }
    text = argument
  }

  var defaultValueDescription: String { text }

  static func == (a: Self, b: Self) -> Bool { a.text == b.text }

  private enum Length {
    case pixels(Int), open, none
  }

  private static func length(_ text: Substring) -> Length {
    if text.isEmpty { return .open }
    guard text.allSatisfy({ ("0"..."9").contains($0) }), let number = Int(text), (1...65_535).contains(number) else {
      return .none
    }
    return .pixels(number)
  }
}
#endif
