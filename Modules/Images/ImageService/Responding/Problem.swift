#if Service
package import CacheCore
internal import HTTPTypes
internal import ImageCodecs
internal import ImageWorkers

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The response to a request that fails: a status, and one line of `application/problem+json` (RFC 9457).
///
/// The text names no address and no path of the server, because any client can read it. The error with its reason is in
/// ``ImageResponse/error``.
struct Problem {
  private struct Document: Encodable {
    var status: Int
    var title: String
    var code: String
    var detail: String
  }

  let status: HTTPResponse.Status
  private let code: String
  private let detail: String
  private var fields = HTTPFields()

  init(_ status: HTTPResponse.Status, _ code: String, _ detail: String) {
    (self.status, self.code, self.detail) = (status, code, detail)
  }

  /// Creates the response to an error of the service or of a load.
  init(_ error: CacheError) {
    switch error.code {
    case .invalidSignature: self.init(.forbidden, "invalidSignature", error.reason)
    case .invalidOperation, .invalidConfiguration: self.init(.badRequest, "invalidOperation", error.reason)
    case .invalidURL: self.init(.badRequest, "invalidSource", error.reason)
    case .unsupportedScheme: self.init(.badRequest, "invalidSource", "the scheme of the source is not http or https")
    case .refused, .addressRefused, .redirectRefused:
      self.init(.forbidden, "sourceRefused", "the source, or a redirect to another one, is not allowed")
    case .unacceptableStatus where error.status == 404 || error.status == 410:
      self.init(error.status == 410 ? .gone : .notFound, "sourceNotFound", "the source does not exist")
    case .retryLater:
      let delay = Int64(((error.retryAfter ?? .zero) / .seconds(1)).rounded(.up))
      self.init(.serviceUnavailable, "sourceUnreachable", "the source asked for a pause", retryAfter: max(delay, 1))
    case .unacceptableStatus:
      self.init(.badGateway, "sourceFailed", "the source responded with the status \(error.status ?? 0)")
    case .timedOut: self.init(.gatewayTimeout, "timedOut", "no result within the time limit", retryAfter: 5)
    case .revalidationFailed:
      self.init(.gatewayTimeout, "sourceUnreachable", "the stored image must be confirmed, and the source cannot be reached")
    case .bodyTooLarge: self.init(.unprocessableContent, "sourceTooLarge", "the source has too many bytes")
    case .imageLimitExceeded: self.init(.unprocessableContent, "imageLimitExceeded", error.reason)
    case .decodingFailed: self.init(.unprocessableContent, "notAnImage", error.reason)
    case .unsupported: self.init(.unprocessableContent, "unsupportedFormat", error.reason)
    case .codecCrashed:
      self.init(.unprocessableContent, "codecCrashed", "the codec of the image crashed", refusedFor: error.retryAfter)
    case .codecOutOfMemory:
      self.init(.unprocessableContent, "codecOutOfMemory", "the image needs too much memory", refusedFor: error.retryAfter)
    case .codecTimedOut:
      self.init(.gatewayTimeout, "codecTimedOut", "the image takes too long to make", refusedFor: error.retryAfter)
    case .encodingFailed: self.init(.internalServerError, "encodingFailed", error.reason)
    case .overloaded: self.init(.serviceUnavailable, "overloaded", "too many images are being made or sent", retryAfter: 1)
    case .closed, .cancelled: self.init(.serviceUnavailable, "closing", "the service is shutting down", retryAfter: 5)
    default: self.init(.badGateway, "sourceUnreachable", "no valid response from the source")
    }
  }

  init(_ status: HTTPResponse.Status, _ code: String, _ detail: String, retryAfter seconds: Int64) {
    self.init(status, code, detail)
    fields[.retryAfter] = "\(seconds)"
  }

  private init(_ status: HTTPResponse.Status, _ code: String, _ detail: String, refusedFor time: Duration?) {
    self.init(status, code, detail)
    if let time { fields[.retryAfter] = "\(max(1, time.components.seconds + 1))" }
  }

  static func tooManyRequests(retryAfter seconds: Int64) -> Problem {
    Problem(.tooManyRequests, "tooManyRequests", "the client sends too many requests", retryAfter: seconds)
  }

  static let methodNotAllowed: Problem = {
    var problem = Problem(.methodNotAllowed, "methodNotAllowed", "only GET and HEAD are allowed")
    problem.fields[.allow] = "GET, HEAD"
    return problem
  }()

  private var body: Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let document = Document(status: status.code, title: status.reasonPhrase, code: code, detail: detail)
    return ((try? encoder.encode(document)) ?? Data()) + Data("\n".utf8)
  }

  /// The response with its fields and its body.
  var response: (head: HTTPResponse, body: Data) {
    var fields = fields
    let body = body
    fields[.contentType] = "application/problem+json"
    fields[.contentLength] = "\(body.count)"
    fields[.cacheControl] = "no-store"
    fields.forbidScripts()
    return (HTTPResponse(status: status, headerFields: fields), body)
  }

  var download: DownloadResponse {
    let (head, body) = response
    return DownloadResponse(head: head, body: ResourceBody(body))
  }
}

extension HTTPFields {
  private static let scriptLimits = [
    (HTTPField.Name("X-Content-Type-Options"), "nosniff"),
    (HTTPField.Name("Content-Security-Policy"), "default-src 'none'; sandbox"),
  ]

  /// Adds the fields that keep a browser from running scripts of an image, and from guessing its type.
  mutating func forbidScripts() {
    for case (let name?, let value) in Self.scriptLimits { self[name] = value }
  }
}

extension CacheError.Code {
  /// The signature of a URL is missing, does not match, or has expired.
  public static let invalidSignature = Self(rawValue: "invalidSignature")
}

/// The error of a request, which one part of the request's handling notes for another.
package final class NotedFailure: Sendable {
  private let error = Lock<CacheError?>(nil)

  package init() {}

  package func note(_ error: CacheError) { self.error.withLock { $0 = error } }

  package var value: CacheError? { error.withLock { $0 } }
}
#endif
