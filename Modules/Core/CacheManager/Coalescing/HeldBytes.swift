internal import CacheCore
internal import Dispatch

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

/// The bytes of a ``SharedBody`` that its readers may still need.
///
/// They are the copy that is collected for the memory store, while it has all bytes. Otherwise the latest bytes are chunks in
/// memory, and all earlier ones are in a temporary file once there are more than ``limit``.
struct HeldBytes {
  /// The most bytes that stay in memory, besides the latest chunk, the collected copy, and bytes that are just being written.
  static let limit = 256 << 10
  /// The size up to which chunks are joined. It limits the number of chunks in memory.
  private static let joinedSize = 4 << 10

  /// The place of the bytes at an offset.
  enum Place {
    /// A chunk, as it arrived.
    case chunk(Data)
    /// A part of the bytes in memory, as a slice.
    case piece(Data)
    case collected(CollectedBytes)
    case file(TemporaryFile, count: Int)
    /// The bytes are no longer held.
    case lost(CacheError)
  }

  /// The copy for the memory store, or `nil` if it lacks bytes.
  private var collected: CollectedBytes?
  /// The number of bytes that have arrived.
  private(set) var count: Int64 = 0
  /// The last chunk, which most readers need next.
  private var latest = Data()
  /// The bytes from ``start`` on, unless they are collected.
  private var chunks: [Data] = []
  private var start: Int64 = 0
  private var file: TemporaryFile?
  /// The number of bytes in the file.
  private var filed: Int64 = 0
  private var isDropped = false
  /// The error of a reader whose bytes are no longer held. `nil` while all bytes from the first one on are held.
  private(set) var loss: CacheError?

  init(_ collected: CollectedBytes?) { self.collected = collected }

  /// Whether the chunks in memory exceed the limit.
  var isOverfull: Bool { loss == nil && !chunks.isEmpty && count - start > Self.limit }

  /// The file, and the chunks to write next, with their offset. Half of ``limit`` stays in memory, so that a reader that lags
  /// only a little does not read the file.
  var unwritten: (file: TemporaryFile?, chunks: ArraySlice<Data>, offset: Int64) {
    var (rest, number) = (count - start, 0)
    while rest > Self.limit / 2 {
      rest -= Int64(chunks[number].count)
      number += 1
    }
    return (file, chunks.prefix(number), start)
  }

  /// Adds the next bytes.
  ///
  /// - Returns: The collected copy if it does not have them. The caller releases it outside its lock, because that returns memory
  ///   to the memory budget.
  mutating func append(_ chunk: Data) -> CollectedBytes? {
    latest = chunk
    count += Int64(chunk.count)
    var outgrown: CollectedBytes?
    if let collected {
      guard Int64(collected.count) < count else { return nil }
      outgrown = self.collected.take()
      hold(collected.data)
    }
    hold(chunk)
    return outgrown
  }

  private mutating func hold(_ chunk: Data) {
    guard !isDropped else { return start = count }
    if let last = chunks.indices.last, chunks[last].count + chunk.count <= Self.joinedSize {
      chunks[last].append(chunk)
    } else if !chunk.isEmpty {
      chunks.append(chunk)
    }
    if loss != nil { trim() }
  }

  private mutating func trim() {
    while count - start > Self.limit, chunks.count > 1 { start += Int64(chunks.removeFirst().count) }
  }

  /// Records that chunks were written to the file.
  mutating func wrote(_ written: ArraySlice<Data>, to file: TemporaryFile) {
    guard !isDropped else { return }
    chunks.removeFirst(written.count)
    start += written.reduce(0) { $0 + Int64($1.count) }
    (self.file, filed) = (file, start)
  }

  /// Records that the file failed. From now on, only the latest bytes are held, besides those in the file.
  mutating func fail(_ error: CacheError) {
    loss = loss ?? error
    trim()
  }

  /// Drops all bytes except for the latest chunk, and holds no more.
  ///
  /// - Returns: The dropped bytes, which the caller releases outside its lock.
  mutating func drop() -> HeldBytes {
    let dropped = self
    (collected, chunks, start, file, isDropped) = (nil, [], count, nil, true)
    loss = loss ?? CacheError(.truncatedBody, reason: "the first part of the body is no longer available")
    return dropped
  }

