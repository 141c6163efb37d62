#if Redis && Origin
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// A downloader that responds with the current versions of all resources, and confirms them with a 304. It never fails.
final class VersionedOrigin: Downloader {
  let id = ComponentID.unique(VersionedOrigin.self)
  private let versions: SharedVersions
  private let generator: Lock<SplitMix>

  private let log: LoadLog

  init(_ versions: SharedVersions, _ log: LoadLog, seed: UInt64) {
    (self.versions, self.log) = (versions, log)
    generator = Lock(SplitMix(state: seed))
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    guard let resource = VersionedResource(request.head) else {
      throw CacheError(.unscripted, reason: "there is no resource \(request.head.path ?? "")")
    }
    let (before, after) = generator.withLock { (Self.delay(&$0), Self.delay(&$0)) }
    try await pause(before)
    let response = respond(to: request.head, resource)
    log.note("\(resource.url): the origin sent \(response.head.status.code), \(response.head.headerFields[.eTag] ?? "")")
    try await pause(after)
    return response
  }

  /// Returns the delay before or after the response is made, in milliseconds. Few delays exceed the time for which other
  /// processes wait.
  private static func delay(_ generator: inout SplitMix) -> Int64 {
    switch Int.random(in: 0..<1_000, using: &generator) {
    case 0..<700: 0
    case 700..<960: Int64.random(in: 1...20, using: &generator)
    case 960..<998: Int64.random(in: 20...200, using: &generator)
    default: 3_000
    }
  }

  private func pause(_ milliseconds: Int64) async throws(CacheError) {
    guard milliseconds > 0 else { return }
    do {
      try await Task.sleep(for: .milliseconds(milliseconds))
    } catch {
      throw .cancelled
    }
  }

  private func respond(to head: HTTPRequest, _ resource: VersionedResource) -> DownloadResponse {
    let language = resource.varies ? head.headerFields[.acceptLanguage] : nil
    return versions.request(resource.number) { version in
      var fields: HTTPFields = [
        .eTag: resource.etag(version, language), .cacheControl: "max-age=\(resource.lifetime)",
      ]
      if resource.varies { fields[.vary] = "Accept-Language" }
      if let tag = resource.tag, let name = HTTPField.Name("Cache-Tag") { fields[name] = tag }
      if head.headerFields[.ifNoneMatch] == fields[.eTag] {
        return DownloadResponse(head: HTTPResponse(status: .notModified, headerFields: fields), body: ResourceBody(Data()))
      }
      let body = resource.body(version, language)
      return DownloadResponse(
        head: HTTPResponse(status: .ok, headerFields: fields),
        body: ResourceBody(length: Int64(body.count), source: ChunkedBody(body)))
    }
  }
}

/// A body that arrives in chunks of 64 KiB.
private final class ChunkedBody: ResourceBody.Source {
  private let bytes: Data
  /// The position of the next chunk, or `nil` after a cancellation.
  private let position = Lock<Int?>(0)

  init(_ bytes: Data) { self.bytes = bytes }

  func next() async throws(CacheError) -> Data? {
    // Other loads run between the chunks.
    await Task.yield()
    return try position.withLock { position throws(CacheError) in
      guard let start = position else { throw .cancelled }
      let end = min(start + 65_536, bytes.count)
      position = end
      return start < end ? bytes.subdata(in: start..<end) : nil
    }
  }

  func cancel() { position.withLock { $0 = nil } }

  var trailers: HTTPFields? { nil }
}
#endif
