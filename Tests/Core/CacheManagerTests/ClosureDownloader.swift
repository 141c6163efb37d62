import CacheCore
import Foundation
import HTTPTypes

/// A downloader that calls a closure, and records each request with its body.
final class ClosureDownloader: Downloader {
  struct Seen: Sendable {
    var head: HTTPRequest
    var body: String?
    var attempt: Int
    var networkAccess: NetworkAccess
  }

  typealias Handler = @Sendable (Seen) async throws(CacheError) -> DownloadResponse

  let id = ComponentID.unique(ClosureDownloader.self)
  private let handler: Handler
  private let log = Lock<[Seen]>([])

  init(_ handler: @escaping Handler) { self.handler = handler }

  var seen: [Seen] { log.withLock { $0 } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let body = try await request.body?.collect()
    let seen = Seen(
      head: request.head, body: body.map { String(decoding: $0, as: UTF8.self) }, attempt: request.attempt,
      networkAccess: request.networkAccess)
    log.withLock { $0.append(seen) }
    return try await handler(seen)
  }
}

/// A body that returns its chunks, and then ends normally or with an error.
final class ChunkedBody: ResourceBody.Source {
  private let rest: Lock<[String]>
  private let error: CacheError?

  init(_ chunks: [String], then error: CacheError? = nil) {
    rest = Lock(chunks)
    self.error = error
  }

  var trailers: HTTPFields? { nil }

  func cancel() {}

  func next() async throws(CacheError) -> Data? {
    let chunk = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    if chunk == nil, let error { throw error }
    return chunk.map { Data($0.utf8) }
  }
}

extension DownloadResponse {
  /// Returns a head with a body in chunks, which may end with an error.
  static func streaming(
    _ chunks: [String], then error: CacheError? = nil, status: HTTPResponse.Status = .ok, fields: HTTPFields = [:],
    metrics: TransferMetrics = TransferMetrics()
  ) -> DownloadResponse {
    let length = error == nil ? chunks.reduce(0) { $0 + Int64($1.utf8.count) } : nil
    return DownloadResponse(
      head: HTTPResponse(status: status, headerFields: fields),
      body: ResourceBody(length: length, source: ChunkedBody(chunks, then: error)), metrics: { metrics })
  }

  static func redirect(to location: String, status: HTTPResponse.Status) -> DownloadResponse {
    streaming([], status: status, fields: [.location: location])
  }
}
