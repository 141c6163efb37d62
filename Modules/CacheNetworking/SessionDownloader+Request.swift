internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDownloader {
  /// Bytes of a request's body; it is collected before it is sent.
  static let requestBodyLimit: Int64 = 64 << 20

  /// The request as `URLSession` takes it.
  static func urlRequest(
    _ head: HTTPRequest, url: URL, body: Data?, idleTimeout: Duration, configuration: Configuration
  ) -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = head.method.rawValue
    request.cachePolicy = .reloadIgnoringLocalCacheData
    request.httpShouldHandleCookies = configuration.handlesCookies
    // By the setter: Linux ignores what the initialiser is given.
    request.timeoutInterval = TimeInterval(Configuration.wholeSeconds(idleTimeout))
    request.setFields(head.headerFields, over: configuration.additionalHeaders)
    if let userAgent = configuration.userAgent, head.headerFields[.userAgent] == nil {
      request.setValue(userAgent, forHTTPHeaderField: "User-Agent")
    }
    if let body, !body.isEmpty {
      request.httpBody = body
      // Left out, Foundation would call it a form (RFC 9110 §8.3: unknown bytes are octets).
      if request.value(forHTTPHeaderField: "Content-Type") == nil {
        request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
      }
    }
    return request
  }
}

extension URLRequest {
  /// Framing is the platform's: what it sends, it measures.
  private static let framing: Set<HTTPField.Name> = [.contentLength, .transferEncoding]

  /// Sets all fields of both, `fields` winning by name. A repeated field becomes one with a list (RFC 9110 §5.3).
  fileprivate mutating func setFields(_ fields: HTTPFields, over defaults: HTTPFields) {
    for source in [defaults, fields] {
      for name in Set(source.map(\.name)) where !Self.framing.contains(name) {
        setValue(source[name], forHTTPHeaderField: name.rawName)
      }
    }
  }
}
