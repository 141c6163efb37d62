#if Redis && Origin && Service && SQLite
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// A byte range that a client requests.
enum SoakRange {
  case bounded(ClosedRange<Int>)
  case open(Int)
  case suffix(Int)

  /// Returns a random range that a resource of at least `length` bytes satisfies.
  static func random(_ length: Int, _ generator: inout SplitMix) -> SoakRange {
    let start = Int.random(in: 0..<length, using: &generator)
    return switch Int.random(in: 0..<3, using: &generator) {
    case 0: .bounded(start...Int.random(in: start..<length + 1_000, using: &generator))
    case 1: .open(start)
    default: .suffix(start + 1)
    }
  }

  /// The value of `Range`.
  var field: String {
    switch self {
    case .bounded(let range): "bytes=\(range.lowerBound)-\(range.upperBound)"
    case .open(let start): "bytes=\(start)-"
    case .suffix(let count): "bytes=-\(count)"
    }
  }

  /// Returns the bytes that the range selects of a body.
  func bytes(of length: Int) -> Range<Int> {
    switch self {
    case .bounded(let range): range.lowerBound..<min(range.upperBound + 1, length)
    case .open(let start): start..<length
    case .suffix(let count): max(0, length - count)..<length
    }
  }
}

extension VersionedResource {
  /// Whether the rest of a stored part may not be available: the resource has changed since its version, or the origin has
  /// claimed a length that it does not have.
  func lacksRest(_ head: HTTPResponse, _ language: String?, _ versions: SharedVersions) -> Bool {
    guard let version = version(head, language) else { return false }
    let claimed = length(version) + DeliveryFaults.excess
    return version < versions.version(number) || head.headerFields[.contentRange]?.hasSuffix("/\(claimed)") == true
      || head.headerFields[.contentLength] == "\(claimed)"
  }
}

/// A successful response of a versioned resource, and its bytes.
struct SoakResponse {
  var head: HTTPResponse
  var data: Data
  /// The source, for the report of a failure.
  var source: String
  var isStale = false
  /// Whether the response was used as fresh, and not forwarded from the origin or used because of an error.
  var isFresh = false

  /// Checks the version against the purges and every byte against the version.
  ///
  /// - Returns: The version.
  @discardableResult
  func check(
    _ resource: VersionedResource, _ language: String?, _ range: SoakRange?, _ purges: CompletedPurges,
    _ minimum: CompletedPurges.Minimum
  ) throws -> UInt64 {
    let language = resource.varies ? language : nil
    guard let version = resource.version(head, language) else {
      throw FailedCheck("\(resource.url): the response of another resource, \(head) with \(data.count) bytes, from \(source)")
    }
    let body = resource.body(version, language)
    if head.status == .partialContent {
      guard let range else { throw FailedCheck("\(resource.url): 206 to a request without a range, from \(source)") }
      let bytes = range.bytes(of: body.count)
      let expected = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/"
      let stated = head.headerFields[.contentRange] ?? "none"
      // A cache that stores the part of a response that has arrived knows only the length that the origin has claimed.
      try require(
        [0, DeliveryFaults.excess].contains { stated == expected + "\(body.count + $0)" },
        "\(resource.url): Content-Range '\(stated)' for \(range.field) of version \(version), from \(source)")
      try require(
        data == body[bytes], "\(resource.url): \(data.count) wrong bytes for \(range.field) of version \(version), from \(source)"
      )
    } else {
      try require(data == body, "\(resource.url): \(data.count) wrong bytes for version \(version), from \(source)")
    }
    do {
      try purges.check(version, of: resource, minimum, isStale: isStale)
      if isFresh { try purges.checkFreshness(head, of: resource, minimum) }
    } catch {
      let status = head.headerFields[fields: .cacheStatusOfTrials].map(\.value).joined(separator: ", ")
      throw FailedCheck("\(error), from \(source), with Cache-Status '\(status)'\(isStale ? ", stale" : "")")
    }
    return version
  }
}

extension HTTPField.Name {
  /// `Cache-Status` (RFC 9211). The fallback only satisfies the type.
  static let cacheStatusOfTrials = HTTPField.Name("Cache-Status") ?? .cacheControl

  /// The uptime in nanoseconds at which the origin sent the response.
  static let sentAt = HTTPField.Name("X-Sent-At") ?? .date
}

/// A downloader that sends the requests for the host of the versioned resources to an origin on the loopback interface.
struct SoakDownloader: Downloader {
  let id = ComponentID.unique(SoakDownloader.self)
  let engine: any Downloader
  let port: Int

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var request = request
    request.head.scheme = "http"
    request.head.authority = "127.0.0.1:\(port)"
    var response = try await engine.download(request)
    response.head.headerFields = response.head.headerFields.endToEnd()
    return response
  }
}
#endif
