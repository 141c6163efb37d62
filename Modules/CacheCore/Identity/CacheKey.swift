/// What an entry is filed under: a resource, one of its variants, and the form of the value.
///
/// The hash is made once, at initialisation, and `==` compares it first: a look-up with a ready key never hashes a string. Keys go by the bytes of
/// their texts, in memory as on disk: "é" as one character and as two are different keys, though equal as strings.
public struct CacheKey: Hashable, Sendable {
  /// What most keys have nothing of: so that to copy one touches one reference count, and calls nobody for the others.
  @usableFromInline
  struct Detail: Sendable {
    @usableFromInline let variant: String
    @usableFromInline let form: String
  }

  /// Partition and effective URI, or the caller's own key; see ``ResourceID``.
  public let resource: String
  @usableFromInline let detail: Detail?
  @usableFromInline let hash: Int

  /// A key of its three parts. Any characters, any lengths.
  public init(resource: String, variant: String = "", form: String = "") {
    self.init(resource, hash: Int(truncatingIfNeeded: KeyHash.ofProcess(resource)), variant, form)
  }

  /// A key with another hash than the process's own.
  ///
  /// For tests: shards and eviction policies go by hashes, and with fixed coefficients they do the same in each run.
  package init(resource: String, hashedBy hash: KeyHash) {
    self.init(resource, hash: Int(truncatingIfNeeded: hash(resource)), "", "")
  }

  private init(_ resource: String, hash: Int, _ variant: String, _ form: String) {
    self.resource = resource
    if variant.isEmpty, form.isEmpty {
      detail = nil
      self.hash = hash
    } else {
      detail = Detail(variant: variant, form: form)
      self.hash = Int(truncatingIfNeeded: KeyHash.ofProcess(digest: UInt64(truncatingIfNeeded: hash), variant, form))
    }
  }

  /// Empty until an answer carries `Vary`; then the normalised selecting fields (RFC 9111 §4.1).
  public var variant: String { detail?.variant ?? "" }

  /// Empty for the origin's bytes; else the decoder, the processors and their parameters.
  public var form: String { detail?.form ?? "" }

  /// The hash, for tables of a store's own; another one in each process.
  @inlinable package var fingerprint: Int { hash }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  // The hash goes by bytes, so that `String`'s `==`, which does not, has no say in the matter but for a chance of 2⁻⁶⁴.
  @inlinable
  public static func == (a: Self, b: Self) -> Bool {
    guard a.hash == b.hash, a.resource == b.resource else { return false }
    switch (a.detail, b.detail) {
    case (nil, nil): return true
    case (let mine?, let other?): return mine.variant == other.variant && mine.form == other.form
    default: return false
    }
  }

  /// The same resource and variant in another form.
  public func with(form: String) -> CacheKey {
    guard let detail else {
      // The resource's own hash is there already.
      return form.isEmpty ? self : CacheKey(resource, hash: hash, "", form)
    }
    return form.isEmpty && detail.form.isEmpty ? self : CacheKey(resource: resource, variant: detail.variant, form: form)
  }
}

extension CacheKey: CustomStringConvertible {
  /// The resource, with variant and form behind it where there are any.
  public var description: String {
    var text = ResourceID.readable(resource)
    if !variant.isEmpty { text += " [\(variant)]" }
    if !form.isEmpty { text += " as \(form)" }
    return text
  }
}
