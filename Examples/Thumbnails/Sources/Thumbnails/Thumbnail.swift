import Etagere
import Foundation

/// The size and the format of the thumbnails.
struct Thumbnail: Sendable {
  var size: ImageSizing
  var encoder: ImageEncoder

  /// The transform of an image into its thumbnail file. Its value is the file and not the pixels, so the cached value is the
  /// output, and a second run decodes nothing.
  var transform: ResourceTransform<Data> { .imageFile(.resize(size), as: encoder) }
}
