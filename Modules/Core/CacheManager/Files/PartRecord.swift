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

/// The record with which a later load continues a partial file: the request, the validator and the length of the response.
///
/// It is stored in a ``PartRecordFile`` beside the partial file. URLs and request fields are digests under a random key, so that
/// file contains no credentials. Of the response, it contains only fields that describe the content.
struct PartRecord: Codable, Sendable {
  private static let currentVersion = 1
  /// The response fields that a 206 may omit (RFC 9110 §15.3.7), and those that select it.
  private static let descriptive: [HTTPField.Name] = [
    .contentType, .contentEncoding, .contentLanguage, .contentDisposition, .eTag, .lastModified, .vary,
  ]

  private var version = Self.currentVersion
  /// The key of the digests.
  private var salt: [UInt64]
  /// The digest of the loaded resource: its URL or key, and its partition.
  private let resource: String
  /// The digest of the URL that has responded, which a redirect may have led to, without the query.
  private let location: String
  /// The digest of the query of that URL.
  private let query: String
  /// The digest of the request fields that have selected the response (`Vary`).
  private let selection: String
  private let tag: String?
  private let date: String?
  /// The length of the complete body in bytes.
  let length: Int64
  private let fields: [[String]]
  /// The permissions that the complete file gets.
  var permissions: UInt32 = 0

  /// Creates the record of a response, or returns `nil` if the response cannot be continued.
  init?(_ response: DownloadResponse, to request: DownloadRequest, for resource: String, now: Timestamp) {
    guard let plan = ResumptionPlan(request: request, head: response.head, length: response.body.length, now: now) else {
      return nil
    }
    let vary = Self.names(in: response.head.headerFields[.vary])
    // The digest of a short password could be guessed.
    guard !vary.contains("*"),
      !ConfidentialFields.credentials.contains(where: {
        vary.contains($0.canonicalName) && request.head.headerFields.contains($0)
      })
    else { return nil }
    let key = SipHash.Key.random()
    salt = [key.first, key.second]
    let (location, query) = Self.split(request.head)
    self.resource = Self.digest(resource, key)
    self.location = Self.digest(location, key)
    self.query = Self.digest(query, key)
    selection = Self.digest(Self.selection(vary, request.head), key)
    switch plan.validator {
    case .tag(let tag): (self.tag, date) = (tag, nil)
    case .date(let date): (tag, self.date) = (nil, date)
    }
    length = plan.length
    fields = response.head.headerFields.filter { Self.descriptive.contains($0.name) }.map { [$0.name.rawName, $0.value] }
  }

  // MARK: Continuing

  /// Whether a record that was read from a file has a known version, possible numbers and a validator.
  var isValid: Bool {
    version == Self.currentVersion && salt.count == 2 && length > 0 && permissions <= 0o777 && (tag != nil || date != nil)
  }

  /// The plan for the rest of the body.
  var plan: ResumptionPlan {
    let validator = tag.map(RangeValidator.tag) ?? .date(date ?? "")
    return ResumptionPlan(validator: validator, length: length, contentEncoding: described[.contentEncoding])
  }

  /// The fields of the response that describe the content.
  var described: HTTPFields {
    var described = HTTPFields()
    for field in fields where field.count == 2 {
      if let name = HTTPField.Name(field[0]) { described.append(HTTPField(name: name, value: field[1])) }
    }
    return described
  }

  /// Whether a request is for the response of the part.
  ///
  /// A redirect often leads to a URL with a new signature in its query. An entity tag then still identifies the content, and a
  /// date does not.
  func matches(_ head: HTTPRequest, for resource: String) -> Bool {
    let key = SipHash.Key(first: salt[0], second: salt[1])
    let (location, query) = Self.split(head)
    return Self.digest(resource, key) == self.resource && Self.digest(location, key) == self.location
      && (tag != nil || Self.digest(query, key) == self.query)
      && Self.digest(Self.selection(Self.names(in: described[.vary]), head), key) == selection
  }

