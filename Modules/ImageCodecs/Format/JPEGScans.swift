internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Counts a JPEG's scans by its markers (ISO/IEC 10918-1 §B.2). Each goes over the whole picture, however few bytes it has,
/// within one call of a codec: a hundred thousand bytes can take minutes. Progressive pictures have about ten.
enum JPEGScans {
  static let most = 100

  static func check(_ data: Data) throws(CacheError) {
    let count = count(data)
    guard count <= most else {
      throw CacheError(.imageLimitExceeded, reason: "JPEG: the picture has \(count) scans, the limit is \(most)")
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
