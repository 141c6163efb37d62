public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceTransform where Value == DecodedImage {
  /// A transform that decodes an image with the default decoder and processes it.
  ///
  /// ```swift
  /// let resource = try await manager.load(url, as: .image(.resize(.fit(400, 400)) + .gray))
  /// print(resource.value.size, resource.source)
  /// ```
  ///
  /// If the first step of the processor shrinks the image, the decoder does it. Some codecs then never create the
  /// full-size pixels.
  ///
  /// With an encoder, a durable store also stores the processed image, as the load's `StoragePolicy` determines. A
  /// later process shows it without decoding the original:
  ///
  /// ```swift
  /// let thumbnail = ResourceTransform.image(.resize(.fit(400, 400)), storedAs: .automatic)
  /// ```
  ///
  /// A format that the platform does not write is replaced: see ``ImageEncoder``.
  ///
  /// An image that its file format cannot represent (``ImageEncoder/canEncode(_:)``) is made from the original in each
  /// process. The header of a restored image describes the stored file.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the image.
  ///   - scale: The number of pixels per point.
  ///   - limits: The limits beyond which an image is refused.
  ///   - encoder: The encoder for the stored image. With `nil`, only the original is stored.
  public static func image(
    _ processor: ImageProcessor = .none, scale: Double = 1, limits: ImageLimits = .standard,
    storedAs encoder: ImageEncoder? = nil
  ) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: scale, limits: limits)
    // One processor per step, so that transforms share the work of their common first steps.
    let processors = rest.steps.map { ImageProcessor([$0]) }
    guard let encoder else { return ResourceTransform(decoder: decoder, processors: processors) }
    // The stored image already has its final size. It was made within the limits, so it is always restored.
    var restorer = ImageDecoder(scale: scale)
    restorer.limits.bytes = .max
    restorer.limits.pixels = max(restorer.limits.pixels, limits.pixels)
    restorer.limits.side = max(restorer.limits.side, limits.side)
    return ResourceTransform(decoder: decoder, processors: processors, encoder: encoder, restorer: restorer)
  }

  /// A transform that decodes an image in a given size with the default decoder.
  ///
  /// - Parameters:
  ///   - size: The size rule.
  ///   - scale: The number of pixels per point.
  ///   - limits: The limits beyond which an image is refused.
  ///   - encoder: The encoder for the stored image. With `nil`, only the original is stored.
  public static func image(
    size: ImageSizing, scale: Double = 1, limits: ImageLimits = .standard, storedAs encoder: ImageEncoder? = nil
  ) -> ResourceTransform {
    image(.resize(size), scale: scale, limits: limits, storedAs: encoder)
  }
}

extension ImageProcessor {
  /// Returns the decoder, which performs the first step if that is a resize, and the remaining steps.
  package func decoding(scale: Double, limits: ImageLimits = .standard) -> (decoder: ImageDecoder, rest: ImageProcessor) {
    let (size, rest) = splittingResize()
    var decoder = ImageDecoder(size: size, scale: scale)
    decoder.limits = limits
    return (decoder, rest)
  }

  /// Returns the size of the first step if that is a resize, and the remaining steps.
  package func splittingResize() -> (size: ImageSizing?, rest: ImageProcessor) {
    let size = steps.first?.sizing
    return (size, size == nil ? self : ImageProcessor(Array(steps.dropFirst())))
  }
}

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
