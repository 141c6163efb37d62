internal import CacheCore
internal import HTTPTypes

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
  private var isValid: Bool {
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
    Set((vary ?? "").lowercasedMembers)
  }

  private static func digest(_ text: String, _ key: SipHash.Key) -> String {
    let (high, low) = SipHash.digest(text, key: key)
    return Revision(high: high, low: low).description
  }
}

/// The stored form: a line of JSON, and the CRC32C of that line, little-endian.
extension PartRecord {
  /// The largest size in bytes.
  static let encodedLimit = longestLine + 4
  /// The largest size of the line in bytes.
  private static let longestLine = 64 << 10
  private static let newline = UInt8(ascii: "\n")

  /// Returns the stored form, or `nil` if it is too large.
  func encoded() -> Data? {
    guard var bytes = try? JSONEncoder().encode(self), bytes.count < Self.longestLine else { return nil }
    bytes.append(Self.newline)
    withUnsafeBytes(of: Self.checksum(bytes).littleEndian) { bytes.append(contentsOf: $0) }
    return bytes
  }

  /// Returns the record at the start of a file and the number of its bytes, or `nil` if it is damaged or invalid.
  static func decoded(_ bytes: Data) -> (record: PartRecord, count: Int)? {
    guard let newline = bytes.firstIndex(of: newline), bytes.count >= newline + 5 else { return nil }
    let stated = bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: newline + 1, as: UInt32.self)) }
    guard checksum(bytes[...newline]) == stated, let record = try? JSONDecoder().decode(PartRecord.self, from: bytes[..<newline]),
      record.isValid
    else { return nil }
    return (record, newline + 5)
  }

  private static func checksum(_ line: Data) -> UInt32 { line.withUnsafeBytes { crc32c($0) } }
}
