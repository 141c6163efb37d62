#if Thumbnails
import ArgumentParser
import Etagere
import Foundation

/// What a run is told.
struct ThumbnailSettings: Sendable {
  /// Where the thumbnails go.
  var output: URL
  /// Where the cache is.
  var cache: URL
  var thumbnail: Thumbnail
  /// Pictures that are made at the same time.
  var jobs: Int
}

/// `400`, `400x300`: what a thumbnail fits into.
struct ThumbnailSize: ExpressibleByArgument, CustomStringConvertible {
  var width: Int
  var height: Int

  init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

  init?(argument: String) {
    let sides = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    guard (1...2).contains(sides.count), let width = sides.first, let height = sides.last,
      (1...20_000).contains(width), (1...20_000).contains(height)
    else { return nil }
    self.init(width: width, height: height)
  }

  var sizing: ImageSizing { .fit(width, height) }

  var description: String { width == height ? "\(width)" : "\(width)x\(height)" }
}

/// The formats that a thumbnail can have, by name.
enum ThumbnailFormat: String, ExpressibleByArgument, CaseIterable {
  case jpeg, png, webp, avif

  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }

  var format: ImageFormat {
    switch self {
    case .jpeg: .jpeg
    case .png: .png
    case .webp: .webp
    case .avif: .avif
    }
  }
}
#endif
