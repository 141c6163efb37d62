internal import CacheCore
package import HTTPTypes

/// The directives of a `Cache-Control` field in a request or a response (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Reading never fails. Invalid input has the meaning that allows the least use of a cache.
///
/// - Directive names are case-insensitive. Blanks around commas, empty members and several field lines are accepted. Unknown
///   directives are ignored (§5.2.3).
/// - Numbers may be quoted. Numbers above 2^31 are read as 2^31 (§1.2.2). A missing, negative, fractional or otherwise invalid
///   number is read as 0, so the response is stale (§4.2.1). For `min-fresh` it is read as 2^31.
/// - If a directive occurs twice, the more restrictive value applies. That is the smaller number, or the larger one for
///   `min-fresh`. §4.2.1 allows the first value or "stale", and the smallest is never fresher than the first.
///
/// ```swift
/// let directives = CacheControl("public, max-age=60, stale-while-revalidate=30")
/// directives.maxAge  // 60 seconds
/// ```
package struct CacheControl: Hashable, Sendable {
  /// The freshness lifetime in a response (§5.2.2.1), or the maximum accepted age in a request (§5.2.1.1).
  package var maxAge: Duration?
  /// The lifetime in a shared cache, where it overrides ``maxAge``. A private cache ignores it (§5.2.2.10).
  package var sharedMaxAge: Duration?
  /// The time after the lifetime during which a response may be used while it is revalidated (RFC 5861 §3).
  package var staleWhileRevalidate: Duration?
  /// The time after the lifetime during which a response may replace an error (RFC 5861 §4).
  package var staleIfError: Duration?
  /// The minimum remaining lifetime that a request requires (§5.2.1.3).
  package var minFresh: Duration?
  /// The time after the lifetime during which a request accepts a response. It is ``anyAge`` without a number (§5.2.1.2).
  package var maxStale: Duration?

  /// Whether the message must not be stored (§5.2.1.5, §5.2.2.5).
  package var noStore = false
  /// Whether each use requires revalidation (§5.2.1.4, §5.2.2.4). It is false for the form with quoted field names, unless one of
  /// them is a field that caches depend on.
  package var noCache = false
  /// The field names of `no-cache="…"`, in lower case. They must not be used without revalidation, so the response is stored
  /// without them.
  package var noCacheFields: [String] = []
  /// Whether the content must not be changed (§5.2.1.6, §5.2.2.6).
  package var noTransform = false
  /// Whether the request must not be forwarded (§5.2.1.7).
  package var onlyIfCached = false
  /// Whether the response must not be used stale (§5.2.2.2).
  package var mustRevalidate = false
  /// Whether a shared cache must not use the response stale (§5.2.2.8).
  package var proxyRevalidate = false
  /// Whether the response may be stored only if its status code is understood (§5.2.2.3).
  package var mustUnderstand = false
  /// Whether the response may be stored although that is usually not allowed (§5.2.2.9).
  package var isPublic = false
  /// Whether a shared cache must not store the response (§5.2.2.7). It is false for the form with quoted field names, unless one
  /// of them is a field that caches depend on.
  package var isPrivate = false
  /// The field names of `private="…"`, in lower case. Shared caches store the response without them.
  package var privateFields: [String] = []
  /// Whether the response does not change while it is fresh (RFC 8246 §2).
  package var immutable = false

  /// The value of ``maxStale`` if the request states no limit.
  package static let anyAge = Duration.seconds(Int64.max)

  /// Creates an empty set of directives.
  package init() {}

  /// Creates the directives of one field line.
  package init(_ line: String) { read(line) }

  /// Creates the directives of all `Cache-Control` lines.
  package init(_ fields: HTTPFields) {
    for position in fields.positions(of: .cacheControl) { read(fields[position].value) }
  }

  /// Creates the directives of a request. `Pragma: no-cache` means `no-cache` if there is no `Cache-Control` (§5.4).
  package init(request: HTTPRequest) {
    let fields = request.headerFields
    var (hasCacheControl, isPragmatic) = (false, false)
    for position in 0..<fields.count {
      let name = fields[position].name.canonicalName
      switch name.utf8.count {
      case 6 where name == "pragma":
        let forbids = fields[position].withUnsafeBytesOfValue { FieldList($0).contains { Directive($0).name.isName("no-cache") } }
        if forbids { isPragmatic = true }
      case 13 where name == "cache-control":
        hasCacheControl = true
        read(fields[position].value)
      default: break
      }
    }
    // Field names have no meaning in a request.
    if hasCacheControl ? !noCacheFields.isEmpty : isPragmatic { noCache = true }
  }
}

