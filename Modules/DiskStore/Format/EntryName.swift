internal import CacheCore

/// Where an entry's file lies, relative to the folder `entries`. Nothing that a key contains reaches it but through a keyed hash.
///
/// ```
/// 3f/3f0c….e            the resource without variant, in its original form
/// 3f/3f0c….d/91aa….e    another variant in its original form
/// 3f/3f0c….d/5be2….f    a derived form
/// ```
struct EntryName: Hashable, Sendable {
  /// 32 hexadecimal digits of the resource.
  let resource: String
  /// 32 hexadecimal digits of variant and form, and `.e` or `.f`; nil for the one entry that needs neither.
  let member: String?

  init(_ key: CacheKey, hashKey: SipHash.Key) {
    resource = SipHash.hexadecimal(key.resource, key: hashKey)
    guard !key.variant.isEmpty || !key.form.isEmpty else {
      member = nil
      return
    }
    var writer = ByteWriter()
    writer.text(key.variant)
    writer.text(key.form)
    let (first, second) = SipHash.digest(writer.bytes, key: hashKey)
    let digits = Hexadecimal.text(first.byteSwapped) + Hexadecimal.text(second.byteSwapped)
    member = digits + (key.form.isEmpty ? Self.originalSuffix : Self.formSuffix)
  }

  /// The name of a file that was found in a resource's place; nil when it can't be one of ours.
  init?(shard: String, file: String) {
    guard file.utf8.count == 34, file.hasSuffix(Self.originalSuffix), file.hasPrefix(shard), Self.areDigits(file.dropLast(2))
    else {
      return nil
    }
    resource = String(file.dropLast(2))
    member = nil
  }

  /// The name of a file that was found in a resource's folder; nil when it can't be one of ours.
  init?(folder: String, member: String) {
    guard member.utf8.count == 34, member.hasSuffix(Self.originalSuffix) || member.hasSuffix(Self.formSuffix),
      Self.areDigits(member.dropLast(2)), Self.isResourceFolder(folder)
    else { return nil }
    resource = String(folder.dropLast(2))
    self.member = member
  }

  static let originalSuffix = ".e"
  static let formSuffix = ".f"
  static let folderSuffix = ".d"

  static func isShard(_ name: String) -> Bool { name.utf8.count == 2 && areDigits(Substring(name)) }

  static func isResourceFolder(_ name: String) -> Bool {
    name.utf8.count == 34 && name.hasSuffix(folderSuffix) && areDigits(name.dropLast(2))
  }

  private static func areDigits(_ text: Substring) -> Bool {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  var shard: String { String(resource.prefix(2)) }

  /// The resource's folder, which holds all but the plain entry.
  var resourceFolder: String { "\(shard)/\(resource)\(Self.folderSuffix)" }

  /// The folder that holds the file.
  var parent: String { member == nil ? shard : resourceFolder }

  var path: String { member.map { "\(resourceFolder)/\($0)" } ?? "\(shard)/\(resource)\(Self.originalSuffix)" }

  /// All files of one resource are worked on in one lane.
  var lane: UInt64 { UInt64(resource.prefix(8), radix: 16) ?? 0 }
}
