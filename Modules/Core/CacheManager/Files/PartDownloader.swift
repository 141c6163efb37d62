internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The downloader of a load into a file. It continues the part that an earlier load has left, and records what a later load needs
/// to continue this one.
///
/// It surrounds all other wrappers, so the response to a range request is completed before any stage of the load sees it. The
/// stores therefore receive the whole body, as they do if a transfer is resumed within a load.
struct PartDownloader: Downloader {
  let base: any Downloader
  let file: PartialFile
  let load: ResolvedRequest

  // The response is the same as without a part, so the load shares transfers with loads that have none.
  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  init(_ base: any Downloader, into file: PartialFile, for load: ResolvedRequest) {
    (self.base, self.file, self.load) = (base, file, load)
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if let part = try await part(for: request) {
      var rest = part.plan.request(request, from: part.count)
      // The conditions of the cache are evaluated before the range (RFC 9110 §13.2.2), so a 304 still confirms its response.
      for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] {
        rest.head.headerFields[fields: name] = request.head.headerFields[fields: name]
      }
      let response = try await base.download(rest)
      switch response.head.status {
      case .partialContent:
        if case .append = part.plan.judge(response.head, bodyLength: response.body.length, at: part.count) {
          return continued(response, part)
        }
      case .rangeNotSatisfiable: break
      default: return recorded(response, request)
      }
      response.body.source.cancel()
      if Task.isCancelled { throw .cancelled }
    }
    return recorded(try await base.download(request), request)
  }

  private func part(for request: DownloadRequest) async throws(CacheError) -> PartialFile.Part? {
    guard request.head.method == .get, request.body == nil, !request.head.headerFields.contains(.range),
      load.acceptedStatuses.contains(200)
    else { return nil }
    return try await file.part { $0.matches(request.head, for: load.settings.resource) }
  }

  /// Returns the whole response. A 206 need not repeat the fields that describe the content (RFC 9110 §15.3.7).
  private func continued(_ response: DownloadResponse, _ part: PartialFile.Part) -> DownloadResponse {
    var fields = part.record.described
    let ofThePart = ["content-range", "content-length", "content-digest", "content-md5"]
    for name in Set(response.head.headerFields.map(\.name)) where !ofThePart.contains(name.canonicalName) {
      fields[fields: name] = response.head.headerFields[fields: name]
    }
    fields[.contentLength] = String(part.plan.length)
    var whole = response
    whole.head = HTTPResponse(status: .ok, headerFields: fields)
    whole.body = ResourceBody(
      length: part.plan.length, source: PartBody(response.body.source, .continued(part), file))
    return whole
  }

  private func recorded(_ response: DownloadResponse, _ request: DownloadRequest) -> DownloadResponse {
    guard response.body.data == nil,
      let record = PartRecord(response, to: request, for: load.settings.resource, now: load.clock.now)
    else { return response }
    var recorded = response
    recorded.body = ResourceBody(
      length: response.body.length, source: PartBody(response.body.source, .new(record), file))
    return recorded
  }
}

/// A body that is written to a partial file, from its first byte on or after the bytes that the file has.
private final class PartBody: ResourceBody.Source {
  enum Start: Sendable {
    case new(PartRecord)
    case continued(PartialFile.Part)
  }

  private let base: any ResourceBody.Source
  private let start: Start
  private let file: PartialFile
  /// The number of bytes that were read from the file, or `nil` before the first read.
  private let position = Lock<Int64?>(nil)

  init(_ base: any ResourceBody.Source, _ start: Start, _ file: PartialFile) {
    (self.base, self.start, self.file) = (base, start, file)
  }

  var trailers: HTTPFields? { base.trailers }

  func cancel() { base.cancel() }

  func next() async throws(CacheError) -> Data? {
    let position = position.withLock { $0 }
    switch start {
    case .new(let record):
      guard position == nil else { return try await base.next() }
      let chunk = try await base.next()
      // The record exists before the first byte, and the bytes of an earlier part until then.
      if chunk != nil { try await file.begin(record) }
      self.position.withLock { $0 = 0 }
      return chunk
    case .continued(let part):
      if position == nil { file.resume() }
      let offset = position ?? 0
      guard offset < part.count else { return try await base.next() }
      let chunk = try await file.read(Int(min(256 << 10, part.count - offset)), at: offset)
      self.position.withLock { $0 = offset + Int64(chunk.count) }
      return chunk
    }
  }
}
