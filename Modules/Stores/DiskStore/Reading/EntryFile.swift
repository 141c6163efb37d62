internal import CacheCore
internal import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An open entry file, checked except for its body.
final class EntryFile: Sendable {
  /// The size in bytes up to which a file is read with one call.
  static let wholeLimit: Int64 = 131_072

  let descriptor: FileDescriptor
  let status: FileStatus
  let header: EntryHeader
  let metadata: StoredMetadata
  let newest: MetadataArea.Newest
  private let keySection: FilePart
  private let table: FilePart
  /// The whole file, if it is small.
  private let memory: FileMemory?

  fileprivate init(
    _ reader: FileReader, _ status: FileStatus, _ header: EntryHeader, key: FilePart, table: FilePart,
    _ newest: MetadataArea.Newest, _ metadata: StoredMetadata
  ) {
    (descriptor, self.status, self.header) = (reader.descriptor, status, header)
    (keySection, self.table, memory) = (key, table, reader.isWhole ? reader.head : nil)
    (self.newest, self.metadata) = (newest, metadata)
  }

  /// The result of opening a name.
  enum Finding: Sendable {
    case entry(EntryFile)
    case nothing
    /// Another key with the same hash.
    case otherKey
    /// An entry of a later format.
    case newer
    case damaged(String, FileStatus.Identity?)
    case failed(SystemError)
  }

  var bodyLength: Int64 { Int64(header.bodyLength) }

  /// The key, decoded on each access.
  var key: CacheKey { keySection.withBytes { KeySection.key(in: $0) } ?? CacheKey(resource: "") }

  /// Returns a part of the body if it is in memory, or `nil` if it must be read. Call ``isBodyWhole()`` first.
  func bodyInMemory(_ range: Range<Int64>) -> Data? {
    let start = Int64(header.bodyOffset)
    return memory?.data(Int(start + range.lowerBound)..<Int(start + range.upperBound))
  }

  /// Whether the body in memory matches its checksums. True if the body is not in memory.
  var isBodyInMemoryWhole: Bool {
    guard let memory else { return true }
    let start = Int(header.bodyOffset)
    return memory.withBytes { bytes in
      withTable { BlockChecksums.match(bytes.part(start..<start + Int(header.bodyLength)), table: $0) }
    }
  }

  /// Calls `body` with the table of the body's checksums, which is already checked.
  func withTable<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { table.withBytes(body) }

  /// Reads and checks the whole body.
  func isBodyWhole() throws(SystemError) -> Bool {
    if memory != nil { return isBodyInMemoryWhole }
    var offset: Int64 = 0
    while offset < bodyLength {
      guard let chunk = try blocks(from: offset) else { return false }
      offset += Int64(chunk.count)
    }
    return true
  }

  /// The number of bytes that one read returns, a multiple of the block size.
  private static let pull = Int64(4 * BlockChecksums.blockSize)

  /// Reads and checks the blocks from `offset`, the start of a block, up to `end` rounded up to a block, but at most ``pull``
  /// bytes. Returns `nil` if they are damaged.
  ///
  /// - Parameter readCached: The call that reads without waiting for the disk: see ``FileDescriptor/read(into:at:_:)``.
  func blocks(
    from offset: Int64, upTo end: Int64 = .max, _ readCached: FileCalls.CachedRead? = nil
  ) throws(SystemError) -> FileMemory? {
    let block = Int64(BlockChecksums.blockSize)
    let wanted = min(Self.pull, bodyLength - offset)
    let needed = end >= bodyLength ? bodyLength - offset : (end - offset + block - 1) / block * block
    let count = Int(min(wanted, needed))
    let memory = try FileMemory(descriptor, at: Int64(header.bodyOffset) + offset, count: count, readCached)
    guard memory.count == count else { return nil }
    let isWhole = memory.withBytes { bytes in
      withTable { BlockChecksums.match(bytes, table: $0, from: Int(offset / block)) }
    }
    return isWhole ? memory : nil
  }

  /// Reads the first bytes of a range, at most ``pull`` of them. Returns `nil` if they are damaged or missing.
  ///
  /// - Parameters:
  ///   - checks: Whether the blocks that contain the bytes are read and compared with their checksums.
  ///   - readCached: The call that reads without waiting for the disk: see ``FileDescriptor/read(into:at:_:)``.
  func chunk(
    _ range: Range<Int64>, checks: Bool, _ readCached: FileCalls.CachedRead? = nil
  ) throws(SystemError) -> Data? {
    guard checks else {
      let count = Int(min(Self.pull, range.upperBound - range.lowerBound))
      let memory = try FileMemory(descriptor, at: Int64(header.bodyOffset) + range.lowerBound, count: count, readCached)
      return memory.count == count ? memory.data(0..<count) : nil
    }
    let block = Int64(BlockChecksums.blockSize)
    let first = range.lowerBound / block * block
    guard let memory = try blocks(from: first, upTo: range.upperBound, readCached) else { return nil }
    let last = min(first + Int64(memory.count), range.upperBound)
    return memory.data(Int(range.lowerBound - first)..<Int(last - first))
  }
}

