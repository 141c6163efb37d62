public import HTTPTypes

/// Stored parts of one representation. With the bytes that are missing, they satisfy a request (RFC 9111 §3.4).
///
/// All parts have the same strong validator and the same length of the whole. The missing bytes are requested with `If-Range`, so
/// bytes of two representations are never combined.
public struct PartCombination: Hashable, Sendable {
  /// A stored part.
  public struct Part: Hashable, Sendable {
    /// The index of the part among the stored responses.
    public var index: Int
    /// The positions of its bytes in the whole.
    public var bytes: Range<Int64>

    /// Creates a part.
    public init(_ index: Int, _ bytes: Range<Int64>) { (self.index, self.bytes) = (index, bytes) }
  }

  /// The parts, in the order of their first bytes. Parts may overlap.
  public var parts: [Part]
  /// The positions of the bytes that the request wants, at least one.
  public var wanted: Range<Int64>
  /// The metadata of the whole response, with the fields of the latest part.
  public var whole: StoredMetadata
  /// The variant under which the whole response is stored.
  public var variant: String
  /// The request for missing bytes, which has `If-Range`, and to which a `Range` is added.
  public var request: HTTPRequest
  /// Whether the origin must confirm the parts with a missing part before they are used, because they are stale.
  public var requiresValidation: Bool

  /// Creates a combination.
  public init(
    parts: [Part], wanted: Range<Int64>, whole: StoredMetadata, variant: String, request: HTTPRequest, requiresValidation: Bool
  ) {
    (self.parts, self.wanted, self.whole, self.variant) = (parts, wanted, whole, variant)
    (self.request, self.requiresValidation) = (request, requiresValidation)
  }

  /// Whether bytes that the request wants are missing.
  public var isIncomplete: Bool { wanted.firstMissing(apartFrom: parts.lazy.map(\.bytes)) != nil }
}
