internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Where a 3xx leads (RFC 9110 §15.4).
enum Redirect {
  /// The next hop, or nil when the answer is none that redirects.
  ///
  /// - Throws: ``CacheError/Code/redirectRefused`` when it leads out of HTTP, or nowhere.
  static func target(
    of response: HTTPResponse, for request: HTTPRequest, at url: URL
  ) throws(CacheError) -> (request: HTTPRequest, url: URL)? {
    guard leads(response), let location = response.headerFields[.location] else { return nil }
    guard let next = URL(string: location, relativeTo: url)?.absoluteURL else {
      throw CacheError(.redirectRefused, reason: "redirected to \(location), which is no URL")
    }
    guard let scheme = next.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw CacheError(.redirectRefused, reason: "redirected to \(next.absoluteString): only http and https are followed")
    }
    var fields = request.headerFields
    var method = request.method
    // RFC 9110 §15.4.4, and for 301 and 302 what every client has done for thirty years (§15.4.2, note).
    if response.status.code == 303 && method != .head || [301, 302].contains(response.status.code) && method == .post {
      method = .get
    }
    let target: HTTPRequest
    do throws(CacheError) {
      if !isSameOrigin(url, next) {
        // What was meant for one host is not told to another: credentials, and conditions on its own entity tags.
        for name in confidential { fields[name] = nil }
      }
      target = try HTTPRequest(resource: next, method: method, headerFields: fields)
    } catch {
      throw CacheError(.redirectRefused, reason: "redirected to \(location): \(error.reason)")
    }
    return (target, next)
  }

  /// Whether an answer sends its reader elsewhere.
  static func leads(_ response: HTTPResponse) -> Bool {
    [301, 302, 303, 307, 308].contains(response.status.code) && response.headerFields[.location] != nil
  }

  private static let confidential: [HTTPField.Name] = [
    .authorization, .proxyAuthorization, .cookie, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
  ]

  private static func isSameOrigin(_ a: URL, _ b: URL) -> Bool {
    func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
    return a.scheme?.lowercased() == b.scheme?.lowercased() && a.host()?.lowercased() == b.host()?.lowercased()
      && port(a) == port(b)
  }
}
