internal import CacheCore
internal import HTTPTypes

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
