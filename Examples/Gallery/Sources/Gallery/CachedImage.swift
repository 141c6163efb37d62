import CacheManager

/// The place of an image in the cache, and whether it is fresh.
struct CachedImage: Codable, Sendable, Equatable {
  enum Layer: String, Codable, Sendable { case memory, disk }

  var layer: Layer
  var isFresh: Bool
}

extension CachedImage {
  /// Creates the result of a lookup, or `nil` for a miss.
  init?(_ lookup: CacheLookup) {
    switch lookup {
    case .miss: return nil
    case .memory(let isFresh): self.init(layer: .memory, isFresh: isFresh)
    case .disk(let isFresh): self.init(layer: .disk, isFresh: isFresh)
    }
  }
}