extension EntryFile {
  /// Opens the file at `path` and checks everything except the body.
  ///
  /// - Parameters:
  ///   - folder: The open folder from which the path leads to the file, or `nil` for a whole path.
  ///   - expected: The key that the entry must have, or `nil` for any key.
  static func find(
    _ path: UnsafePointer<CChar>, in folder: FileDescriptor? = nil, expecting expected: CacheKey?, _ calls: FileCalls
  ) -> Finding {
    do throws(SystemError) {
      let descriptor = try FileDescriptor(path, .read, in: folder)
      return try read(descriptor, expecting: expected, calls)
    } catch {
      switch error {
      case .notFound, .notAFolder: return .nothing
      case .isLink: return .damaged("a link", (try? FileStatus(path: path, in: folder?.raw ?? AT_FDCWD))?.identity)
      default: return .failed(error)
      }
    }
  }

  /// Opens the file at `path` and checks everything except the body, with only those bytes that the system has in memory. Returns
  /// `nil` if there is no such entry or a thorough lookup is needed.
  static func findCached(
    _ path: UnsafePointer<CChar>, in folder: FileDescriptor?, expecting expected: CacheKey, _ calls: FileCalls
  ) throws(SystemError) -> EntryFile? {
    let descriptor = try FileDescriptor(cached: path, in: folder, calls)
    guard case .entry(let file) = try read(descriptor, expecting: expected, calls, calls.readCached) else { return nil }
    return file
  }

  /// Checks everything in an open file except the body.
  ///
  /// - Parameter readCached: The call that reads without waiting for the disk: see ``FileDescriptor/read(into:at:_:)``.
  static func read(
    _ descriptor: FileDescriptor, expecting expected: CacheKey?, _ calls: FileCalls, _ readCached: FileCalls.CachedRead? = nil
  ) throws(SystemError) -> Finding {
    let status = try descriptor.status()
    switch status.kind {
    case .folder: return .nothing
    case .other: return .damaged("not a regular file", status.identity)
    case .file: break
    }
    guard status.isTrusted else { return .damaged("a file that other users can change", status.identity) }
    let head = EntryHeader.length + (expected.map(KeySection.length) ?? 4096)
    let reader = try FileReader(descriptor, status.size, head: head, readCached)
    do throws(ReadFailure) {
      return .entry(try parse(reader, status, expecting: expected, calls))
    } catch {
      switch error {
      case .damaged(let reason): return .damaged(reason, status.identity)
      case .otherKey: return .otherKey
      case .newer: return .newer
      case .failed(let error): throw error
      }
    }
  }

  fileprivate enum ReadFailure: Error { case damaged(String), otherKey, newer, failed(SystemError) }

  private static func parse(
    _ reader: FileReader, _ status: FileStatus, expecting expected: CacheKey?, _ calls: FileCalls
  ) throws(ReadFailure) -> EntryFile {
    let header: EntryHeader
    switch reader.head.withBytes({ EntryHeader.parse($0, fileSize: status.size) }) {
    case .header(let parsed): header = parsed
    case .newer: throw .newer
    case .damaged(let reason): throw .damaged(reason)
    }
    let key = try reader.part(header.keyOffset, header.keyLength)
    if let failure = key.withBytes({ self.failure(inKey: $0, expecting: expected) }) { throw failure }
    let reader = try reader.withTail(from: header.tableOffset)
    let table = try reader.part(header.tableOffset, header.tableLength)
    guard table.withBytes({ BlockChecksums.isWhole(table: $0) }) else { throw .damaged("checksum table") }
    let (newest, metadata) = try self.metadata(reader, header, status, calls)
    return EntryFile(reader, status, header, key: key, table: table, newest, metadata)
  }

  private static func failure(inKey section: UnsafeRawBufferPointer, expecting expected: CacheKey?) -> ReadFailure? {
    if let expected, KeySection.holds(expected, section) { return nil }
    guard KeySection.key(in: section) != nil else { return .damaged("key") }
    return expected == nil ? nil : .otherKey
  }

  private static func metadata(
    _ reader: FileReader, _ header: EntryHeader, _ status: FileStatus, _ calls: FileCalls
  ) throws(ReadFailure) -> (MetadataArea.Newest, StoredMetadata) {
    let length = UInt64(status.size) - header.metadataOffset
    guard length <= UInt64(MetadataArea.lengthLimit) else { throw .damaged("metadata area too long") }
    let revision = header.revision
    func decodeNewest(_ bytes: UnsafeRawBufferPointer) -> (MetadataArea.Newest, StoredMetadata?)? {
      MetadataArea.newest(in: bytes, revision: revision).map { ($0, StoredMetadata(decoding: bytes.part($0.payload))) }
    }
    var found = try reader.part(header.metadataOffset, length).withBytes(decodeNewest)
    if found == nil {
      guard reader.readCached == nil, !calls.isSuspended else { throw .failed(.wouldBlock) }
      // Two records may have been written during the read, the second over the one that was newest before. No process writes
      // while the lock is taken.
      do throws(SystemError) { try reader.descriptor.waitForLock(calls) } catch { throw .failed(error) }
      defer { reader.descriptor.unlock() }
      found = try reader.again(header.metadataOffset, decodeNewest)
    }
    guard let (newest, decoded) = found, let metadata = decoded, metadata.revision == revision,
      metadata.bodyLength == Int64(header.bodyLength)
    else { throw .damaged("metadata") }
    return (newest, metadata)
  }
}

