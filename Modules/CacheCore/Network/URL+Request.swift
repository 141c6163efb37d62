public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension HTTPRequest {
  /// A request for a URL. User information in it becomes an `Authorization` field (Basic, RFC 7617), and the fragment stays here.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` when the URL is relative, or an HTTP URL has no host.
  public init(
    resource url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:]
  ) throws(CacheError) {
    guard let scheme = url.scheme?.lowercased(), !scheme.isEmpty else {
      throw CacheError(.invalidURL, reason: "not an absolute URL (no scheme, such as https://)", url: url.absoluteString)
    }
    if scheme == "data" {
      let text = url.absoluteString
      let data = text.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "#") }
      self.init(method: method, scheme: scheme, authority: nil, path: String(Substring(data)), headerFields: headerFields)
      return
    }
    let host = url.host(percentEncoded: true) ?? ""
    if host.isEmpty, scheme == "http" || scheme == "https" {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: url.absoluteString)
    }
    var authority = host
    if host.utf8.first != UInt8(ascii: "["), host.utf8.contains(UInt8(ascii: ":")) { authority = "[\(host)]" }
    if let port = url.port {
      guard (1...65535).contains(port) else {
        throw CacheError(.invalidURL, reason: "port \(port) does not exist", url: url.absoluteString)
      }
      authority += ":\(port)"
    }
    var path = url.path(percentEncoded: true)
    if path.isEmpty { path = "/" }
    if let query = url.query(percentEncoded: true) { path += "?\(query)" }
    self.init(
      method: method, scheme: scheme, authority: authority.isEmpty ? nil : authority, path: path, headerFields: headerFields)
    if let user = url.user(percentEncoded: false), self.headerFields[.authorization] == nil {
      let password = url.password(percentEncoded: false) ?? ""
      self.headerFields[.authorization] = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
    }
  }

  /// The URL that the request names, or nil when it names none.
  public var absoluteURL: URL? {
    guard let scheme, let path else { return nil }
    if scheme == "data" { return URL(string: "data:\(path)") }
    return URL(string: "\(scheme)://\(authority ?? "")\(path)")
  }
}
