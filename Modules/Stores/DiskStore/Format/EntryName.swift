internal import CacheCore

/// The location of an entry's file in the folder `entries`. The key's contents reach the path only through a keyed hash.
///
/// ```
/// 3f/3f0c….e            the resource without variant, without a transform
/// 3f/3f0c….d/91aa….e    another variant without a transform
/// 3f/3f0c….d/5be2….f    a transformed value
/// ```
struct EntryName: Hashable, Sendable {
  /// The part of a name for any entry except the plain one.
  struct Member: Hashable, Sendable {
    /// The digest of variant and transform.
    let digest: NameDigest
    let isTransform: Bool

    static let originalSuffix: UInt8 = 0x65  // e
    static let transformSuffix: UInt8 = 0x66  // f
  }

  static let folderSuffix: UInt8 = 0x64  // d

  let resource: NameDigest
  /// The member part, or `nil` for the plain entry, which has no variant and no transform.
  let member: Member?

  init(resource: NameDigest, member: Member?) { (self.resource, self.member) = (resource, member) }

  init(_ key: CacheKey, hashKey: SipHash.Key) {
    resource = NameDigest(SipHash.digest(key.resource, key: hashKey))
    guard !key.variant.isEmpty || !key.transform.isEmpty else {
      member = nil
      return
    }
    var writer = ByteWriter()
    writer.text(key.variant)
    writer.text(key.transform)
    member = Member(digest: NameDigest(SipHash.digest(writer.bytes, key: hashKey)), isTransform: !key.transform.isEmpty)
  }

  /// Creates the name of a file found in a shard, or returns `nil` if it is not an entry's.
  init?(shard: some Collection<UInt8>, file: some Collection<UInt8>) {
    guard let (digest, suffix) = NameDigest.parse(file), suffix == Member.originalSuffix, file.starts(with: shard) else {
      return nil
    }
    resource = digest
    member = nil
  }

  /// Creates the name of a file found in a resource's folder, or returns `nil` if it is not an entry's.
  init?(resource: NameDigest, member: some Collection<UInt8>) {
    guard let (digest, suffix) = NameDigest.parse(member), suffix == Member.originalSuffix || suffix == Member.transformSuffix
    else {
      return nil
    }
    self.resource = resource
    self.member = Member(digest: digest, isTransform: suffix == Member.transformSuffix)
  }

  /// Returns the resource of a folder, or `nil` if it is not a resource's folder.
  static func resource(ofFolder name: some Collection<UInt8>) -> NameDigest? {
    guard let (digest, suffix) = NameDigest.parse(name), suffix == folderSuffix else { return nil }
    return digest
  }

  static func isShard(_ name: some Collection<UInt8>) -> Bool {
    name.count == 2 && name.allSatisfy { NameDigest.value($0) != nil }
  }

  /// The number of the shard, from 0 to 255.
  var shardNumber: UInt8 { UInt8(resource.high >> 56) }

  /// A part of the path.
  enum Part {
    /// One of the 256 folders.
    case shard
    /// The folder of all entries of the resource except the plain one.
    case resourceFolder
    case file
  }

  /// Returns the path below `folder`, which must be empty or end with a slash.
  func path(below folder: String, _ part: Part = .file) -> String { withPath(below: folder, part) { String(cString: $0) } }

