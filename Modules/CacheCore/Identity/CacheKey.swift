/// What an entry is filed under: a resource, one of its variants, and the form of the value.
///
/// The hash is made once, at initialisation, and `==` compares it first: a look-up with a ready key never hashes a string.
public struct CacheKey: Hashable, Sendable {
  /// Partition and effective URI, or the caller's own key; see ``ResourceID``.
  public let resource: String
  /// Empty until an answer carries `Vary`; then the normalised selecting fields (RFC 9111 §4.1).
  public let variant: String
  /// Empty for the origin's bytes; else the decoder, the processors and their parameters.
  public let form: String
  @usableFromInline let hash: Int

  /// A key of its three parts. Any characters, any lengths.
  public init(resource: String, variant: String = "", form: String = "") {
    (self.resource, self.variant, self.form) = (resource, variant, form)
    if variant.isEmpty, form.isEmpty {
      hash = resource.hashValue
    } else {
      var hasher = Hasher()
      hasher.combine(resource)
      hasher.combine(variant)
      hasher.combine(form)
      hash = hasher.finalize()
    }
  }

  /// The hash, for tables of a store's own; another one in each process.
  @inlinable package var fingerprint: Int { hash }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  @inlinable
  public static func == (a: Self, b: Self) -> Bool {
    a.hash == b.hash && a.resource == b.resource && a.variant == b.variant && a.form == b.form
  }

  /// The same resource and variant in another form.
  public func with(form: String) -> CacheKey { CacheKey(resource: resource, variant: variant, form: form) }
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