  private static func split(_ head: HTTPRequest) -> (location: String, query: String) {
    let path = head.path ?? ""
    let location = path.prefix { $0 != "?" }
    return ("\(head.scheme ?? "")://\(head.authority ?? "")\(location)", String(path[location.endIndex...]))
  }

  /// The lines of the selecting fields. The content coding is compared by itself, and a range is requested without coding.
  private static func selection(_ vary: Set<String>, _ head: HTTPRequest) -> String {
    vary.subtracting(["accept-encoding"]).sorted().map { name in
      "\(name):\(HTTPField.Name(name).flatMap { head.headerFields[$0] } ?? "\n")\n"
    }.joined()
  }

  private static func names(in vary: String?) -> Set<String> {
    Set((vary ?? "").split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() })
  }

  private static func digest(_ text: String, _ key: SipHash.Key) -> String {
    let (high, low) = SipHash.digest(text, key: key)
    return Revision(high: high, low: low).description
  }
}

/// The file of a ``PartRecord``, beside its part. It consists of a line of JSON, the CRC32C of that line, and the CRC32C of each
/// block of the part. The checksums are little-endian.
///
/// The file can be damaged or changed by another program. No number in it is used unchecked, and its size is limited.
final class PartRecordFile: Sendable {
  /// The largest size in bytes. It suffices for parts of almost 4 TiB.
  private static let largestSize: Int64 = 64 << 20
  /// The largest size of the line in bytes.
  private static let longestLine = 64 << 10
  private static let newline = UInt8(ascii: "\n")

  private let descriptor: Int32
  /// The offset of the checksum of the first block.
  private let start: Int64

  private init(_ descriptor: Int32, start: Int64) { (self.descriptor, self.start) = (descriptor, start) }

  deinit { closeFile(descriptor) }

  /// Replaces the file at a path. Returns `nil` if that is not possible.
  static func create(_ path: String, _ record: PartRecord) -> PartRecordFile? {
    guard var bytes = try? JSONEncoder().encode(record), bytes.count < longestLine else { return nil }
    bytes.append(newline)
    let checksum = bytes.withUnsafeBytes { crc32c($0) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
    unlink(path)
    let descriptor = openFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    let file = PartRecordFile(descriptor, start: Int64(bytes.count))
    guard bytes.withUnsafeBytes({ FileSystemCalls.system.writeAll(descriptor, $0, at: 0) }) == nil else {
      unlink(path)
      return nil
    }
    return file
  }

  /// Opens the file at a path. Returns `nil` if there is none, if the record is damaged or invalid, if the file is too large, or
  /// if another user may have written it.
  static func open(_ path: String) -> (record: PartRecord, file: PartRecordFile)? {
    let descriptor = openFile(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    guard let status = FileStatus.own(descriptor), status.st_size <= largestSize, let (record, start) = read(descriptor) else {
      closeFile(descriptor)
      return nil
    }
    return (record, PartRecordFile(descriptor, start: start))
  }

  /// Returns the record, and the offset after the line and its checksum.
  private static func read(_ descriptor: Int32) -> (PartRecord, start: Int64)? {
    var bytes = Data(count: longestLine + 4)
    bytes.count = bytes.withUnsafeMutableBytes { readFile(descriptor, $0, at: 0) }
    guard let newline = bytes.firstIndex(of: newline), bytes.count >= newline + 5 else { return nil }
    let isIntact = bytes.withUnsafeBytes { bytes in
      crc32c(UnsafeRawBufferPointer(rebasing: bytes[...newline])) == checksum(in: bytes, at: newline + 1)
    }
    guard isIntact, let record = try? JSONDecoder().decode(PartRecord.self, from: bytes[..<newline]), record.isValid else {
      return nil
    }
    return (record, Int64(newline + 5))
  }

  /// Returns the checksum of a block of the part, or `nil` if it has none.
  func checksum(ofBlock block: Int64) -> UInt32? {
    guard let offset = offset(ofBlock: block) else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: 4, alignment: 4) { bytes in
      guard readFile(descriptor, bytes, at: offset) == 4 else { return nil }
      return Self.checksum(in: UnsafeRawBufferPointer(bytes), at: 0)
    }
  }

  /// Writes the checksum of a block of the part. If that fails, a later load requests the block again.
  func write(_ checksum: UInt32, ofBlock block: Int64) {
    guard let offset = offset(ofBlock: block) else { return }
    _ = withUnsafeBytes(of: checksum.littleEndian) { FileSystemCalls.system.writeAll(descriptor, $0, at: offset) }
  }

  private func offset(ofBlock block: Int64) -> Int64? {
    let offset = start + 4 * block
    return offset + 4 <= Self.largestSize ? offset : nil
  }

  private static func checksum(in bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}

/// The bytes of a recorded body at the beginning of a partial file, with a checksum of each block.
///
/// A later load verifies the blocks in order and continues after the last one that matches. Bytes that a crash of the system
/// lost, or that a program changed without changing the record, are found in this way, so nothing needs to be flushed.
///
/// The last block may be incomplete. Its checksum is written only when a load ends in order, and then covers the bytes up to the
/// end of the file. It no longer matches if bytes were added afterwards, so a killed process loses the incomplete block.
struct RecordedBytes: Sendable {
  /// The size of a block in bytes.
  static let blockSize: Int64 = 256 << 10

  let record: PartRecord
  private let file: PartRecordFile
  /// The number of bytes from the start that were written by this load or verified.
  private(set) var count: Int64 = 0
  /// The checksum of the bytes after the last complete block.
  private var checksum: UInt32 = 0
  /// The size of the partial file if an earlier load has written it and not all blocks are verified yet.
  private(set) var unverifiedSize: Int64?

  /// Creates the record of a body whose bytes are all written by this load.
  init(_ record: PartRecord, _ file: PartRecordFile) { (self.record, self.file) = (record, file) }

  /// Creates the record of bytes that an earlier load has written.
  init(_ record: PartRecord, _ file: PartRecordFile, size: Int64) {
    self.init(record, file)
    unverifiedSize = size
  }

  // MARK: Writing

  /// Adds the next bytes, before they are written to the partial file. Each whole block in that file thus has a checksum, even
  /// if the process is killed.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let length = Int(min(Self.blockSize - count % Self.blockSize, Int64(rest.count)))
      checksum = crc32c(UnsafeRawBufferPointer(rebasing: rest[..<length]), after: checksum)
      rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      count += Int64(length)
      if count % Self.blockSize == 0 {
        file.write(checksum, ofBlock: count / Self.blockSize - 1)
        checksum = 0
      }
    }
  }

