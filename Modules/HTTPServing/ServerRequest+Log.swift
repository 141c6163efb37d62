#if Service
import CacheCore
import HTTPTypes

extension ServerRequest {
  /// The target without the values of query parameters that grant access, for a log: signatures, tokens and keys of presigned
  /// URLs. A URL that is encoded in the path or in a parameter has such parameters too.
  public var loggedTarget: String {
    let bytes = Array(target.utf8)
    guard bytes.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "%") }) else { return target }
    var text = ""
    var start = 0
    for end in bytes.indices where end > start && Self.startsParameter(bytes[end...]) {
      text += Self.visible(bytes[start..<end], isPath: start == 0)
      start = end
    }
    return text + Self.visible(bytes[start...], isPath: start == 0)
  }

  /// Returns the bytes from one separator to the next, without a secret value.
  private static func visible(_ bytes: ArraySlice<UInt8>, isPath: Bool) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard !isPath, let equals = text.firstRange(of: /=|%3[dD]/), isSecret(text[..<equals.lowerBound]) else { return text }
    return "\(text[..<equals.upperBound])…"
  }

  /// Returns whether the bytes begin with a separator of parameters, or with its percent-encoding.
  private static func startsParameter(_ bytes: ArraySlice<UInt8>) -> Bool {
    switch bytes.first {
    case UInt8(ascii: "?"), UInt8(ascii: "&"), UInt8(ascii: ";"): true
    case UInt8(ascii: "%"): ["%3F", "%26", "%3B"].contains(String(decoding: bytes.prefix(3), as: UTF8.self).uppercased())
    default: false
    }
  }

  /// Returns whether a separator and a name are those of a secret, in URLs of AWS, Google, Azure, CloudFront and others.
  private static func isSecret(_ parameter: Substring) -> Bool {
    let name = (HostName.percentDecoded(parameter) ?? String(parameter)).lowercased().filter(\.isLetter)
    return ["sig", "key", "auth", "jwt", "code", "policy", "session"].contains(name)
      || ["signature", "token", "secret", "passw", "credential", "apikey", "accesskey"].contains { name.contains($0) }
  }
}
#endif
