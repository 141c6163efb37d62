public import HTTPTypes

/// What is sent of a stored answer: a head, and which of the stored bytes.
public struct StoredReply: Hashable, Sendable {
  /// The bytes that follow the head.
  public enum Content: Hashable, Sendable {
    /// None: the request is a HEAD, or the head says all (304, 412, 416).
    case none
    /// All that are stored.
    case whole
    /// These bytes of the stored body, counted from its first one.
    case range(Range<Int64>)
  }

  /// Status and fields, `Age` among them; nothing that is about one connection.
  public var head: HTTPResponse
  /// The bytes that follow the head.
  public var content: Content

  /// A reply of its parts.
  public init(head: HTTPResponse, content: Content) {
    self.head = head
    self.content = content
  }
}