/// A range of a file's bytes, in memory that may contain more of the file.
private struct FilePart {
  private let memory: FileMemory
  private let start: Int
  private let count: Int

  init(_ memory: FileMemory, _ start: Int, _ count: Int) { (self.memory, self.start, self.count) = (memory, start, count) }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    memory.withBytes { body($0.part(start..<start + count)) }
  }
}

/// Reads parts of a file of a known size, from memory if they were already read.
private struct FileReader {
  let descriptor: FileDescriptor
  let size: Int64
  let head: FileMemory
  let isWhole: Bool
  /// The call that reads without waiting for the disk, or `nil` to wait.
  let readCached: FileCalls.CachedRead?
  private var tail: FileMemory?
  private var tailStart: UInt64 = 0

  init(
    _ descriptor: FileDescriptor, _ size: Int64, head: Int, _ readCached: FileCalls.CachedRead?
  ) throws(SystemError) {
    (self.descriptor, self.size, self.readCached) = (descriptor, size, readCached)
    isWhole = size <= EntryFile.wholeLimit
    self.head = try FileMemory(descriptor, at: 0, count: isWhole ? Int(size) : Int(min(Int64(head), size)), readCached)
  }

  /// Returns a reader that has also read the end of the file if it is short. The table and the metadata are next to each other.
  func withTail(from start: UInt64) throws(EntryFile.ReadFailure) -> FileReader {
    guard !isWhole, size - Int64(start) <= EntryFile.wholeLimit else { return self }
    var reader = self
    reader.tail = try memory(start, Int(size - Int64(start)))
    reader.tailStart = start
    return reader
  }

  func part(_ offset: UInt64, _ length: UInt64) throws(EntryFile.ReadFailure) -> FilePart {
    let (end, overflows) = offset.addingReportingOverflow(length)
    guard !overflows, end <= UInt64(size) else { throw .damaged("impossible offsets") }
    // A length that this machine cannot address is not one that it wrote.
    guard let count = Int(exactly: length) else { throw .damaged("impossible lengths") }
    if end <= UInt64(head.count) { return FilePart(head, Int(offset), count) }
    if let tail, offset >= tailStart { return FilePart(tail, Int(offset - tailStart), count) }
    return FilePart(try memory(offset, count), 0, count)
  }

  /// Reads from the file again, up to its current end.
  func again<Result>(_ offset: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) throws(EntryFile.ReadFailure) -> Result {
    do throws(SystemError) {
      let end = UInt64(clamping: try descriptor.status().size)
      let length = min(end > offset ? end - offset : 0, UInt64(MetadataArea.lengthLimit))
      return try FileMemory(descriptor, at: Int64(offset), count: Int(length)).withBytes(body)
    } catch {
      throw .failed(error)
    }
  }

  private func memory(_ offset: UInt64, _ length: Int) throws(EntryFile.ReadFailure) -> FileMemory {
    let memory: FileMemory
    do throws(SystemError) {
      memory = try FileMemory(descriptor, at: Int64(offset), count: length, readCached)
    } catch {
      throw .failed(error)
    }
    guard memory.count == length else { throw .damaged("cut off") }
    return memory
  }
}

extension DiskEngine {
  /// Returns the body of a large entry, which is read and checked block by block.
  func body(of file: EntryFile, _ range: Range<Int64>, _ name: EntryName) -> ResourceBody {
    let source = ChunkedBody(range, trailers: file.metadata.trailers) { [self] start throws(CacheError) in
      if let chunk = readWithoutWaiting(file, start..<range.upperBound) { return [chunk] }
      let chunk = try await executor.run(.entry(name.lane)) { [self] () throws(CacheError) in
        try read(file, name, from: start, upTo: range.upperBound)
      }
      return [chunk]
    }
    return ResourceBody(length: range.upperBound - range.lowerBound, source: source)
  }

  /// Reads the next bytes of a body on the caller's thread.
  func read(_ file: EntryFile, _ name: EntryName, from offset: Int64, upTo end: Int64) throws(CacheError) -> Data {
    let chunk: Data?
    do throws(SystemError) {
      chunk = try file.chunk(offset..<end, checks: checksBodies)
    } catch {
      throw error.error("read an entry", folder.path(name))
    }
    guard let chunk else {
      discardDamaged(name, file.status.identity)
      throw CacheError(.damagedEntry, reason: "the stored body is damaged", path: folder.path(name))
    }
    return chunk
  }
}
