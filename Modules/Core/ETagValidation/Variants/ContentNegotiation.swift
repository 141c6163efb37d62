internal import CacheCore
internal import HTTPTypes

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
