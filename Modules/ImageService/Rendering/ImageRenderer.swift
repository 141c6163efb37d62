#if Service
internal import CacheCore
internal import CacheManager
internal import HTTPTypes
internal import ImageCodecs

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
  let operations: ImageOperations
  let format: ImageFormat
  /// The canonical text of the operations and the format.
  let name: String
  let limits: ImageService.Limits
  let slots: RenderSlots

  var id: ComponentID { ComponentID(Self.self, parameters: name) }

  var preferredExecutor: (any TaskExecutor)? { manager.configuration.downloader?.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    try slots.take()
    defer { slots.release() }
    let known = request.head.headerFields[.ifNoneMatch]
    let transform = ResourceTransform(
      decoder: RenderingDecoder(operations: operations, format: format, name: name, limits: limits, known: known))
    let options = RequestOptions {
      // The originals are only on disk: memory is for the results. A local file needs no copy.
      let layers: CacheLayers = SourceReference.isFile(url) ? [] : .disk
      ($0.reads, $0.writes) = (layers, layers)
      $0.storagePolicy = .originals
      $0.timeout = limits.time
      $0.maximumBodySize = Int64(limits.bytes)
    }
    let resource: Resource<RenderedImage>
    do throws(CacheError) {
      resource = try await manager.load(ResourceRequest(url, options: options), as: transform)
    } catch {
      // A missing image is a response of the origin. After other errors, a stale result may be used.
      guard error.code == .unacceptableStatus, error.status == 404 || error.status == 410 else { throw error }
      return Problem(error).download
    }
    return response(resource)
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
    fields[.contentType] =
      image.mediaType ?? resource.response.headerFields[.contentType] ?? "application/octet-stream"
    fields[.contentLength] = "\(image.data.count)"
    return DownloadResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(image.data))
  }

  /// The fields of the source that also apply to the result.
  private static let copiedFields: [HTTPField.Name] =
    [.cacheControl, .expires, .date, .lastModified]
    + ["Cache-Tag", "Surrogate-Key", "Surrogate-Control", "CDN-Cache-Control"].compactMap { HTTPField.Name($0) }
}

/// A result, or the confirmation of a known one.
struct RenderedImage: Sendable {
  struct File: Sendable {
    var data: Data
    /// The media type, or `nil` for that of the source.
    var mediaType: String?
  }

  var tag: String
  /// The result, or `nil` if the client knows it by its tag.
  var image: File?
}

/// The number of results that are being made, or wait for it.
final class RenderSlots: Sendable {
  private let limit: Int
  private let used = Lock(0)

  init(_ limit: Int) { self.limit = limit }

  func take() throws(CacheError) {
    let isTaken = used.withLock { used in
      guard used < limit else { return false }
      used += 1
      return true
    }
    guard isTaken else { throw CacheError(.overloaded, reason: "\(limit) images are being made already") }
  }

  func release() { used.withLock { $0 -= 1 } }

  var count: Int { used.withLock { $0 } }
}
#endif