extension CacheControl {
  /// Adds the directives of a field line.
  mutating func read(_ line: String) {
    var line = line
    line.withUTF8 { bytes in
      for member in FieldList(bytes) { apply(Directive(member)) }
    }
  }

  private mutating func apply(_ directive: Directive) {
    let argument = directive.argument
    switch directive.name {
    case "max-age": maxAge.lower(to: argument.seconds ?? .zero)
    case "s-maxage": sharedMaxAge.lower(to: argument.seconds ?? .zero)
    case "stale-while-revalidate": staleWhileRevalidate.lower(to: argument.seconds ?? .zero)
    case "stale-if-error": staleIfError.lower(to: argument.seconds ?? .zero)
    case "max-stale":
      if case .none = argument { maxStale.lower(to: Self.anyAge) } else { maxStale.lower(to: argument.seconds ?? .zero) }
    case "min-fresh": minFresh = max(minFresh ?? .zero, argument.seconds ?? .seconds(DeltaSeconds.limit))
    case "no-cache": if let names = argument.fieldNames { limitNoCache(to: names) } else { noCache = true }
    case "private": if let names = argument.fieldNames { limitPrivate(to: names) } else { isPrivate = true }
    default: applyFlag(directive.name)
    }
  }

  /// Adds field names to `no-cache`. Quoted names limit the directive to these fields. It applies to the whole response if there
  /// is no name, or if one is a field that caches depend on. For example, a response without its `Vary` would match every
  /// request.
  mutating func limitNoCache(to names: [String]) {
    noCacheFields += names
    if !Self.canBeLeftOut(names) { noCache = true }
  }

  mutating func limitPrivate(to names: [String]) {
    privateFields += names
    if !Self.canBeLeftOut(names) { isPrivate = true }
  }

  private static func canBeLeftOut(_ names: [String]) -> Bool {
    !names.isEmpty && names.allSatisfy { !HTTPFields.isDecisive($0) }
  }

  /// Sets a flag. An argument that the flag should not have is ignored (RFC 9111 §5.2.3, RFC 8246 §2).
  mutating func applyFlag(_ name: UnsafeBufferPointer<UInt8>) {
    switch name {
    case "no-store": noStore = true
    case "no-transform": noTransform = true
    case "only-if-cached": onlyIfCached = true
    case "must-revalidate": mustRevalidate = true
    case "proxy-revalidate": proxyRevalidate = true
    case "must-understand": mustUnderstand = true
    case "public": isPublic = true
    case "immutable": immutable = true
    default: break
    }
  }
}

/// Matches a directive's name in any case. The inlined comparison of the lengths rules out most names.
@inline(__always)
private func ~= (lowercase: StaticString, name: UnsafeBufferPointer<UInt8>) -> Bool {
  name.count == lowercase.utf8CodeUnitCount && name.isLowercased(lowercase.utf8Start)
}

extension Duration? {
  fileprivate mutating func lower(to value: Duration) { self = Swift.min(self ?? value, value) }
}

extension CacheControl {
  /// Reads the directives of a targeted field, such as `CDN-Cache-Control` (RFC 9213 §2.1). Returns `nil` if the field is absent,
  /// empty or invalid.
  ///
  /// A directive whose value has the wrong type is ignored, such as `max-age="60"` or `max-age=60.5`. A negative lifetime means
  /// stale. `no-cache` and `private` may have field names in a string.
  init?(targeted name: HTTPField.Name, of fields: HTTPFields) {
    guard fields.contains(name), let dictionary = StructuredDictionary(lines: fields[fields: name].map(\.bytes)),
      !dictionary.members.isEmpty
    else { return nil }
    self.init()
    for (key, value) in dictionary.members { consume(key, value) }
  }

