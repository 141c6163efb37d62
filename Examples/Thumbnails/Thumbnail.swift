#if Thumbnails
import Etagere
import Foundation

/// What is made of each picture: a file of its own, decoded no larger than it is shown.
struct Thumbnail: Sendable {
  var size: ImageSizing
  var encoder: ImageEncoder

  /// The file, not the pixels: what the cache keeps is then what is written, and a second run decodes nothing.
  var transform: ResourceTransform<Data> { .imageFile(.resize(size), as: encoder) }
}
#endif
