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

  let name: String
  /// The values of `If-None-Match`, or `nil` to make the result in any case.
  let known: String?
  private let job: RenderJob
  private let workers: RenderWorkers?

  init(_ job: RenderJob, name: String, known: String?, workers: RenderWorkers? = nil) {
    (self.job, self.name, self.known, self.workers) = (job, name, known, workers)
  }

  var id: ComponentID { ComponentID(Self.self, parameters: "\(name) \(job.decoder.id.parameters) \(known ?? "")") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> RenderedImage {
    let source = Self.digest(of: data, metadata)
    let tag = tag(of: source, metadata)
    if let known, EntityTagList(.ifNoneMatch, of: [.ifNoneMatch: known]).names(EntityTag(tag)) { return RenderedImage(tag: tag) }
    var job = job
    job.forbidsTransforming = metadata.forbidsTransforming
    let (result, file) =
      if let workers {
        try workers.render(job, data, source: Data(source.finalize()), tag: tag, url: metadata.request.absoluteURL)
      } else {
        try job.render(data)
      }
    return RenderedImage(tag: tag, image: .init(data: result.isSource ? data : file, mediaType: result.mediaType))
  }

  func cost(of value: RenderedImage) -> Int { value.image?.data.count ?? 0 }

  /// The memory of a worker is not that of this process.
  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    metadata.forbidsTransforming || workers != nil ? 0 : job.workingMemory(for: data)
  }

  /// The entity tag: a digest of the source and the operations. A result can be confirmed before it is made. The tag is weak,
  /// because other versions of the codecs can make other bytes.
  ///
  /// A strong entity tag stands for the source's bytes, so that these need no digest. All processes with the same codecs
  /// compute the same tag.
  private func tag(of source: SHA256, _ metadata: StoredMetadata) -> String {
    var digest = source
    // A source that adds or removes the directive has another result, even if its bytes are the same.
    let name = metadata.forbidsTransforming ? "no-transform" : name
    let codecs = ImageEncoder.codecVersion + (job.fastShrinkOnLoad ? " fast" : "")
    digest.update(data: Data("\(Self.version) \(name) \(codecs)".utf8))
    return "W/\"\(Base64URL.text(Data(digest.finalize().prefix(16))))\""
  }

  private static func digest(of data: Data, _ metadata: StoredMetadata) -> SHA256 {
    var digest = SHA256()
    if let tag = metadata.response.headerFields.single(.eTag).flatMap({ EntityTag($0) }), !tag.isWeak {
      digest.update(data: Data("\(metadata.request.absoluteURL?.absoluteString ?? "") \(tag) ".utf8))
    } else {
      digest.update(data: data)
    }
    return digest
  }
}

extension StoredMetadata {
  fileprivate var forbidsTransforming: Bool { CacheControl(response.headerFields).noTransform }
}
#endif
