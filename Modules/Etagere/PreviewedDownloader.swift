internal import CacheCore
internal import HTTPTypes
internal import ImageCodecs

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader that passes the bytes of a response to a previewer. It has the identity of its base, because its responses are
/// the same.
struct PreviewedDownloader: Downloader {
  let base: any Downloader
  let previewer: ImagePreviewer

  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    previewer.restart()
    var request = request
    // A preview needs the bytes as they arrive.
    request.collectUpTo = 0
    var response = try await base.download(request)
    // A body that has already arrived needs no preview.
    guard response.head.status == .ok, response.body.data == nil else { return response }
    response.body = ResourceBody(
      length: response.body.length, source: PreviewedBody(source: response.body.source, previewer: previewer))
    return response
  }
}

private final class PreviewedBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let previewer: ImagePreviewer

  init(source: any ResourceBody.Source, previewer: ImagePreviewer) { (self.source, self.previewer) = (source, previewer) }

  func next() async throws(CacheError) -> Data? {
    let chunk = try await source.next()
    if let chunk { previewer.take(chunk) }
    return chunk
  }

  func cancel() { source.cancel() }

  var trailers: HTTPFields? { source.trailers }
}
