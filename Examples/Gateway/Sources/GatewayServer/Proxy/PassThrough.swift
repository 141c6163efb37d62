import CacheCore
import HTTPServing

/// A responder without a cache, which sends every request to the origin.
struct PassThrough: Responder {
  let downloader: any Downloader

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    let response = try await downloader.download(
      DownloadRequest(head: request.head, body: request.body))
    return ProxyAnswer(head: response.head, body: response.body, outcome: .bypass)
  }
}
