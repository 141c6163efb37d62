public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceTransform where Value == Data {
  /// A transform that decodes, processes and encodes an image, for code that writes or sends image files.
  ///
  /// ```swift
  /// let thumbnail = try await manager.load(url, as: .imageFile(.resize(.fit(400, 400)), as: .jpeg)).data
  /// ```
  ///
  /// The file is cached in memory and, as the load's `StoragePolicy` determines, in the durable store. Every load
  /// returns the same bytes until the original changes. An animated image is reduced to its first frame. In a format
  /// without alpha, transparent pixels show the encoder's background. If the engine does not write the format, the load fails
  /// with `CacheError.Code.unsupported`.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - encoder: The encoder of the file.
  ///   - limits: The limits beyond which an original is refused.
  public static func imageFile(
    _ processor: ImageProcessor = .none, as encoder: ImageEncoder, limits: ImageLimits = .standard
  ) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: 1, limits: limits)
    return ResourceTransform(decoder: ImageFileMaker(decoder: decoder, processor: rest, encoder: encoder))
      .stored(as: "file") {
        $0
      } decode: { file throws(CacheError) in
        guard let format = ImageFormat(of: file), encoder.formats.contains(format) else {
          throw CacheError(.decodingFailed, reason: "the stored bytes are \(ForeignContent(file)), not an image")
        }
        return file
      }
  }
}

/// A decoder that turns an image file into another image file in one step.
private struct ImageFileMaker: ResourceDecoder {
  var decoder: ImageDecoder
  let processor: ImageProcessor
  let encoder: ImageEncoder

  init(decoder: ImageDecoder, processor: ImageProcessor, encoder: ImageEncoder) {
    self.decoder = decoder
    self.decoder.firstFrameOnly = true
    self.processor = processor
    self.encoder = encoder
  }

  var id: ComponentID {
    // The length of each part keeps different settings from producing equal text.
    let parts = [decoder.id.parameters, processor.description, encoder.id.parameters].map { "\($0.utf8.count):\($0)" }
    return ComponentID(Self.self, parameters: parts.joined())
  }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    try encoder.encode(processor.process(decoder.decode(data, metadata)))
  }

  func cost(of value: Data) -> Int { value.count }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { decoder.workingMemory(for: data, metadata) }
}
