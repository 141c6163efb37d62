#if Origin
internal import NIOCore
public import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The content of a path and its delivery.
///
/// The origin creates the response that the request calls for: 304 if a condition holds, 206 for a range, the head alone for
/// HEAD, 401 without the credential. It adds `Date`, `Content-Length`, `ETag` and similar fields unless `fields` contains them.
public struct OriginResponse: Sendable {
  /// The status, 200 by default. Conditions and ranges are evaluated only for a 200.
  public var status: HTTPResponse.Status
  /// The value of `Content-Type`, or `nil` for none.
  public var contentType: String?
  /// The value of `ETag`, or `nil` for none.
  public var etag: OriginETag?
  /// The value of `Last-Modified`, sent in whole seconds, or `nil` for none.
  public var lastModified: Date?
  /// Additional header fields, in order, which may be repeated. They replace the origin's own fields of the same name.
  public var fields: HTTPFields
  /// Whether a single byte range is supported (RFC 9110 §14) and `Accept-Ranges: bytes` is sent.
  public var acceptsRanges: Bool
  /// Whether `If-None-Match` and `If-Modified-Since` are evaluated (RFC 9110 §13). If not, the origin always sends the body.
  public var honorsConditions: Bool
  /// The credential that a request must have. Otherwise the response is a 401.
  public var credential: OriginCredential?
  /// The timing, framing and faults of the response.
  public var delivery: OriginDelivery

  var content: ByteBuffer

  /// Creates a response with a body of bytes, which are copied once.
  public init(
    _ body: Data = Data(), contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil,
    fields: HTTPFields = [:], status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, honorsConditions: Bool = true,
    credential: OriginCredential? = nil, delivery: OriginDelivery = OriginDelivery()
  ) {
    content = ByteBuffer(bytes: body)
    (self.contentType, self.etag, self.lastModified, self.fields) = (contentType, etag, lastModified, fields)
    (self.status, self.acceptsRanges, self.honorsConditions) = (status, acceptsRanges, honorsConditions)
    (self.credential, self.delivery) = (credential, delivery)
  }

  /// Creates a response with a short text, such as an error message.
  public init(
    text: String, status: HTTPResponse.Status = .ok, etag: OriginETag? = nil, fields: HTTPFields = [:],
    delivery: OriginDelivery = OriginDelivery()
  ) {
    self.init(
      Data(text.utf8), contentType: "text/plain; charset=utf-8", etag: etag, fields: fields, status: status, delivery: delivery)
  }

  /// Creates a redirect to an absolute or relative reference, which is sent unchanged.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    Self(fields: [.location: location], status: status)
  }

  /// The bytes of the body. Reading and setting copy them: O(n).
  public var body: Data {
    get { Data(content.readableBytesView) }
    set { content = ByteBuffer(bytes: newValue) }
  }
}
#endif
