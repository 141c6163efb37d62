import ArgumentParser
import Etagere
import Foundation

/// The settings of a run.
struct ThumbnailSettings: Sendable {
  /// The folder for the thumbnails.
  var output: URL
  /// The folder of the cache.
  var cache: URL
  var thumbnail: Thumbnail
  /// The number of images that are decoded at the same time.
  var jobs: Int
  /// Whether images wait for the cache's folder without a limit.
  var waitsForCache = false
}

/// The largest size of a thumbnail, in pixels: `400` or `400x300`.
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

/// The format of the thumbnails.
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