  /// Returns the place of the bytes at an offset before ``count``.
  func place(of offset: Int64) -> Place {
    if offset == count - Int64(latest.count) { return .chunk(latest) }
    if let collected { return .collected(collected) }
    var end = start
    if offset >= start {
      for chunk in chunks {
        end += Int64(chunk.count)
        guard offset < end else { continue }
        if end - offset == chunk.count, chunk.count <= Self.limit { return .chunk(chunk) }
        // A slow reader must not retain a larger chunk.
        return .piece(chunk.suffix(Int(end - offset)).prefix(Self.limit))
      }
    }
    if let file, offset < filed { return .file(file, count: Int(min(Int64(Self.limit), filed - offset))) }
    return .lost(loss ?? CacheError(.truncatedBody, reason: "a part of the body is no longer available"))
  }
}

/// The space on disk that the temporary files of a manager may use.
final class TemporarySpace: Sendable {
  fileprivate let folder: URL
  private let limit: Int64
  private let used = Lock<Int64>(0)

  /// - Parameters:
  ///   - folder: The folder of the files.
  ///   - limit: The most bytes that all files have together.
  init(_ folder: URL, limit: Int64) { (self.folder, self.limit) = (folder, limit) }

  fileprivate func take(_ bytes: Int64) throws(CacheError) {
    let isTaken = used.withLock { used in
      guard bytes <= limit - used else { return false }
      used += bytes
      return true
    }
    guard isTaken else {
      throw CacheError(
        .diskFull, reason: "the temporary files of bodies would have more than \(limit) bytes (maximumTemporaryBytes)",
        path: folder.path(percentEncoded: false))
    }
  }

  fileprivate func giveBack(_ bytes: Int64) { used.withLock { $0 -= bytes } }
}

/// A temporary file that has no name any more. Its space is free as soon as this object is released, also after a crash.
final class TemporaryFile: Sendable {
  private let descriptor: Int32
  private let path: String
  private let space: TemporarySpace
  /// The number of bytes that the file takes of its space.
  private let size = Lock<Int64>(0)
  /// The queue for all calls, which may wait for the disk. Calls for other files must not delay the readers of this body.
  private let queue: DispatchQueue

  private init(_ descriptor: Int32, _ path: String, _ space: TemporarySpace, _ queue: DispatchQueue) {
    (self.descriptor, self.path, self.space, self.queue) = (descriptor, path, space, queue)
  }

  deinit {
    space.giveBack(size.withLock { $0 })
    queue.async { [descriptor] in closeFile(descriptor) }
  }

  /// Creates an empty file that only this user could open.
  static func create(in space: TemporarySpace) async throws(CacheError) -> TemporaryFile {
    let path = space.folder.appendingPathComponent("etagere-body-\(Revision.random())").path(percentEncoded: false)
    let queue = DispatchQueue(label: "etagere.body", qos: .userInitiated)
    return try await queue.perform { () throws(CacheError) in
      let descriptor = openFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw error("create", errno, path) }
      unlink(path)
      return TemporaryFile(descriptor, path, space, queue)
    }
  }

  func write(_ chunks: ArraySlice<Data>, at offset: Int64) async throws(CacheError) {
    let bytes = chunks.reduce(0) { $0 + Int64($1.count) }
    try space.take(bytes)
    size.withLock { $0 += bytes }
    try await queue.perform { [self] () throws(CacheError) in
      var offset = offset
      for chunk in chunks {
        let failure = chunk.withUnsafeBytes { FileSystemCalls.system.writeAll(descriptor, $0, at: offset) }
        if let failure { throw Self.error("write", failure.number, path) }
        offset += Int64(chunk.count)
      }
    }
  }

  /// Reads bytes that were written.
  func read(_ count: Int, at offset: Int64) async throws(CacheError) -> Data {
    try await queue.perform { [self] () throws(CacheError) in
      var data = Data(count: count)
      let read = data.withUnsafeMutableBytes { readFile(descriptor, $0, at: offset) }
      guard read == count else { throw Self.error("read", EIO, path) }
      return data
    }
  }

  private static func error(_ action: String, _ number: Int32, _ path: String) -> CacheError {
    CacheError(
      number == ENOSPC || number == EDQUOT ? .diskFull : .fileSystem,
      reason: "cannot \(action) the temporary file of a body for readers that fell behind: \(String(cString: strerror(number)))",
      path: path, errno: number)
  }
}
