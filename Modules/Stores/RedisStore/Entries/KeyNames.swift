#if Redis
internal import CacheCore

/// The part of a key's name that decides which server of a cluster has it: 32 hexadecimal digits.
struct HashTag: Hashable, Sendable {
  let bytes: [UInt8]

  /// Creates the tag of a text. Every machine must create the same one, so the key of the digest is fixed. Two texts with equal
  /// tags do not harm each other, because each entry contains its whole key.
  init(_ text: String) {
    let (high, low) = SipHash.digest(text, key: SipHash.Key(first: 0x4574_6167_6572_6531, second: 0x5265_6469_7353_746F))
    bytes = Hexadecimal.digits(of: high) + Hexadecimal.digits(of: low)
  }

  init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.count else { return nil }
    self.bytes = Array(bytes)
  }

  static let count = 32
}

/// The names of the keys and fields in the server, in version 1 of the schema.
///
/// | name | type | content |
/// | --- | --- | --- |
/// | `NAMESPACE:1:{TAG}v` | hash | the variants of a resource without a transform |
/// | `NAMESPACE:1:{TAG}t` | hash | the transformed values of a resource |
/// | `NAMESPACE:1:{TAG}bID` | hash | the chunks of one body, each with its number as the field |
/// | `NAMESPACE:1:{TAG}lSELECTION` | string | the state and the token of a lease |
/// | `NAMESPACE:1:{TAG}f` | hash | the members of the fleet and the number of the last message |
/// | `NAMESPACE:1:{TAG}m` | stream | the latest messages of the fleet |
/// | `NAMESPACE:1:{TAG}g` | sorted set | the digests of the resources with one cache tag, by the time of expiry |
struct KeyNames: Sendable {
  private let prefix: [UInt8]

  init(namespace: String) { prefix = Array("\(namespace):1:{".utf8) }

  private func name(_ tag: HashTag, _ suffix: String) -> [UInt8] {
    var name: [UInt8] = []
    name.reserveCapacity(prefix.count + HashTag.count + 1 + suffix.utf8.count)
    name += prefix
    name += tag.bytes
    name.append(UInt8(ascii: "}"))
    name += suffix.utf8
    return name
  }

  /// The key with the entries of a resource.
  func entries(_ tag: HashTag, isTransform: Bool) -> [UInt8] { name(tag, isTransform ? "t" : "v") }

  /// The key of a body.
  func body(_ tag: HashTag, _ id: String) -> [UInt8] { name(tag, "b" + id) }

  /// The first part of the keys of all bodies of a resource, which scripts complete with an identifier.
  func bodies(_ tag: HashTag) -> [UInt8] { name(tag, "b") }

  /// The key of a lease.
  func lease(_ resource: String, _ selection: String) -> [UInt8] {
    let digest = SipHash.digest(
      selection, key: SipHash.Key(first: 0x4574_6167_6572_6531, second: 0x4C65_6173_6573_2121))
    return name(HashTag(resource), "l" + Hexadecimal.text(digest.0))
  }

  /// The keys of the fleet: its members, and its messages.
  var fleet: (tag: HashTag, keys: [[UInt8]]) {
    let tag = HashTag("fleet")
    return (tag, [name(tag, "f"), name(tag, "m")])
  }

  /// The key of the index of a cache tag.
  func index(of cacheTag: String) -> (HashTag, [UInt8]) {
    let tag = HashTag(cacheTag)
    return (tag, name(tag, "g"))
  }

  /// The pattern for `SCAN` that matches keys with one of these suffixes.
  func pattern(_ suffix: String) -> String {
    String(decoding: prefix, as: UTF8.self) + String(repeating: "?", count: HashTag.count) + "}" + suffix
  }

  /// Returns the hash tag in the name of a key.
  func tag(of name: some Collection<UInt8>) -> HashTag? {
    guard name.starts(with: prefix) else { return nil }
    return HashTag(name.dropFirst(prefix.count).prefix(HashTag.count))
  }

  /// Whether a key with a hash tag is a body.
  func isBody(_ name: some Collection<UInt8>) -> Bool {
    name.dropFirst(prefix.count + HashTag.count + 1).first == UInt8(ascii: "b")
  }

  /// The field of an entry in the key of its resource.
  static func field(_ key: CacheKey) -> [UInt8] {
    if key.variant.isEmpty, key.transform.isEmpty { return plainField }
    let (high, low) = SipHash.digest(
      key.transform.isEmpty ? key.variant : "\(key.variant.utf8.count) \(key.variant)\(key.transform)",
      key: SipHash.Key(first: 0x4574_6167_6572_6531, second: 0x4669_656C_6473_2121))
    return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
  }

  private static let plainField = Array("-".utf8)
}
#endif
