/// The key of a cache entry: a resource, one of its variants, and the transform that made the value.
///
/// The hash is computed once, at initialization, and `==` compares it first. Keys are compared by their UTF-8 bytes. The composed
/// and the decomposed form of "é" are therefore different keys, although the strings are equal.
public struct CacheKey: Hashable, Sendable {
  /// The parts that most keys do not have. They share one object, so copying a key touches only one reference count.
  @usableFromInline
  struct Detail: Sendable {
    @usableFromInline let variant: String
    @usableFromInline let transform: String
  }

  /// The partition and the effective URI, or the caller's own key; see ``ResourceID``.
  public let resource: String
  @usableFromInline let detail: Detail?
  @usableFromInline let hash: Int

  /// Creates a key from its three parts. Each may have any characters and any length.
  public init(resource: String, variant: String = "", transform: String = "") {
    self.init(resource, hash: Int(truncatingIfNeeded: KeyHash.ofProcess(resource)), variant, transform)
  }

  /// Creates a key with a hash other than the process's own.
  ///
  /// It is for tests: shards and eviction policies depend on hashes, and fixed coefficients make them repeatable.
  package init(resource: String, hashedBy hash: KeyHash) {
    self.init(resource, hash: Int(truncatingIfNeeded: hash(resource)), "", "")
  }

  private init(_ resource: String, hash: Int, _ variant: String, _ transform: String) {
    self.resource = resource
    if variant.isEmpty, transform.isEmpty {
      detail = nil
      self.hash = hash
    } else {
      detail = Detail(variant: variant, transform: transform)
      self.hash = Int(truncatingIfNeeded: KeyHash.ofProcess(digest: UInt64(truncatingIfNeeded: hash), variant, transform))
    }
  }

  /// The normalized selecting fields (RFC 9111 §4.1), or an empty string if the response has no `Vary` field.
  public var variant: String { detail?.variant ?? "" }

  /// The ``ResourceTransform/id`` of the transform that made the value, or an empty string for the original bytes.
  public var transform: String { detail?.transform ?? "" }

  /// The hash, for a store's own tables. It differs between processes.
  @inlinable package var fingerprint: Int { hash }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  // The hash is computed from bytes. It decides for `String`'s `==`, which compares canonically, except with a probability of
  // 2⁻⁶⁴.
  @inlinable
  public static func == (a: Self, b: Self) -> Bool {
    guard a.hash == b.hash, a.resource == b.resource else { return false }
    switch (a.detail, b.detail) {
    case (nil, nil): return true
    case (let mine?, let other?): return mine.variant == other.variant && mine.transform == other.transform
    default: return false
    }
  }

  /// Returns the key of the same resource and variant with another transform. An empty `transform` means the original.
  public func with(transform: String) -> CacheKey {
    guard let detail else {
      // The resource's hash has been computed already.
      return transform.isEmpty ? self : CacheKey(resource, hash: hash, "", transform)
    }
    return transform.isEmpty && detail.transform.isEmpty
      ? self : CacheKey(resource: resource, variant: detail.variant, transform: transform)
  }
}

extension CacheKey: CustomStringConvertible {
  /// The resource, followed by the variant and the transform if the key has them.
  public var description: String {
    var text = ResourceID.readable(resource)
    if !variant.isEmpty { text += " [\(variant)]" }
    if !transform.isEmpty { text += " as \(transform)" }
    return text
  }
}
