#if Service
internal import CacheCore
internal import Crypto
internal import ETagValidation
internal import HTTPTypes
internal import ImageCodecs

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A decoder that makes the result of the operations, unless its tag is known. The result of a source with `no-transform` is the
/// source itself (RFC 9111 §5.2.2.6).
struct RenderingDecoder: ResourceDecoder {
  /// The version of the steps. A change that makes other images of the same operations increases it.
  private static let version = 1

  let operations: ImageOperations
  let format: ImageFormat
  let name: String
  /// The values of `If-None-Match`, or `nil` to make the result in any case.
  let known: String?
  private let limits: ImageService.Limits
  private let decoder: ImageDecoder
  private let processor: ImageProcessor

  init(
    operations: ImageOperations, format: ImageFormat, name: String, limits: ImageService.Limits, allowsPartial: Bool = false,
    known: String?
  ) {
    (self.operations, self.format, self.name, self.known, self.limits) = (operations, format, name, known, limits)
    var (decoder, rest) = operations.processor.decoding(scale: 1)
    decoder.firstFrameOnly = true
    decoder.limits = limits.image
    decoder.allowsPartial = allowsPartial
    (self.decoder, processor) = (decoder, rest)
  }

  var id: ComponentID { ComponentID(Self.self, parameters: "\(name) \(decoder.id.parameters) \(known ?? "")") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> RenderedImage {
    let tag = tag(of: data, metadata)
    if let known, EntityTagList(.ifNoneMatch, of: [.ifNoneMatch: known]).names(EntityTag(tag)) { return RenderedImage(tag: tag) }
    if metadata.forbidsTransforming {
      let type = try ImageHeader(of: data, limits: limits.image).format.mediaType
      return RenderedImage(tag: tag, image: .init(data: data, mediaType: type))
    }
    if operations.enlarges { try checkSizes(from: ImageHeader(of: data, limits: limits.image).size) }
    let image = try processor.process(decoder.decode(data, metadata))
    var encoder = operations.encoder(format)
    encoder.timeLimit = limits.timeout
    let file = try encoded(image, encoder)
    let type = ImageFormat(of: file)?.mediaType ?? "application/octet-stream"
    return RenderedImage(tag: tag, image: .init(data: file, mediaType: type))
  }

  /// Encodes an image. An encoder that the codecs do not have is no property of the source.
  private func encoded(_ image: DecodedImage, _ encoder: ImageEncoder) throws(CacheError) -> Data {
    do throws(CacheError) {
      return try encoder.encode(image)
    } catch  where error.code == .unsupported {
      throw CacheError(.encodingFailed, reason: error.reason)
    }
  }

  func cost(of value: RenderedImage) -> Int { value.image?.data.count ?? 0 }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    guard !metadata.forbidsTransforming, let (header, memory) = decoder.workingMemory(for: data) else { return 0 }
    let size = header.size
    // Each step has its input and its output, and the encoder has a copy of the last one. The decoder does the first resizing.
    let isShrinking = operations.steps.first.map { if case .resize = $0 { true } else { false } } ?? false
    let areas = operations.sizes(from: size).dropFirst(isShrinking ? 1 : 0).map { Double($0.area) * 4 }
    let largest = zip(areas, areas.dropFirst()).map(+).max() ?? 0
    let encoding = (areas.last ?? 0) * 2
    return memory + Int(clamping: Int64(max(largest, encoding)))
  }

  /// Refuses operations that make an image with a larger side than a URL can request and the source has, or with too many pixels.
  private func checkSizes(from source: PixelSize) throws(CacheError) {
    let side = max(limits.maximumSide, source.width, source.height)
    for size in operations.sizes(from: source) where max(size.width, size.height) > side || size.area > limits.sourcePixels {
      throw CacheError(.imageLimitExceeded, reason: "the operations make an image of \(size), which exceeds the limits")
    }
  }

  /// The entity tag: a digest of the source and the operations. A result can be confirmed before it is made. The tag is weak,
  /// because other versions of the codecs can make other bytes.
  ///
  /// A strong entity tag stands for the source's bytes, so that these need no digest. All processes with the same codecs
  /// compute the same tag.
  private func tag(of data: Data, _ metadata: StoredMetadata) -> String {
    var digest = SHA256()
    if let tag = metadata.response.headerFields.single(.eTag).flatMap({ EntityTag($0) }), !tag.isWeak {
      digest.update(data: Data("\(metadata.request.absoluteURL?.absoluteString ?? "") \(tag) ".utf8))
    } else {
      digest.update(data: data)
    }
    // A source that adds or removes the directive has another result, even if its bytes are the same.
    let name = metadata.forbidsTransforming ? "no-transform" : name
    digest.update(data: Data("\(Self.version) \(name) \(ImageEncoder.codecVersion)".utf8))
    return "W/\"\(Base64URL.text(Data(digest.finalize().prefix(16))))\""
  }
}

extension StoredMetadata {
  fileprivate var forbidsTransforming: Bool { CacheControl(response.headerFields).noTransform }
}
#endif