  /// Writes the checksum of the incomplete block, so that a later load can continue after its bytes.
  func writeLastChecksum() {
    if count % Self.blockSize > 0 { file.write(checksum, ofBlock: count / Self.blockSize) }
  }

  /// Removes the last block, which is then requested again, if the body is complete. The origin must confirm the validator.
  mutating func removeLastBlockIfComplete() {
    guard count >= record.length else { return }
    (count, checksum) = ((record.length - 1) / Self.blockSize * Self.blockSize, 0)
  }

  // MARK: Verification

  /// Verifies the next blocks of the partial file.
  ///
  /// - Parameter limit: The largest number of blocks. It bounds the time of the call.
  mutating func verify(_ part: Int32, limit: Int) {
    guard let size = unverifiedSize else { return }
    // Bytes after the end of the body must not stay in the file.
    let end = min(size, record.length)
    withUnsafeTemporaryAllocation(byteCount: Int(Self.blockSize), alignment: 16) { buffer in
      for _ in 0..<limit {
        let length = Int(min(Self.blockSize, end - count))
        let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<length])
        guard length > 0, let expected = file.checksum(ofBlock: count / Self.blockSize),
          readFile(part, bytes, at: count) == length, crc32c(UnsafeRawBufferPointer(bytes)) == expected
        else {
          unverifiedSize = nil
          return
        }
        count += Int64(length)
        if length < Self.blockSize { checksum = expected }
      }
    }
  }
}

/// The downloader of a load into a file. It continues the part that an earlier load has left, and records what a later load needs
/// to continue this one.
///
/// It surrounds all other wrappers, so the response to a range request is completed before any stage of the load sees it. The
/// stores therefore receive the whole body, as they do if a transfer is resumed within a load.
struct PartDownloader: Downloader {
  let base: any Downloader
  let file: PartialFile
  let load: ResolvedRequest

