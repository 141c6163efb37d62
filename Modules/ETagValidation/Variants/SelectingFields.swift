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
    self.init(vary, always: mode == .private ? [.authorization] : []) {
      Self.storedForm(of: $0, in: request.headerFields, secret: secret)
    }
  }

  /// Creates the selecting fields of metadata, which are already in stored form.
  init(of metadata: StoredMetadata) {
    self.init(Vary(metadata.response.headerFields), always: metadata.isPart ? [.authorization, .range] : [.authorization]) {
      metadata.request.headerFields.first($0)?.bytes
    }
  }

  private init(_ vary: Vary, always: [HTTPField.Name], value: (HTTPField.Name) -> [UInt8]?) {
    var entries = vary.names.map { (name: $0, value: value($0)) }
    for name in always where !vary.names.contains(name) {
      guard let value = value(name) else { continue }
      entries.append((name, value))
    }
    entries.sort { $0.name.canonicalName < $1.name.canonicalName }
    self.entries = entries
  }

  /// The fields of the stored request. Absent ones are omitted.
  var fields: HTTPFields {
    HTTPFields(entries.compactMap { entry in entry.value.map { HTTPField(name: entry.name, value: $0) } })
  }

  /// The canonical text: one line for each field, `name=value`, or only `name` if the request does not have the field. It is
  /// empty if no field selects.
  ///
  /// The text is ASCII. Other bytes, control characters and `%` are percent-encoded, so that two texts are equal only if all
  /// bytes are equal.
  var variant: String {
    entries.map { entry in
      entry.value.map { "\(entry.name.canonicalName)=\(Self.escaped($0))" } ?? entry.name.canonicalName
    }.joined(separator: "\n")
  }

  /// Returns whether the selecting fields of `metadata` match those of `request`.
  static func match(_ metadata: StoredMetadata, _ request: HTTPRequest, secret: DigestSecret, mode: CacheMode) -> Bool {
    let fields = metadata.response.headerFields
    var namesCredentials = false
    var compared = 0
    for line in fields where line.name == .vary {
      for member in FieldList(line.value) {
        // A 304 may have added more names than a response may be stored with.
        compared += 1
        guard compared <= Vary.mostNames, isSame(member, metadata.request.headerFields, request.headerFields, secret) else {
          return false
        }
        if !namesCredentials { namesCredentials = member.isName("authorization") }
      }
    }
    return namesCredentials || haveSameCredentials(metadata, request, secret: secret, mode: mode)
  }

  /// Returns whether the field that a member of `Vary` names is equal in a stored response and in a request. An invalid name, or
  /// `*`, never matches.
  ///
  /// A line that is byte for byte equal to the stored one needs no normalization, because normalization is idempotent.
  private static func isSame(
    _ member: Substring.UTF8View, _ stored: HTTPFields, _ fields: HTTPFields, _ secret: DigestSecret
  ) -> Bool {
    guard member.allSatisfy(Directive.isToken), !member.elementsEqual(CollectionOfOne(UInt8(ascii: "*"))) else { return false }
    let known = stored.first { member.isName($0.name.canonicalName) }
    var line: HTTPField?
    for field in fields where member.isName(field.name.canonicalName) {
      // For several lines, compare the normal form.
      if line != nil { return known?.bytes == storedForm(of: field.name, in: fields, secret: secret) }
      line = field
    }
    guard let line, let known else { return line == nil && known == nil }
    if known.hasSameValue(as: line), !secrets.contains(line.name.canonicalName) { return true }
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
    let members = metadata.response.headerFields[values: .vary].flatMap { Array(FieldList($0)) }
    return members.allSatisfy { member in
      !member.isName("accept-encoding") || isSame(member, metadata.request.headerFields, request.headerFields, secret)
    }
  }

  private static func storedForm(of name: HTTPField.Name, in fields: HTTPFields, secret: DigestSecret) -> [UInt8]? {
    guard fields.contains(name) else { return nil }
    let lines = fields[fields: name].map(\.bytes)
    if secrets.contains(name.canonicalName) {
      return secret.digest(of: Array(lines.map(trimmed).joined(separator: [0x3B, 0x20])), in: name.canonicalName)
    }
    if FieldValue.isPreference(name.canonicalName) {
      return preference(lines, in: name.canonicalName)
    }
    return FieldValue.normalized(lines, isList: !singletons.contains(name.canonicalName))
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

  /// The fields that contain credentials.
  private static let secrets: Set<String> = ["authorization", "cookie", "proxy-authorization"]

  /// The fields that are not lists, so commas in them are text.
  private static let singletons: Set<String> = ["from", "host", "origin", "referer", "user-agent"]
}
