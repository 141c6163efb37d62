#if Origin
  internal import NIOCore
  public import HTTPTypes
  #if canImport(FoundationEssentials)
    public import FoundationEssentials
  #else
    public import Foundation
  #endif

  /// What the origin has at a path, and how it is sent.
  ///
  /// The origin turns it into the response that the request asks for: 304 to a condition that holds, 206 to a range, the head
  /// alone to HEAD, 401 without the credential. `Date`, `Content-Length`, `ETag` and the like are added unless `fields` has them.
  public struct OriginAnswer: Sendable {
    /// 200 by default. Conditions and ranges are looked at for 200 only.
    public var status: HTTPResponse.Status
    /// `Content-Type`; none when nil.
    public var contentType: String?
    /// `ETag`; none when nil.
    public var etag: OriginETag?
    /// `Last-Modified`, sent in whole seconds; none when nil.
    public var lastModified: Date?
    /// Further header fields, in order, repeated ones too. A field that stands here replaces the one the origin would add.
    public var fields: HTTPFields
    /// Whether a single byte range is honoured (RFC 9110 §14), and `Accept-Ranges: bytes` sent.
    public var acceptsRanges: Bool
    /// Whether `If-None-Match` and `If-Modified-Since` are honoured (RFC 9110 §13). An origin that ignores them always sends the
    /// body.
    public var honoursConditions: Bool
    /// What the request must bring, else the answer is 401.
    public var credential: OriginCredential?
    /// When and how the answer travels.
    public var delivery: OriginDelivery

    var content: ByteBuffer

    /// An answer with a body of bytes. The bytes are copied once, here.
    public init(
      _ body: Data = Data(), contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil,
      fields: HTTPFields = [:], status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, honoursConditions: Bool = true,
      credential: OriginCredential? = nil, delivery: OriginDelivery = OriginDelivery()
    ) {
      content = ByteBuffer(bytes: body)
      (self.contentType, self.etag, self.lastModified, self.fields) = (contentType, etag, lastModified, fields)
      (self.status, self.acceptsRanges, self.honoursConditions) = (status, acceptsRanges, honoursConditions)
      (self.credential, self.delivery) = (credential, delivery)
    }

    /// A small text, such as an error's.
    public init(
      text: String, status: HTTPResponse.Status = .ok, etag: OriginETag? = nil, fields: HTTPFields = [:],
      delivery: OriginDelivery = OriginDelivery()
    ) {
      self.init(
        Data(text.utf8), contentType: "text/plain; charset=utf-8", etag: etag, fields: fields, status: status, delivery: delivery)
    }

    /// A redirect to an absolute or relative reference, sent as it stands.
    public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
      Self(fields: [.location: location], status: status)
    }

    /// The bytes. Reading and setting copies them: O(n).
    public var body: Data {
      get { Data(content.readableBytesView) }
      set { content = ByteBuffer(bytes: newValue) }
    }
  }
#endif
