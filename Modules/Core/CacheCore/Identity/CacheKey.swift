/// The key of a cache entry: a resource, one of its variants, and the transform that made the value.
///
/// ```swift
/// let key = CacheKey(resource: "https://example.com/logo.svg")
/// if let entry = try await store.entry(for: key) { print(entry.metadata.response.status) }
/// ```
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

/// A keyed universal hash of a key's text, faster than a general-purpose hash.
///
/// The length and the 64-bit words of the text are multiplied by random 128-bit coefficients, and the upper half of the sum is
/// the result. This is multilinear hashing (Dietzfelbinger, STACS '96; Lemire and Kaser, "Strongly universal string hashing is
/// fast", 2014). Any two different texts of up to 256 bytes collide with a probability of 2⁻⁶⁴ over the coefficients of the
/// process. Longer texts use the standard library's `Hasher` (SipHash-1-3).
///
/// An attacker therefore cannot prepare keys that collide in a table. It is not a digest: hashes reveal the coefficients, so they
/// must not leave the process.
package struct KeyHash: Sendable {
  // Proof of `@unchecked Sendable`: the memory is written only in `init`. It is not freed, because there is one instance per
  // process.
  private struct Coefficients: @unchecked Sendable {
    let values: UnsafePointer<UInt128>
  }

  /// The hash of this process.
  package static let ofProcess = {
    var generator = SystemRandomNumberGenerator()
    return KeyHash(using: &generator)
  }()

  private static let longest = 256
  private let coefficients: Coefficients

  /// Creates a hash with its own coefficients, which stay allocated while the process runs.
  package init(using generator: inout some RandomNumberGenerator) {
    // Two for the start and the length, and one for each word.
    let count = 2 + Self.longest / 8
    let values = UnsafeMutablePointer<UInt128>.allocate(capacity: count)
    for index in 0..<count {
      (values + index).initialize(
        to: UInt128(truncatingIfNeeded: generator.next()) << 64 | UInt128(truncatingIfNeeded: generator.next()))
    }
    coefficients = Coefficients(values: values)
  }

  /// Returns the hash of the text's UTF-8 bytes.
  package func callAsFunction(_ text: String) -> UInt64 {
    if let hash = text.utf8.withContiguousStorageIfAvailable({ self(UnsafeRawBufferPointer($0)) }) { return hash }
    var copy = text
    return copy.withUTF8 { self(UnsafeRawBufferPointer($0)) }
  }

  /// Returns the hash of three texts as the hash of their hashes, so their boundaries count. The first hash is already computed.
  package func callAsFunction(digest first: UInt64, _ second: String, _ third: String) -> UInt64 {
    withUnsafeBytes(of: (first, self(second), self(third))) { self($0) }
  }

  /// Returns the hash of bytes.
  package func callAsFunction(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    guard bytes.count <= Self.longest else {
      var hasher = Hasher()
      hasher.combine(bytes: bytes)
      return UInt64(bitPattern: Int64(hasher.finalize()))
    }
    let a = coefficients.values
    let count = bytes.count
    var sum = a[0] &+ a[1] &* UInt128(truncatingIfNeeded: count)
    guard count >= 8, let start = bytes.baseAddress else { return Self.mixed(sum &+ a[2] &* UInt128(Self.word(bytes))) }
    var next = a + 2
    var offset = 0
    while offset + 8 < count {
      sum &+= next.pointee &* UInt128(start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
      next += 1
    }
    // The last word may overlap the one before it.
    return Self.mixed(sum &+ next.pointee &* UInt128(start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)))
  }

  /// Packs fewer than eight bytes into one word. Different bytes of the same count give different words.
  private static func word(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    let count = bytes.count
    if count >= 4 {
      let (low, high) = (bytes.loadUnaligned(as: UInt32.self), bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
      return UInt64(low) | UInt64(high) << 32
    }
    guard count > 0 else { return 0 }
    return UInt64(bytes[0]) | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1]) << 16
  }

  /// Returns the upper half with its bits mixed. Without mixing, texts that differ by a fixed step would have hashes that do,
  /// too, and a table that uses only some of the bits would suffer.
  private static func mixed(_ sum: UInt128) -> UInt64 {
    var hash = UInt64(truncatingIfNeeded: sum >> 64)
    hash = (hash ^ hash >> 32) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ hash >> 32
  }
}
