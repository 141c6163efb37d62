internal import CacheCore

/// `index`: the entries at a time since which nothing has changed. It is a hint that saves listing the files, which remain
/// authoritative.
enum IndexFile {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x49, 0x0D, 0x0A, 0x1A, 0x0A]
  static let version: UInt32 = 1
  static let headLength = 64
  static let entryLength = 56
  /// The maximum size in bytes of a file that is read.
  static let lengthLimit: Int64 = 256 << 20
  /// The maximum size in bytes of an entry's file, rounded up. The sum over all entries of an index cannot overflow.
  static let sizeLimit: Int64 = EntryHeader.bodyLimit + 268_435_456
  /// The minimum number of entries. Fewer are listed as fast as the index is read.
  static let fewest = 512
  /// The maximum number of entries. A file with more is too large to be read.
  static let most = (Int(lengthLimit) - headLength - 4) / entryLength

  /// The state of the folder to which an index applies.
  struct Stamp: Hashable, Sendable {
    /// The digest of the system's boot identifier. The counters do not show which writes a power failure undid.
    var boot: NameDigest
    /// The identity of the counter file, which differs in a copy of the folder.
    var generation: FileStatus.Identity
    /// The value of both counters.
    var count: UInt64

    init(boot: NameDigest, generation: FileStatus.Identity, count: UInt64) {
      (self.boot, self.generation, self.count) = (boot, generation, count)
    }

    /// Creates the stamp for the current state, or returns `nil` if no index can be trusted: during a change, or if a sandbox
    /// denies the boot identifier. Without it, an index could lack entries after a power failure. The files are listed instead.
    init?(boot: String?, key: SipHash.Key, _ generation: FileStatus.Identity, _ counts: Generation.Counts) {
      guard let boot, !boot.isEmpty, counts.isQuiet else { return nil }
      self.init(boot: NameDigest(SipHash.digest(boot, key: key)), generation: generation, count: counts.started)
    }
  }

  static func encoded(_ entries: ResourceTable, _ stamp: Stamp) -> [UInt8] {
    var writer = ByteWriter()
    writer.reserve(headLength + entries.count * entryLength + 4)
    writer.raw(magic)
    writer.integer(version)
    writer.integer(UInt32(0))
    for number in [stamp.boot.high, stamp.boot.low, stamp.generation.device, stamp.generation.inode, stamp.count] {
      writer.integer(number)
    }
    writer.integer(UInt64(entries.count))
    entries.forEach { name, use in
      writer.integer(name.resource.high)
      writer.integer(name.resource.low)
      writer.integer(name.member?.digest.high ?? 0)
      writer.integer(name.member?.digest.low ?? 0)
      writer.integer(UInt64(name.member.map { $0.isTransform ? 2 : 1 } ?? 0) | UInt64(use.uses) << 8)
      writer.integer(use.size)
      writer.integer(use.last.nanoseconds)
    }
    writer.checksum(from: 0)
    return writer.bytes
  }

  /// Decodes the entries, or returns `nil` if the bytes are damaged, of another version, or not for `stamp`.
  static func decoded(_ bytes: UnsafeRawBufferPointer, _ stamp: Stamp) -> [EntryName: EntryIndex.Use]? {
    let end = bytes.count - 4
    guard end >= headLength, (end - headLength) % entryLength == 0, bytes.part(0..<8).elementsEqual(magic),
      bytes.integer(at: 8) == version, self.stamp(bytes) == stamp,
      bytes.integer(at: 56) == UInt64((end - headLength) / entryLength),
      bytes.integer(at: end) == crc32c(bytes.part(0..<end))
    else { return nil }
    var entries: [EntryName: EntryIndex.Use] = [:]
    entries.reserveCapacity((end - headLength) / entryLength)
    for start in stride(from: headLength, to: end, by: entryLength) {
      guard let (name, use) = entry(bytes.part(start..<start + entryLength)) else { return nil }
      entries[name] = use
    }
    return entries
  }

  private static func stamp(_ bytes: UnsafeRawBufferPointer) -> Stamp {
    Stamp(
      boot: NameDigest(high: bytes.integer(at: 16), low: bytes.integer(at: 24)),
      generation: FileStatus.Identity(device: bytes.integer(at: 32), inode: bytes.integer(at: 40)), count: bytes.integer(at: 48))
  }

  private static func entry(_ bytes: UnsafeRawBufferPointer) -> (EntryName, EntryIndex.Use)? {
    let (uses, kind) = bytes.integer(at: 32, as: UInt64.self).quotientAndRemainder(dividingBy: 256)
    let size = bytes.integer(at: 40, as: Int64.self)
    guard kind <= 2, uses <= EntryIndex.Use.mostUses, (0...sizeLimit).contains(size) else { return nil }
    let digest = NameDigest(high: bytes.integer(at: 16), low: bytes.integer(at: 24))
    return (
      EntryName(
        resource: NameDigest(high: bytes.integer(at: 0), low: bytes.integer(at: 8)),
        member: kind == 0 ? nil : EntryName.Member(digest: digest, isTransform: kind == 2)),
      // Earlier versions wrote the size of the file.
      EntryIndex.Use(
        size: FileStatus.allocatedSize(of: size), last: Timestamp(nanoseconds: bytes.integer(at: 48)), uses: UInt8(uses))
    )
  }
}

/// The index file beside the entries.
extension StoreFolder {
  private var indexPath: String { "\(root)/index" }

  /// The stamp for an index of the folder's current state, or `nil` during a change or if the state is unknown.
  var indexStamp: IndexFile.Stamp? {
    guard !hasLostGeneration, let (identity, counts) = generationNow else { return nil }
    return IndexFile.Stamp(boot: calls.bootID(), key: key, identity, counts)
  }

  /// Returns the entries of the index file if it matches the folder's current state.
  func readIndex(_ stamp: IndexFile.Stamp) -> [EntryName: EntryIndex.Use]? {
    guard let file = try? FileDescriptor(indexPath, .read), let status = try? file.status(), status.kind == .file,
      status.ownership.isTrusted, status.size <= IndexFile.lengthLimit,
      let memory = try? FileMemory(file, at: 0, count: Int(status.size))
    else { return nil }
    return memory.withBytes { IndexFile.decoded($0, stamp) }
  }

  /// Writes the index file. Returns `false` if that failed; an earlier index file then stays.
  func writeIndex(_ bytes: [UInt8]) -> Bool {
    guard isWritable, let path = try? temporaryPath("index") else { return false }
    do throws(SystemError) {
      try calls.writeAll(try FileDescriptor(path, .createNew), bytes, at: 0)
      if let error = calls.rename(path, indexPath) { throw error }
      return true
    } catch {
      _ = calls.unlink(path)
      return false
    }
  }

  /// Removes the index file. If a link has replaced the folder, its target is not changed.
  func removeIndex() {
    guard (try? FileStatus(path: root))?.kind == .folder else { return }
    _ = calls.unlink(indexPath)
  }
}
