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
/// It is a small file beside the partial file. URLs and request fields are digests under a random key, so the file contains no
/// credentials. Of the response, it contains only fields that describe the content.
struct PartRecord: Codable, Sendable {
  private static let currentVersion = 1
  /// The key of the digest that reveals damage. It need not be secret, because only the file's owner can write the record.
  private static let key = SipHash.Key(first: 0x6574_6167_6572_6520, second: 0x7061_7274)
  private static let largestSize = 64 << 10
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
  private let length: Int64
  private let fields: [[String]]
  /// The permissions that the complete file gets.
  var permissions: UInt32 = 0
  /// The number of bytes that were flushed to the disk.
  var flushed: Int64 = 0
  /// The boot of the system during which the part was written last.
  var boot: String?

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

  /// The plan for the rest of the body, or `nil` if the record is invalid.
  var plan: ResumptionPlan? {
    guard length > 0, let validator = tag.map(RangeValidator.tag) ?? date.map(RangeValidator.date) else { return nil }
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
    guard salt.count == 2 else { return false }
    let key = SipHash.Key(first: salt[0], second: salt[1])
    let (location, query) = Self.split(head)
    return Self.digest(resource, key) == self.resource && Self.digest(location, key) == self.location
      && (tag != nil || Self.digest(query, key) == self.query)
      && Self.digest(Self.selection(Self.names(in: described[.vary]), head), key) == selection
  }

  /// Returns the number of bytes that a part of this size certainly has.
  ///
  /// After a crash of the system, a file can be longer than what was written to the disk. The last byte is always requested, so
  /// that the origin confirms the validator of a complete part.
  func reliableCount(size: Int64) -> Int64 {
    guard plan != nil, flushed >= 0, size <= length else { return 0 }
    return min(boot != nil && boot == BootID.name ? size : min(size, flushed), length - 1)
  }

  /// Returns the record for a part that this process writes.
  ///
  /// - Parameter flushed: The number of bytes that were flushed to the disk.
  func written(flushed: Int64) -> PartRecord {
    var record = self
    (record.flushed, record.boot) = (flushed, BootID.name)
    return record
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

  // MARK: The file

  /// Reads a record. Returns `nil` if there is none, if it is damaged or of another version, or if another user may have written
  /// it.
  init?(path: String) {
    let descriptor = openFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { closeFile(descriptor) }
    guard let status = FileStatus.own(descriptor), status.st_size <= Self.largestSize else { return nil }
    var bytes = Data(count: Int(status.st_size))
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    let digestLength = 33
    guard count == bytes.count, count > digestLength else { return nil }
    let content = Data(bytes.dropFirst(digestLength))
    guard bytes.prefix(digestLength).elementsEqual("\(Self.digest(of: content))\n".utf8),
      let record = try? JSONDecoder().decode(PartRecord.self, from: content), record.version == Self.currentVersion
    else { return nil }
    self = record
  }

  /// Writes the record in one step. Returns `false` if that is not possible.
  func write(to path: String) -> Bool {
    guard let content = try? JSONEncoder().encode(self) else { return false }
    let bytes = Data("\(Self.digest(of: content))\n".utf8) + content
    guard bytes.count <= Self.largestSize else { return false }
    let draft = PartNames.unique(beside: path)
    let descriptor = openFile(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    // The count of flushed bytes must not appear after a crash of the system without the record that belongs to it.
    let isWritten = count == bytes.count && (flushed == 0 || fsync(descriptor) == 0)
    closeFile(descriptor)
    guard isWritten, moveFile(draft, path) else {
      unlink(draft)
      return false
    }
    return true
  }

  private static func digest(of content: Data) -> String {
    let (high, low) = SipHash.digest(Array(content), key: key)
    return Revision(high: high, low: low).description
  }
}
