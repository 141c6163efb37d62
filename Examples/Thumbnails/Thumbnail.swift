#if Thumbnails
import Etagere
import Foundation

/// Makes a thumbnail's file of a picture's: decoded no larger than it is shown, and encoded.
///
/// Its value is the file, not the pixels: what the cache keeps is then what is written, and a second run decodes nothing.
struct Thumbnail: ResourceDecoder {
  var size: ImageSizing
  var encoder: ImageEncoder

  var id: ComponentID {
    ComponentID(Thumbnail.self, parameters: "\(size);\(encoder.format);\(encoder.quality)")
  }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    let decoder = ImageDecoder {
      $0.size = size
      $0.frames = .first
    }
    return try encoder.encode(try decoder.decode(data))
  }

  func cost(of value: Data) -> Int { value.count }

  /// As the cache keeps it: as it is.
  var form: Form<Data> {
    Form(decoder: self).stored(as: "file") {
      $0
    } decode: {
      $0
    }
  }
}
#endif
