import CacheCore
import HTTPServing

/// A responder without a cache, which sends every request to the origin.
struct PassThrough: Responder {
  let downloader: any Downloader

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    var forwarded = DownloadRequest(head: request.head, body: request.body)
    forwarded.onInterimResponse = { request.sendInterimResponse($0) }
    let response = try await downloader.download(forwarded)
    return ProxyAnswer(head: response.head, body: response.body, outcome: .bypass)
  }
}
