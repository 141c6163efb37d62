internal import HTTPTypes

extension CacheControl {
  /// The directives of a targeted field, `CDN-Cache-Control` for one (RFC 9213 §2.1); nil when there is none, when it is empty,
  /// or does not parse.
  ///
  /// A value of another type than its directive's is not consumed, as if the directive were not there: neither is `max-age="60"`
  /// made a number, nor `60.5`; a negative one is stale. `no-cache` and `private` may have names in a string.
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
    case (_, .boolean(true)): applyFlag(key)
    default: break
    }
  }

  private static func lifetime(_ seconds: Int64) -> Duration { .seconds(min(max(0, seconds), DeltaSeconds.limit)) }

  private static func names(_ text: String) -> [String] { FieldList(text).map { Substring($0).lowercased() } }
}
