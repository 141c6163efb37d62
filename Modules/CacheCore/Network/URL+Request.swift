public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension HTTPRequest {
  /// Creates a request for a URL. User information becomes an `Authorization` field (Basic, RFC 7617). The fragment is omitted.
  ///
  /// An international host is converted to its ASCII form (`xn--…`), so that every spelling of a host names the same resource.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the URL is relative, or if the host of an HTTP URL is missing or has no ASCII
  ///   form.
  public init(
    resource url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:]
  ) throws(CacheError) {
    if let text = ResourceID.plainURI(of: url) {
      let isSecure = text.utf8.dropFirst(4).first == UInt8(ascii: "s")
      let afterScheme = text.utf8.dropFirst(isSecure ? 8 : 7)
      let path = afterScheme.firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
      self.init(
        method: method, scheme: isSecure ? "https" : "http", authority: String(text[afterScheme.startIndex..<path]),
        path: String(text[path...]), headerFields: headerFields)
    } else {
      try self.init(parsing: url, method: method, headerFields: headerFields)
    }
  }

  /// Creates a request from the parts of a URL, which Foundation parses and copies. ``init(resource:method:headerFields:)``
  /// avoids that if the text of the URL already has the parts in the form in which they are sent.
  package init(
    parsing url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:]
  ) throws(CacheError) {
    guard let scheme = url.scheme?.lowercased(), !scheme.isEmpty else {
      throw CacheError(.invalidURL, reason: "not an absolute URL (no scheme, such as https://)", url: url.address)
    }
    if scheme == "data" {
      let text = url.absoluteString
      let data = text.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "#") }
      self.init(method: method, scheme: scheme, authority: nil, path: String(Substring(data)), headerFields: headerFields)
      return
    }
    var host = url.host(percentEncoded: true) ?? ""
    if host.isEmpty, scheme == "http" || scheme == "https" {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: url.address)
    }
    if host.utf8.first != UInt8(ascii: "["), host.utf8.contains(UInt8(ascii: ":")) { host = "[\(host)]" }
    // Foundation returns an international host percent-encoded, although the text of the URL has its ASCII form.
    if scheme == "http" || scheme == "https" { host = try Self.asciiHost(host, of: url) }
    var authority = host
    if let port = url.port {
      guard (1...65535).contains(port) else {
        throw CacheError(.invalidURL, reason: "port \(port) does not exist", url: url.address)
      }
      authority += ":\(port)"
    } else if let port = Self.endlessPort(of: url) {
      throw CacheError(.invalidURL, reason: "port \(port) does not exist", url: url.address)
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

  /// Returns a port that is too large for a number, as which Foundation reports none. The request would go to the scheme's port.
  private static func endlessPort(of url: URL) -> String? {
    let text = url.absoluteString
    guard let start = text.firstRange(of: "://")?.upperBound else { return nil }
    let authority = HostPort.withoutUserInformation(String(text[start...].prefix { !"/?#".contains($0) }))
    guard let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") else { return nil }
    let port = authority[authority.index(after: colon)...]
    return port.isEmpty ? nil : String(port.prefix(20))
  }

  private static func asciiHost(_ host: String, of url: URL) throws(CacheError) -> String {
    do throws(CacheError) {
      return try HostName.ascii(host)
    } catch {
      throw error.about(url.address)
    }
  }

  /// Converts an international host in the authority to its ASCII form. Does nothing for schemes other than `http` and `https`.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the host has no ASCII form.
  package mutating func convertHost() throws(CacheError) {
    guard let authority, let scheme = scheme?.lowercased(), scheme == "http" || scheme == "https" else { return }
    let converted = try HostName.ascii(authority: authority)
    if converted != authority { self.authority = converted }
  }

  /// The URL of the request, or `nil` if the request has no scheme, no path or an invalid authority.
  public var absoluteURL: URL? {
    guard let scheme, let path else { return nil }
    if scheme == "data" { return URL(encoding: "data:\(path)") }
    return URL(encoding: "\(scheme)://\(authority ?? "")\(path)")
  }
}
