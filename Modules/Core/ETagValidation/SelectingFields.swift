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

  /// Returns whether the selecting fields of `metadata` match those of `request`, or are as good as equal by `negotiation`.
  static func match(
    _ metadata: StoredMetadata, _ request: HTTPRequest, secret: DigestSecret, mode: CacheMode,
    _ negotiation: ContentNegotiation = []
  ) -> Bool {
    let fields = metadata.response.headerFields
    var namesCredentials = false
    var compared = 0
    for position in fields.positions(of: .vary) {
      let areSame = fields[position].withUnsafeBytesOfValue { line in
        FieldList(line).allSatisfy { member in
          // A 304 may have added more names than a response may be stored with.
          compared += 1
          if !namesCredentials { namesCredentials = member.isName("authorization") }
          return compared <= Vary.mostNames
            && (isSame(member, metadata.request.headerFields, request.headerFields, secret)
              || (!negotiation.isEmpty && negotiation.selects(metadata, by: request, in: member)))
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
    guard member.allSatisfy(\.isTokenByte), !member.isName("*") else { return false }
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
    if isPreference(name.canonicalName) { return preference(lines, in: name.canonicalName) }
    return normalized(lines, isList: !isSingleton(name.canonicalName))
  }

  private static func preference(_ lines: [[UInt8]], in name: String) -> [UInt8] {
    let isOrdered = name == "accept-language"
    if lines.count == 1, let plain = Preference.normalized(plain: lines[0], isOrdered: isOrdered) { return plain }
    let (members, areQuotesClosed) = members(of: lines)
    // In another order, an unclosed quote could begin a quoted string with the text after it.
    guard areQuotesClosed else { return joined(members) }
    return Preference.normalized(members, isTyped: name == "accept", isOrdered: isOrdered)
  }

  /// Returns the lines as one value, without surrounding blanks. The members of a list are trimmed and joined by `, `, and empty
  /// ones are omitted. Quoted text is unchanged.
  private static func normalized(_ lines: [[UInt8]], isList: Bool) -> [UInt8] {
    joined(isList ? members(of: lines).members : lines.map(trimmed))
  }

  /// Returns the members of a list. Several lines are one list, in which a quoted string can begin in one line and end in another
  /// (RFC 9110 §5.3). The normal form, which is one line, thus has the same members.
  private static func members(of lines: [[UInt8]]) -> (members: [[UInt8]], areQuotesClosed: Bool) {
    (lines.count == 1 ? lines[0] : joined(lines)).withUnsafeBufferPointer { line in
      var list = FieldList(line)
      var members: [[UInt8]] = []
      while let member = list.next() { members.append(Array(member)) }
      return (members, list.honorsQuotes)
    }
  }

  private static func joined(_ members: [[UInt8]]) -> [UInt8] {
    Array(members.joined(separator: [UInt8(ascii: ","), 0x20]))
  }

  private static func trimmed(_ line: [UInt8]) -> [UInt8] { Array(line[...].trimmingBlanks()) }

  private static func escaped(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for byte in bytes {
      if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%") {
        text.append(byte)
      } else {
        text += byte.percentEncoded
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns whether a field contains credentials, given its name in lower case.
  private static func isSecret(_ name: String) -> Bool {
    name == "authorization" || name == "cookie" || name == "proxy-authorization"
  }

  /// Returns whether a field lists weighted alternatives (RFC 9110 §12.5).
  private static func isPreference(_ name: String) -> Bool {
    name == "accept" || name == "accept-charset" || name == "accept-encoding" || name == "accept-language"
  }

  /// Returns whether a field is not a list, so commas in it are text.
  private static func isSingleton(_ name: String) -> Bool {
    name == "from" || name == "host" || name == "origin" || name == "referer" || name == "user-agent"
  }
}

/// The request fields that selected a response, as listed by its `Vary` (RFC 9110 §12.5.5).
struct Vary {
  /// The maximum number of names. A response with more is not stored, because each request would be compared by all of them.
  static let mostNames = 64

  /// The distinct names, sorted.
  private(set) var names: [HTTPField.Name] = []
  /// Whether the response matches no request, because of `*` or an invalid name: its selecting fields are unknown (RFC 9111
  /// §4.1).
  private(set) var matchesNothing = false

  init() {}

  init(_ fields: HTTPFields) {
    for position in fields.positions(of: .vary) {
      fields[position].withUnsafeBytesOfValue { line in
        for member in FieldList(line) { add(member) }
      }
    }
    if names.count > 1 {
      names.sort { $0.canonicalName < $1.canonicalName }
      names = names.indices.filter { $0 == 0 || names[$0] != names[$0 - 1] }.map { names[$0] }
    }
    if names.count > Self.mostNames { matchesNothing = true }
  }

  private mutating func add(_ member: UnsafeBufferPointer<UInt8>) {
    // `*` is a token, so it would be accepted as a name.
    if !member.isName("*"), let name = HTTPField.Name(String(decoding: member, as: UTF8.self)) {
      names.append(name)
    } else {
      matchesNothing = true
    }
  }
}

/// A member of a content negotiation field (RFC 9110 §12.5) in normal form.
///
/// In the normal form of a field, the members are in the order of their weights, in lower case, without blanks around `;`. A
/// weight has no superfluous digits, and a weight of 1 is omitted.
///
/// Members of equal weight retain their order only in `Accept-Language`. The specification gives it no meaning there, but servers
/// use it (§12.5.4). In the other fields, the order has no meaning.
struct Preference {
  /// The weight in thousandths, 1,000 if none is stated (§12.4.2).
  let weight: Int
  /// The member without its parameters.
  let name: [UInt8]
  /// The member with its parameters.
  let text: [UInt8]

  /// Returns the normalized value of a line without weights, quotes and capital letters, or `nil` for any other line. Nearly all
  /// lines are like this, and this path costs a tenth. Every request for a response with `Vary` uses it.
  ///
  /// - Parameter isOrdered: Whether the members must retain their order.
  static func normalized(plain line: [UInt8], isOrdered: Bool) -> [UInt8]? {
    var members: [Range<Int>] = []
    members.reserveCapacity(8)
    var start: Int?
    var end = 0
    for (index, byte) in line.enumerated() {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: ";"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return nil
      case UInt8(ascii: ","):
        if let start { members.append(start..<end) }
        start = nil
      case 0x20, 0x09: continue
      default:
        start = start ?? index
        end = index + 1
      }
    }
    if let start { members.append(start..<end) }
    if !isOrdered { members.sort { line[$0].lexicographicallyPrecedes(line[$1]) } }
    var text: [UInt8] = []
    text.reserveCapacity(line.count + members.count)
    for member in members {
      if !text.isEmpty { text += [UInt8(ascii: ","), 0x20] }
      text += line[member]
    }
    return text
  }

  /// Returns the normalized value of the members of a field.
  ///
  /// - Parameters:
  ///   - members: The members of all lines of the field.
  ///   - isTyped: Whether the members are media types, whose parameters may be case-sensitive.
  ///   - isOrdered: Whether members of equal weight must retain their order.
  static func normalized(_ members: [[UInt8]], isTyped: Bool, isOrdered: Bool) -> [UInt8] {
    let sorted = members.compactMap { Preference($0, isTyped: isTyped) }.enumerated().sorted { a, b in
      guard a.element.weight == b.element.weight else { return a.element.weight > b.element.weight }
      guard !isOrdered, a.element.text != b.element.text else { return a.offset < b.offset }
      return a.element.text.lexicographicallyPrecedes(b.element.text)
    }
    return Array(sorted.map(\.element.text).joined(separator: [UInt8(ascii: ","), 0x20]))
  }

  /// Returns `nil` for a member that consists of a weight of 1 only. Nothing of it is left.
  private init?(_ member: [UInt8], isTyped: Bool) {
    // Quoted text must not be changed.
    guard !member.contains(UInt8(ascii: "\"")) else {
      (weight, name, text) = (1_000, member, member)
      return
    }
    var parts = member.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map { Array($0.trimmingBlanks()) }
    for index in parts.indices where !isTyped || index == 0 { parts[index] = parts[index].map(\.lowercased) }
    name = parts[0]
    let weights = parts.dropFirst().filter(Self.isWeight)
    weight = weights.compactMap(Self.weight).first ?? 1_000
    // With two weights, or with a parameter after the weight, recipients disagree about the meaning.
    if weights.count == 1, parts.count > 1, parts.last.flatMap(Self.weight) != nil {
      parts.removeLast()
      if weight < 1_000 { parts.append(Self.parameter(weight)) }
    }
    text = Array(parts.joined(separator: [UInt8(ascii: ";")]))
    if text.isEmpty { return nil }
  }

  /// Returns the members of a field in normal form.
  static func list(_ name: HTTPField.Name, of fields: HTTPFields) -> [Preference] {
    fields[fields: name].flatMap { field in
      field.withUnsafeBytesOfValue { FieldList($0).compactMap { Preference(Array($0), isTyped: name == .accept) } }
    }
  }

  /// Returns the parameter for a weight below 1 in thousandths, with as few digits as possible.
  private static func parameter(_ weight: Int) -> [UInt8] {
    guard weight > 0 else { return Array("q=0".utf8) }
    var (digits, weight) = (3, weight)
    while weight % 10 == 0 { (digits, weight) = (digits - 1, weight / 10) }
    let text = String(weight)
    return Array("q=0.\(String(repeating: "0", count: digits - text.utf8.count))\(text)".utf8)
  }

  private static func isWeight(_ parameter: [UInt8]) -> Bool {
    parameter.count >= 2 && parameter[0].lowercased == UInt8(ascii: "q") && parameter[1] == UInt8(ascii: "=")
  }

  /// Returns a weight such as `q=0.5` in thousandths, or `nil` if the parameter is not a valid weight.
  private static func weight(_ parameter: [UInt8]) -> Int? {
    guard isWeight(parameter) else { return nil }
    let digits = parameter.dropFirst(2)
    guard let first = digits.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1"), digits.count <= 5,
      digits.count == 1 || digits.dropFirst().first == UInt8(ascii: ".")
    else { return nil }
    var value = first == UInt8(ascii: "1") ? 1_000 : 0
    var unit = 100
    for digit in digits.dropFirst(2) {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      value += Int(digit - UInt8(ascii: "0")) * unit
      unit /= 10
    }
    return value <= 1_000 ? value : nil
  }
}

/// The content negotiation that a cache does itself, with the variants that it has stored.
///
/// It affects only lookups. What is stored does not depend on it, so that each setting can be changed for an existing store.
struct ContentNegotiation: OptionSet {
  let rawValue: UInt8

  static let languages = ContentNegotiation(rawValue: 1)
  static let images = ContentNegotiation(rawValue: 2)
}

extension ContentNegotiation {
  /// Returns whether a response that was stored for another value of a selecting field is the one that the request's value
  /// selects.
  ///
  /// - Parameter name: The name of the selecting field, in any case.
  func selects(_ metadata: StoredMetadata, by request: HTTPRequest, in name: UnsafeBufferPointer<UInt8>) -> Bool {
    if contains(.languages), name.isName("accept-language") { return selectsLanguage(metadata, by: request) }
    return contains(.images) && name.isName("accept") && selectsImage(metadata, by: request)
  }

  private func selectsLanguage(_ metadata: StoredMetadata, by request: HTTPRequest) -> Bool {
    let wanted = Preference.list(.acceptLanguage, of: request.headerFields)
    let known = Preference.list(.acceptLanguage, of: metadata.request.headerFields)
    if !wanted.isEmpty, Self.areSame(wanted, known) { return true }
    // Two languages of equal weight, or a range such as `de` for `de-AT`, leave the choice to the origin.
    guard let language = metadata.response.headerFields.single(.contentLanguage),
      let most = wanted.map(\.weight).max(), most > 0
    else { return false }
    let preferred = wanted.filter { $0.weight == most }
    return preferred.count == 1 && preferred[0].name != [UInt8(ascii: "*")] && preferred[0].name == Self.normalized(language)
  }

  private func selectsImage(_ metadata: StoredMetadata, by request: HTTPRequest) -> Bool {
    let wanted = Preference.list(.accept, of: request.headerFields)
    let known = Preference.list(.accept, of: metadata.request.headerFields)
    guard !wanted.isEmpty, !known.isEmpty, let field = metadata.response.headerFields.single(.contentType) else { return false }
    let type = Array(Self.normalized(field).prefix { $0 != UInt8(ascii: ";") && !EntityTag.isBlank($0) })
    guard type.starts(with: "image/".utf8) else { return false }
    let accepting = [type, Array("image/*".utf8), Array("*/*".utf8)].lazy.compactMap { range in
      wanted.first { $0.name == range }
    }.first
    guard let accepting, accepting.weight > 0 else { return false }
    return Self.areSame(wanted.filter(Self.isCompared), known.filter(Self.isCompared))
  }

  /// Returns whether a media type of `Accept` selects an image: neither a wildcard nor a format that every client decodes.
  private static func isCompared(_ member: Preference) -> Bool {
    ["image/jpeg", "image/png", "image/apng", "image/gif", "image/*", "*/*"].allSatisfy { !member.name.elementsEqual($0.utf8) }
  }

  /// Returns whether two lists have the same members with the same weights, in any order.
  private static func areSame(_ a: [Preference], _ b: [Preference]) -> Bool {
    func sorted(_ list: [Preference]) -> [[UInt8]] { list.map(\.text).sorted { $0.lexicographicallyPrecedes($1) } }
    return a.count == b.count && sorted(a) == sorted(b)
  }

  private static func normalized(_ field: HTTPField) -> [UInt8] {
    field.withUnsafeBytesOfValue { $0.trimmingBlanks().map(\.lowercased) }
  }
}
