import CacheCore
import HTTPServing
import HTTPTypes

/// A downloader between the cache and the network. It sends requests to the origin, although the cache knows them by the host
/// that the client named. It also checks each response before the cache stores it.
struct OriginConnector: Downloader {
  let id = ComponentID.unique(OriginConnector.self)

  let origin: OriginAddress
  let engine: any Downloader
  /// Whether the origin gets the client's `Host`, and not its own.
  var keepsHost = true
  /// The gateway's name in `Via` (RFC 9110 §7.6.3), or `nil` to add no `Via`.
  var via: String?

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var request = request
    let asked = request.head
    request.head = outgoing(asked)
    var response = try await engine.download(request)
    do {
      try AnswerCheck(request: asked).check(response.head)
    } catch {
      response.body.source.cancel()
      throw error
    }
    response.head.headerFields = response.head.headerFields.endToEnd()
    if let via { response.head.headerFields.append("Via", "1.1 \(via)") }
    return response
  }

  private func outgoing(_ head: HTTPRequest) -> HTTPRequest {
    var fields = HTTPFields()
    fields.reserveCapacity(head.headerFields.count + 2)
    // `Host` comes first, as RFC 9110 §7.2 recommends.
    fields.append("Host", keepsHost ? head.authority ?? origin.authority : origin.authority)
    for field in head.headerFields { fields.append(field) }
    if let via { fields.append("Via", "1.1 \(via)") }
    return HTTPRequest(
      method: head.method, scheme: origin.scheme, authority: origin.authority, path: head.path, headerFields: fields)
  }
}
