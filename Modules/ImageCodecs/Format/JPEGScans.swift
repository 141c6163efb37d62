internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A limit on the scans of a JPEG, counted by its markers (ISO/IEC 10918-1 §B.2). A scan covers the whole image,
/// however few bytes it has, and decoding cannot be stopped within one call. A hundred thousand bytes can take minutes.
/// Progressive images have about ten scans.
enum JPEGScans {
  static let most = 100

  static func check(_ data: Data) throws(CacheError) {
    let count = count(data)
    guard count <= most else {
      throw CacheError(.imageLimitExceeded, reason: "JPEG: the image has \(count) scans, the limit is \(most)")
    }
  }

  static func count(_ data: Data) -> Int {
    var scans = 0
    JPEGMarkers.walk(data) { marker, _ in
      if marker == 0xDA { scans += 1 }
      return true
    }
    return scans
  }
}
