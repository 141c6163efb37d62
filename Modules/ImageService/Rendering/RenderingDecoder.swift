#if Service
internal import CacheCore
internal import Crypto
internal import ImageCodecs

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A decoder that makes the result of the operations, unless its tag is known.
struct RenderingDecoder: ResourceDecoder {
  let operations: ImageOperations
  let format: ImageFormat
  let name: String
  /// The values of `If-None-Match`, or `nil` to make the result in any case.
  let known: String?
  private let decoder: ImageDecoder
  private let processor: ImageProcessor

  init(operations: ImageOperations, format: ImageFormat, name: String, limits: ImageService.Limits, known: String?) {
    (self.operations, self.format, self.name, self.known) = (operations, format, name, known)
    var (decoder, rest) = operations.processor.decoding(scale: 1)
    decoder.firstFrameOnly = true
    decoder.limits = limits.image
    (self.decoder, processor) = (decoder, rest)
  }

  var id: ComponentID { ComponentID(Self.self, parameters: "\(name) \(decoder.id.parameters) \(known ?? "")") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> RenderedImage {
    let tag = tag(of: data, metadata)
    if let known, known.split(separator: ",").contains(where: { $0.filter { $0 != " " } == tag || $0 == "W/\(tag)" }) {
      return RenderedImage(tag: tag)
    }
    if operations.isOriginal {
      return RenderedImage(tag: tag, image: .init(data: data, mediaType: ImageFormat(of: data)?.mediaType))
    }
    let image = try processor.process(decoder.decode(data, metadata))
    let file = try operations.encoder(format).encode(image)
    return RenderedImage(tag: tag, image: .init(data: file, mediaType: ImageFormat(of: file)?.mediaType))
  }

  func cost(of value: RenderedImage) -> Int { value.image?.data.count ?? 0 }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    operations.isOriginal ? 0 : decoder.workingMemory(for: data, metadata)
  }

  /// The entity tag: a digest of the source and the operations. A result can be confirmed before it is made.
  ///
  /// A strong entity tag stands for the source's bytes, whose digest takes a tenth of the time of a small result. All processes
  /// with the same codecs compute the same tag.
  private func tag(of data: Data, _ metadata: StoredMetadata) -> String {
    var digest = SHA256()
    if let tag = metadata.response.headerFields[.eTag], tag.hasPrefix("\"") {
      digest.update(data: Data("\(metadata.request.absoluteURL?.absoluteString ?? "") \(tag) ".utf8))
    } else {
      digest.update(data: data)
    }
    digest.update(data: Data("\(name) \(ImageEncoder.codecVersion)".utf8))
    return "\"\(Base64URL.text(Data(digest.finalize().prefix(16))))\""
  }
}
#endif
