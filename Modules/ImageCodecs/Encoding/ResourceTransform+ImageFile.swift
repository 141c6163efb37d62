public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceTransform where Value == Data {
  /// Pictures, decoded by the usual decoder, processed, and encoded: files of their own, for who writes or sends them.
  ///
  /// ```swift
  /// let thumbnail = try await manager.load(url, as: .imageFile(.resize(.fit(400, 400)), as: .webp)).data
  /// ```
  ///
  /// They are kept as they are, in memory and, as the load's `StoragePolicy` says, in the durable store: every load returns the
  /// same bytes until the original changes. Of an animated picture it is the first frame; what is transparent is the encoder's
  /// background in a format without alpha.
  ///
  /// - Parameters:
  ///   - processor: what is done to them.
  ///   - encoder: what they become.
  public static func imageFile(_ processor: ImageProcessor = .none, as encoder: ImageEncoder) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: 1)
    return ResourceTransform(decoder: ImageFileMaker(decoder: decoder, processor: rest, encoder: encoder))
      .stored(as: "file") {
        $0
      } decode: { file throws(CacheError) in
        guard let format = ImageFormat(of: file), encoder.formats.contains(format) else {
          throw CacheError(.decodingFailed, reason: "the stored bytes are \(ForeignContent(file)), no picture's file")
        }
        return file
      }
  }
}

/// Makes a file of a file, in one step.
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
    // With their lengths: no two lists of settings read alike.
    let parts = [decoder.id.parameters, processor.description, encoder.id.parameters].map { "\($0.utf8.count):\($0)" }
    return ComponentID(Self.self, parameters: parts.joined())
  }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    try encoder.encode(processor.process(decoder.decode(data, metadata)))
  }

  func cost(of value: Data) -> Int { value.count }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { decoder.workingMemory(for: data, metadata) }
}
