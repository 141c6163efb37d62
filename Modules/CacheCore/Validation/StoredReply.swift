public import HTTPTypes

/// A reply that is made from a stored response: a header, and the stored bytes that follow it.
public struct StoredReply: Hashable, Sendable {
  /// The bytes after the header.
  public enum Content: Hashable, Sendable {
    /// No bytes: the request is a HEAD, or the response has no body (304, 412, 416).
    case none
    /// All stored bytes.
    case whole
    /// A range of the stored body, counted from its first byte.
    case range(Range<Int64>)
  }

  /// The status and the fields, including `Age`, without fields that concern a single connection.
  public var head: HTTPResponse
  /// The bytes after the header.
  public var content: Content

  /// Creates a reply.
  public init(head: HTTPResponse, content: Content) {
    self.head = head
    self.content = content
  }
}
