import CacheUI

/// One row of the list: an image on the server.
struct ListRow: Identifiable, Hashable, Sendable {
  /// The kind of an image.
  enum Kind: Hashable, Sendable {
    case symbol
    case photograph
  }

  /// The position in the list, from 0.
  var id: Int
  var kind: Kind
  /// The position among the images of this kind, from 0.
  var number: Int

  /// The path on the server.
  var path: String { kind == .symbol ? "/symbol-\(number + 1).png" : "/photograph-\(number + 1).jpg" }

  /// The rows of the list: 56 symbols, and after every 14 of them a photograph until there are three.
  static let all: [ListRow] = {
    var kinds = Array(repeating: Kind.symbol, count: 56)
    for place in [42, 28, 14] { kinds.insert(.photograph, at: place) }
    var counts: [Kind: Int] = [:]
    return kinds.enumerated().map { id, kind in
      let number = counts[kind, default: 0]
      counts[kind] = number + 1
      return ListRow(id: id, kind: kind, number: number)
    }
  }()

  /// Whether the image changes in a change on the server: every seventh symbol and the first photograph.
  var changes: Bool { kind == .symbol ? number % 7 == 3 : number == 0 }
}
