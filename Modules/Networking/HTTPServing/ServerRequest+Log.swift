#if Server
import CacheCore

extension ServerRequest {
  /// The target as it may be in a log: see ``logged(_:hidesQueries:)``.
  public var loggedTarget: String { Self.logged(target) }

  /// Returns a target without the secrets of the URLs in it, for a log. A URL that is encoded in the path or in a parameter has
  /// the same secrets.
  ///
  /// The user information of a URL is left out. So are the values of query parameters that grant access: signatures, tokens and
  /// keys of presigned URLs.
  ///
  /// - Parameters:
  ///   - target: The target, of which each byte is read once.
  ///   - hidesQueries: Whether everything after the first question mark is left out, for URLs with parameters of any name.
  public static func logged(_ target: String, hidesQueries: Bool = false) -> String {
    let bytes = Array(target.utf8)
    guard bytes.contains(where: { "?%@;".utf8.contains($0) }) else { return target }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count)
    // The name of the parameter at this place, until its "=".
    var nameStart: Int?
    var isHidden = false
    // The number of characters of "://" at this place, and the start of the authority after them in the text.
    var marks = 0
    var authority: Int?
    var place = 0
    while place < bytes.count {
      let (character, end) = decoded(bytes[place...])
      let isSlash = character == UInt8(ascii: "/")
      switch character {
      case UInt8(ascii: "?"), UInt8(ascii: "&"), UInt8(ascii: ";"): (nameStart, isHidden) = (end, false)
      case UInt8(ascii: "@"):
        guard let start = authority, !isHidden else { break }
        text.replaceSubrange(start..., with: "…".utf8)
      default: break
      }
      if !isHidden { text += bytes[place..<end] }
      if character == UInt8(ascii: "?"), hidesQueries { return String(decoding: text, as: UTF8.self) + "…" }
      if character == UInt8(ascii: "="), let start = nameStart {
        nameStart = nil
        isHidden = isSecret(bytes[start..<place])
        if isHidden { text += "…".utf8 }
      }
      if isSlash || character == UInt8(ascii: "?") || character == UInt8(ascii: "#") { authority = nil }
      marks = character == UInt8(ascii: ":") ? 1 : isSlash && marks > 0 ? marks + 1 : 0
      if marks == 3 { (marks, authority) = (0, text.count) }
      place = end
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the first character and its end. It can be percent-encoded, also several times (`%253F`).
  private static func decoded(_ bytes: ArraySlice<UInt8>) -> (character: UInt8, end: Int) {
    var (character, end) = (bytes[bytes.startIndex], bytes.startIndex + 1)
    while character == UInt8(ascii: "%"), bytes.endIndex - end > 1, let high = bytes[end].hexValue,
      let low = bytes[end + 1].hexValue
    {
      (character, end) = (high << 4 | low, end + 2)
    }
    return (character, end)
  }

  private static let secretNames = [
    "sig", "key", "auth", "authorization", "bearer", "jwt", "code", "otp", "nonce", "ticket", "assertion", "samlresponse",
    "policy", "session", "sessionid", "jsessionid", "sid", "hmac", "pwd",
  ].map { Array($0.utf8) }
  private static let secretParts = ["signature", "token", "secret", "passw", "credential", "apikey", "accesskey"]
    .map { Array($0.utf8) }

  /// Returns whether a name is that of a secret, in URLs of AWS, Google, Azure, CloudFront and others.
  private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
    guard name.count > 2 else { return false }
    var letters: [UInt8] = []
    var rest = name
    while !rest.isEmpty {
      let (character, end) = decoded(rest)
      rest = rest[end...]
      let letter = character | 0x20
      if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) { letters.append(letter) }
    }
    if secretNames.contains(letters) { return true }
    return letters.indices.contains { place in secretParts.contains { letters[place...].starts(with: $0) } }
  }
}
#endif