  /// Calls `body` with the path, without creating a string, because every lookup opens a file.
  func withPath<Result, Failure: Error>(
    below folder: String, _ part: Part = .file, _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let length = folder.utf8.count
    return try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length + 75) { buffer throws(Failure) in
      guard let start = buffer.baseAddress else { preconditionFailure("a buffer of some length has a start") }
      _ = UnsafeMutableBufferPointer(start: start, count: length).initialize(from: folder.utf8)
      write(part, to: start + length).pointee = 0
      return try start.withMemoryRebound(to: CChar.self, capacity: length + 75) { path throws(Failure) in try body(path) }
    }
  }

  /// Calls `body` with the name of the file in its folder, or of the resource's folder in its shard.
  func withLastComponent<Value>(of part: Part, _ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withPath(below: "", part) { path in body(path + (part == .file && member != nil ? 38 : 3)) }
  }

  private func write(_ part: Part, to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    var end = resource.writeShard(to: start)
    func add(_ character: UInt8) {
      end.pointee = character
      end += 1
    }
    if part == .shard { return end }
    add(0x2F)
    end = resource.write(to: end)
    add(0x2E)
    guard member != nil || part == .resourceFolder else {
      add(Member.originalSuffix)
      return end
    }
    add(Self.folderSuffix)
    guard let member, part == .file else { return end }
    add(0x2F)
    end = member.digest.write(to: end)
    add(0x2E)
    add(member.isTransform ? Member.transformSuffix : Member.originalSuffix)
    return end
  }

  /// The lane in which the executor runs all operations on this resource.
  var lane: UInt64 { resource.high >> 32 }
}

/// A 16-byte digest, written in file names as 32 lowercase hexadecimal digits.
struct NameDigest: Hashable, Comparable, Sendable {
  /// The two halves, in the order of the digits.
  var high, low: UInt64

  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Creates a digest from SipHash's result.
  init(_ digest: (UInt64, UInt64)) { self.init(high: digest.0.byteSwapped, low: digest.1.byteSwapped) }

  static func < (one: NameDigest, other: NameDigest) -> Bool { (one.high, one.low) < (other.high, other.low) }

  /// Writes the 32 digits and returns the position behind them.
  func write(to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    let place = UnsafeMutableRawPointer(start)
    for (part, word) in [high >> 32, high, low >> 32, low].enumerated() {
      place.storeBytes(of: Self.digits(UInt32(truncatingIfNeeded: word)).littleEndian, toByteOffset: 8 * part, as: UInt64.self)
    }
    return start + 32
  }

  /// Writes the first two digits and returns the position behind them.
  func writeShard(to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    let digits = Self.digits(UInt32(high >> 32))
    (start[0], start[1]) = (UInt8(truncatingIfNeeded: digits), UInt8(truncatingIfNeeded: digits >> 8))
    return start + 2
  }

  /// Returns the eight digits of a number in one word, the first in the lowest byte. Every call of the store builds a path with
  /// 32 of them, so they are not converted one at a time.
  private static func digits(_ number: UInt32) -> UInt64 {
    var word = UInt64(number.byteSwapped)
    // Spread four bytes into eight half bytes, the upper half of each byte first.
    word = (word | word << 16) & 0x0000_FFFF_0000_FFFF
    word = (word | word << 8) & 0x00FF_00FF_00FF_00FF
    word = (word >> 4 | word << 8) & 0x0F0F_0F0F_0F0F_0F0F
    // A one in each byte above nine, which becomes a letter.
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return word + 0x3030_3030_3030_3030 + letters * 0x27
  }
  // The digest is a keyed hash already, so collisions cannot be chosen. Shards and lanes use the upper half.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }

  /// Parses a file name of the form `<32 hex>.<letter>`.
  static func parse(_ name: some Collection<UInt8>) -> (NameDigest, suffix: UInt8)? {
    guard name.count == 34 else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    var suffix: UInt8 = 0
    for (place, byte) in name.enumerated() {
      switch place {
      case 0..<32:
        guard let digit = value(byte) else { return nil }
        if place < 16 { words.0 = words.0 << 4 | digit } else { words.1 = words.1 << 4 | digit }
      case 32: guard byte == 0x2E else { return nil }
      default: suffix = byte
      }
    }
    return (NameDigest(high: words.0, low: words.1), suffix)
  }

  /// Returns the value of a hexadecimal digit.
  static func value(_ byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x61...0x66: UInt64(byte - 0x61 + 10)
    default: nil
    }
  }
}
