#if Service
internal import CacheCore
internal import CacheManager
internal import Crypto
internal import ETagValidation
internal import HTTPTypes
internal import ImageCodecs
internal import ImageWorkers

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The origin of the results: a downloader that loads the source and makes an image of it.
///
/// The manager asks it like any origin, also with `If-None-Match`. A result whose source has not changed is confirmed without
/// decoding.
struct ImageRenderer: Downloader {
  let manager: ResourceManager
  let folders: FolderSources
  let operations: ImageOperations
  let format: ImageFormat
  /// The canonical text of the operations and the format.
  let name: String
  let limits: ImageService.Limits
  let allowsPartial: Bool
  let fastShrinkOnLoad: Bool
  let slots: RenderSlots
  let workers: CodecWorkers?
  let refusals: RefusedImages
  /// Receives the failures of codecs in workers.
  let onCodecFailure: (@Sendable (CacheError) -> Void)?
  /// Receives the error that a problem response stands for.
  let report: @Sendable (CacheError) -> Void

  var id: ComponentID { ComponentID(Self.self, parameters: name) }

  var preferredExecutor: (any TaskExecutor)? { manager.configuration.downloader?.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    let slot = "\(name) \(url.absoluteString)"
    guard slots.take(slot) else {
      return problem(CacheError(.overloaded, reason: "too many results are being made, for example of other images"))
    }
    defer { slots.release(slot) }
    let known = request.head.headerFields[.ifNoneMatch]
    let transform = ResourceTransform(
      decoder: RenderingDecoder(
        RenderJob(
          operations: operations, format: format, limits: limits, allowsPartial: allowsPartial, fastShrinkOnLoad: fastShrinkOnLoad
        ),
        name: name, known: known,
        workers: workers.map { RenderWorkers($0, refusals, within: limits.timeout, report: onCodecFailure) }))
    let options = RequestOptions {
      // The originals are only on disk: memory is for the results. A local file needs no copy.
      let isFile = SourceReference.isFile(url)
      ($0.reads, $0.writes) = isFile ? ([], []) : (.disk, .disk)
      if isFile { $0.downloader = .use(folders) }
      $0.storagePolicy = .originals
      $0.timeout = limits.timeout
      $0.maximumBodySize = Int64(limits.sourceBytes)
    }
    let resource: Resource<RenderedImage>
    do throws(CacheError) {
      resource = try await manager.load(ResourceRequest(url, options: options), as: transform)
    } catch {
      // As a response with a 5xx status, the cache can replace it by a stale result (`stale-if-error`). A 404 replaces the
      // result.
      guard error.code == .unacceptableStatus || error.code == .codecTimedOut else { throw error }
      return problem(error)
    }
    return response(resource)
  }

  private func problem(_ error: CacheError) -> DownloadResponse {
    report(error)
    return Problem(error).download
  }

  private func response(_ resource: Resource<RenderedImage>) -> DownloadResponse {
    var fields = HTTPFields()
    for name in Self.copiedFields {
      for value in resource.response.headerFields[values: name] { fields.append(HTTPField(name: name, value: value)) }
    }
    // The age of the source counts, so that the result is not fresh for longer than the source.
    if resource.age > .seconds(1) { fields[.age] = "\(resource.age.components.seconds)" }
    fields[.eTag] = resource.value.tag
    guard let image = resource.value.image else {
      return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
    }
    fields[.contentType] = image.mediaType
    fields[.contentLength] = "\(image.data.count)"
    return DownloadResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(image.data))
  }

  /// The fields of the source that also apply to the result.
  static let copiedFields: [HTTPField.Name] =
    [.cacheControl, .expires, .date, .lastModified] + targetedFields
    + ["Cache-Tag", "Surrogate-Key"].compactMap { HTTPField.Name($0) }

  /// The fields with lifetimes for content delivery networks.
  static let targetedFields = ["Surrogate-Control", "CDN-Cache-Control"].compactMap { HTTPField.Name($0) }
}

/// A result, or the confirmation of a known one.
struct RenderedImage: Sendable {
  struct File: Sendable {
    var data: Data
    var mediaType: String
  }

  var tag: String
  /// The result, or `nil` if the client knows it by its tag.
  var image: File?
}

/// The results that are being made or waiting. Requests for the same result need one slot together.
final class RenderSlots: Sendable {
  private let limit: Int
  private let users = Lock<[String: Int]>([:])

  init(_ limit: Int) { self.limit = limit }

  /// Returns whether there is a slot.
  func take(_ result: String) -> Bool {
    users.withLock { users in
      guard users[result] != nil || users.count < limit else { return false }
      users[result, default: 0] += 1
      return true
    }
  }

  func release(_ result: String) {
    users.withLock { users in
      let count = users[result] ?? 1
      users[result] = count == 1 ? nil : count - 1
    }
  }

  var count: Int { users.withLock { $0.count } }
}

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
