#if Gateway
import CacheCore

/// Asks the origin every time: no cache.
struct PassThrough: Responder {
  let downloader: any Downloader

  func respond(to request: ProxyRequest) async throws(CacheError) -> ProxyAnswer {
    let response = try await downloader.download(
      DownloadRequest(head: request.head, body: request.body))
    return ProxyAnswer(head: response.head, body: response.body, outcome: .bypass)
  }
}
#endif
