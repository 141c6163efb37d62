internal import CacheCore
internal import HTTPTypes

/// A request's selecting fields in the form that is stored and compared (RFC 9111 §4.1): normalized, with secrets as digests.
///
/// In a private cache, `Authorization` always selects, even if `Vary` does not list it. A response for one user is therefore
/// never served to another user or without credentials. A shared cache stores such a response only if the origin permits sharing
/// (RFC 9111 §3.5), so only `Vary` selects.
///
/// For a part, its range is an additional field, so its variant always differs from that of the whole response.
struct SelectingFields {
  private let entries: [(name: HTTPField.Name, value: [UInt8]?)]

  /// Creates the selecting fields of a caller's request.
  init(of request: HTTPRequest, vary: Vary, secret: DigestSecret, mode: CacheMode) {
    self.init(vary, selectsCredentials: mode == .private, isPart: false) {
      Self.storedForm(of: $0, in: request.headerFields, secret: secret)
    }
  }

  /// Creates the selecting fields of metadata, which are already in stored form.
  init(of metadata: StoredMetadata) { self.init(of: metadata, vary: Vary(metadata.response.headerFields)) }

  /// Creates the selecting fields of metadata whose `Vary` has already been read.
  init(of metadata: StoredMetadata, vary: Vary) {
    let stored = metadata.request.headerFields
    self.init(vary, selectsCredentials: true, isPart: stored.contains(.range) && metadata.isPart) { stored.first($0)?.bytes }
  }

  private init(_ vary: Vary, selectsCredentials: Bool, isPart: Bool, value: (HTTPField.Name) -> [UInt8]?) {
    var entries = vary.names.map { (name: $0, value: value($0)) }
    func add(_ name: HTTPField.Name) {
      guard !vary.names.contains(name), let value = value(name) else { return }
      entries.append((name, value))
    }
    if selectsCredentials { add(.authorization) }
    if isPart { add(.range) }
    if entries.count > 1 { entries.sort { $0.name.canonicalName < $1.name.canonicalName } }
    self.entries = entries
  }

  /// The fields of the stored request. Absent ones are omitted.
  var fields: HTTPFields {
    if entries.isEmpty { return HTTPFields() }
    return HTTPFields(entries.compactMap { entry in entry.value.map { HTTPField(name: entry.name, value: $0) } })
  }

  /// The canonical text: one line for each field, `name=value`, or only `name` if the request does not have the field. It is
  /// empty if no field selects.
  ///
  /// The text is ASCII. Other bytes, control characters and `%` are percent-encoded, so that two texts are equal only if all
  /// bytes are equal.
  var variant: String {
    if entries.isEmpty { return "" }
    return entries.map { entry in
      entry.value.map { "\(entry.name.canonicalName)=\(Self.escaped($0))" } ?? entry.name.canonicalName
    }.joined(separator: "\n")
  }

  /// Returns whether the selecting fields of `metadata` match those of `request`.
  static func match(_ metadata: StoredMetadata, _ request: HTTPRequest, secret: DigestSecret, mode: CacheMode) -> Bool {
    let fields = metadata.response.headerFields
    var namesCredentials = false
    var compared = 0
    for position in fields.positions(of: .vary) {
      let areSame = fields[position].withUnsafeBytesOfValue { line in
        FieldList(line).allSatisfy { member in
          // A 304 may have added more names than a response may be stored with.
          compared += 1
          if !namesCredentials { namesCredentials = member.isName("authorization") }
          return compared <= Vary.mostNames && isSame(member, metadata.request.headerFields, request.headerFields, secret)
        }
      }
      guard areSame else { return false }
    }
    return namesCredentials || haveSameCredentials(metadata, request, secret: secret, mode: mode)
  }

  /// Returns whether the field that a member of `Vary` names is equal in a stored response and in a request. An invalid name, or
  /// `*`, never matches.
  ///
  /// A line that is byte for byte equal to the stored one needs no normalization, because normalization is idempotent.
  private static func isSame(
    _ member: UnsafeBufferPointer<UInt8>, _ stored: HTTPFields, _ fields: HTTPFields, _ secret: DigestSecret
  ) -> Bool {
    guard member.allSatisfy(Directive.isToken), !member.isName("*") else { return false }
    let known = (0..<stored.count).first { member.isName(stored[$0].name.canonicalName) }.map { stored[$0] }
    var line: HTTPField?
    for position in 0..<fields.count where member.isName(fields[position].name.canonicalName) {
      // For several lines, compare the normal form.
      if let line { return known?.bytes == storedForm(of: line.name, in: fields, secret: secret) }
      line = fields[position]
    }
    guard let line, let known else { return line == nil && known == nil }
    if known.hasSameValue(as: line), !isSecret(line.name.canonicalName) { return true }
    return known.bytes == storedForm(of: line.name, in: fields, secret: secret)
  }

  /// Returns whether both have the same `Authorization`, as far as it selects. A shared cache considers only the stored one, so
  /// that it never serves a response that a private cache stored for a user.
  static func haveSameCredentials(
    _ metadata: StoredMetadata, _ request: HTTPRequest, secret: DigestSecret, mode: CacheMode
  ) -> Bool {
    let kept = metadata.request.headerFields
    if kept.isEmpty, mode == .shared || !request.headerFields.contains(.authorization) { return true }
    let stored = kept.first(.authorization)?.bytes
    return stored == (mode == .shared ? nil : storedForm(of: .authorization, in: request.headerFields, secret: secret))
  }

  /// Returns whether both have the same `Accept-Encoding`, if `Vary` lists it.
  static func haveSameCodings(_ metadata: StoredMetadata, _ request: HTTPRequest, secret: DigestSecret) -> Bool {
    let fields = metadata.response.headerFields
    return fields.positions(of: .vary).allSatisfy { position in
      fields[position].withUnsafeBytesOfValue { line in
        FieldList(line).allSatisfy { member in
          !member.isName("accept-encoding") || isSame(member, metadata.request.headerFields, request.headerFields, secret)
        }
      }
    }
  }

  private static func storedForm(of name: HTTPField.Name, in fields: HTTPFields, secret: DigestSecret) -> [UInt8]? {
    guard fields.contains(name) else { return nil }
    let lines = fields[fields: name].map(\.bytes)
    if isSecret(name.canonicalName) {
      return secret.digest(of: Array(lines.map(trimmed).joined(separator: [0x3B, 0x20])), in: name.canonicalName)
    }
    if FieldValue.isPreference(name.canonicalName) {
      return preference(lines, in: name.canonicalName)
    }
    return FieldValue.normalized(lines, isList: !isSingleton(name.canonicalName))
  }

  private static func preference(_ lines: [[UInt8]], in name: String) -> [UInt8] {
    let isOrdered = name == "accept-language"
    if lines.count == 1, let plain = Preference.normalized(plain: lines[0], isOrdered: isOrdered) { return plain }
    return Preference.normalized(FieldValue.members(of: lines), isTyped: name == "accept", isOrdered: isOrdered)
  }

  private static func trimmed(_ line: [UInt8]) -> [UInt8] { FieldValue.normalized([line], isList: false) }

  private static func escaped(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in bytes {
      if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%") {
        text.append(byte)
      } else {
        text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns whether a field contains credentials, given its name in lower case.
  private static func isSecret(_ name: String) -> Bool {
    name == "authorization" || name == "cookie" || name == "proxy-authorization"
  }

  /// Returns whether a field is not a list, so commas in it are text.
  private static func isSingleton(_ name: String) -> Bool {
    name == "from" || name == "host" || name == "origin" || name == "referer" || name == "user-agent"
  }
}