  private mutating func consume(_ key: String, _ value: StructuredDictionary.Value) {
    switch (key, value) {
    case ("max-age", .integer(let seconds)): maxAge = Self.lifetime(seconds)
    case ("s-maxage", .integer(let seconds)): sharedMaxAge = Self.lifetime(seconds)
    case ("stale-while-revalidate", .integer(let seconds)): staleWhileRevalidate = Self.lifetime(seconds)
    case ("stale-if-error", .integer(let seconds)): staleIfError = Self.lifetime(seconds)
    case ("no-cache", .string(let names)): limitNoCache(to: Self.names(names))
    case ("private", .string(let names)): limitPrivate(to: Self.names(names))
    case ("no-cache", .boolean(true)): noCache = true
    case ("private", .boolean(true)): isPrivate = true
    case (_, .boolean(true)):
      var key = key
      key.withUTF8 { applyFlag($0) }
    default: break
    }
  }

  private static func lifetime(_ seconds: Int64) -> Duration { .seconds(min(max(0, seconds), DeltaSeconds.limit)) }

  private static func names(_ text: String) -> [String] {
    var text = text
    return text.withUTF8 { FieldList($0).map(\.lowercased) }
  }
}

/// A member of a directive list: `name`, `name=token` or `name="quoted"` (RFC 9111 §5.2). It is valid only as long as the line
/// that it was read from is.
struct Directive {
  enum Argument {
    case none
    case token(UnsafeBufferPointer<UInt8>)
    /// The bytes between the quotes, with their escapes.
    case quoted(UnsafeBufferPointer<UInt8>)
    /// An argument that violates the grammar: blanks around `=`, an open quote, text after the closing quote, or an invalid
    /// token.
    case unreadable
  }

  /// The name, in any case.
  let name: UnsafeBufferPointer<UInt8>
  let argument: Argument

  init(_ member: UnsafeBufferPointer<UInt8>) {
    guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else {
      (name, argument) = (member, .none)
      return
    }
    name = UnsafeBufferPointer(rebasing: member[..<equals]).trimmingBlanks()
    let tail = UnsafeBufferPointer(rebasing: member[(equals + 1)...])
    argument = name.count == equals ? Self.argument(tail) : .unreadable
  }

  private static func argument(_ text: UnsafeBufferPointer<UInt8>) -> Argument {
    guard text.first == UInt8(ascii: "\"") else {
      return !text.isEmpty && text.allSatisfy(\.isTokenByte) ? .token(text) : .unreadable
    }
    guard let close = text.closingQuote(from: 1), close + 1 == text.count else { return .unreadable }
    return .quoted(UnsafeBufferPointer(rebasing: text[1..<close]))
  }
}

extension Directive.Argument {
  /// The argument as a number of seconds, or `nil` if it does not consist of digits only.
  var seconds: Duration? {
    switch self {
    case .token(let text): DeltaSeconds.duration(text)
    case .quoted(let text): Self.unescaped(text).withUnsafeBufferPointer { DeltaSeconds.duration($0) }
    case .none, .unreadable: nil
    }
  }

  /// The field names in a quoted argument, in lower case, or `nil` if the argument is not quoted. Only quoted names are field
  /// names; with a token (`no-cache=1`) the directive applies as a whole.
  var fieldNames: [String]? {
    guard case .quoted(let text) = self else { return nil }
    return Self.unescaped(text).withUnsafeBufferPointer { FieldList($0).map(\.lowercased) }
  }

  private static func unescaped(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var escaped = false
    for byte in text {
      if byte == UInt8(ascii: "\\"), !escaped {
        escaped = true
      } else {
        bytes.append(byte)
        escaped = false
      }
    }
    return bytes
  }
}