  // The response is the same as without a part, so the load shares transfers with loads that have none.
  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  init(_ base: any Downloader, into file: PartialFile, for load: ResolvedRequest) {
    (self.base, self.file, self.load) = (base, file, load)
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if let part = try await part(for: request) {
      var rest = part.plan.request(request, from: part.count)
      // The conditions of the cache are evaluated before the range (RFC 9110 §13.2.2), so a 304 still confirms its response.
      for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] {
        rest.head.headerFields[fields: name] = request.head.headerFields[fields: name]
      }
      let response = try await base.download(rest)
      switch response.head.status {
      case .partialContent:
        if case .append = part.plan.judge(response.head, bodyLength: response.body.length, at: part.count) {
          return continued(response, part)
        }
      case .rangeNotSatisfiable: break
      default: return recorded(response, request)
      }
      response.body.source.cancel()
      if Task.isCancelled { throw .cancelled }
    }
    return recorded(try await base.download(request), request)
  }

  private func part(for request: DownloadRequest) async throws(CacheError) -> PartialFile.Part? {
    guard request.head.method == .get, request.body == nil, !request.head.headerFields.contains(.range),
      load.acceptedStatuses.contains(200)
    else { return nil }
    return try await file.part { $0.matches(request.head, for: load.settings.resource) }
  }

  /// Returns the whole response. A 206 need not repeat the fields that describe the content (RFC 9110 §15.3.7).
  private func continued(_ response: DownloadResponse, _ part: PartialFile.Part) -> DownloadResponse {
    var fields = part.record.described
    let ofThePart = ["content-range", "content-length", "content-digest", "content-md5"]
    for name in Set(response.head.headerFields.map(\.name)) where !ofThePart.contains(name.canonicalName) {
      fields[fields: name] = response.head.headerFields[fields: name]
    }
    fields[.contentLength] = String(part.plan.length)
    var whole = response
    whole.head = HTTPResponse(status: .ok, headerFields: fields)
    whole.body = ResourceBody(
      length: part.plan.length, source: PartBody(response.body.source, .continued(part), file))
    return whole
  }

  private func recorded(_ response: DownloadResponse, _ request: DownloadRequest) -> DownloadResponse {
    guard response.body.data == nil,
      let record = PartRecord(response, to: request, for: load.settings.resource, now: load.clock.now)
    else { return response }
    var recorded = response
    recorded.body = ResourceBody(
      length: response.body.length, source: PartBody(response.body.source, .new(record), file))
    return recorded
  }
}

/// A body that is written to a partial file, from its first byte on or after the bytes that the file has.
private final class PartBody: ResourceBody.Source {
  enum Start: Sendable {
    case new(PartRecord)
    case continued(PartialFile.Part)
  }

  private let base: any ResourceBody.Source
  private let start: Start
  private let file: PartialFile
  /// The number of bytes that were read from the file, or `nil` before the first read.
  private let position = Lock<Int64?>(nil)

  init(_ base: any ResourceBody.Source, _ start: Start, _ file: PartialFile) {
    (self.base, self.start, self.file) = (base, start, file)
  }

  var trailers: HTTPFields? { base.trailers }

  func cancel() { base.cancel() }

  func next() async throws(CacheError) -> Data? {
    let position = position.withLock { $0 }
    switch start {
    case .new(let record):
      guard position == nil else { return try await base.next() }
      let chunk = try await base.next()
      // The record exists before the first byte, and the bytes of an earlier part until then.
      if chunk != nil { try await file.begin(record) }
      self.position.withLock { $0 = 0 }
      return chunk
    case .continued(let part):
      if position == nil { file.resume() }
      let offset = position ?? 0
      guard offset < part.count else { return try await base.next() }
      let chunk = try await file.read(Int(min(256 << 10, part.count - offset)), at: offset)
      self.position.withLock { $0 = offset + Int64(chunk.count) }
      return chunk
    }
  }
}
