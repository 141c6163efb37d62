internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDownloader {
  /// Returns the platform's task for a request, in the engine's session. A file is sent without copying it.
  static func task(for plan: TransferPlan, in engine: SessionEngine) -> URLSessionDataTask {
    let request = urlRequest(plan, configuration: engine.configuration)
    if case .file(let file) = plan.body { return engine.session.uploadTask(with: request, fromFile: file.url) }
    return engine.session.dataTask(with: request)
  }

  /// Converts the request for `URLSession`.
  static func urlRequest(_ plan: TransferPlan, configuration: Configuration) -> URLRequest {
    var request = URLRequest(url: plan.url)
    request.httpMethod = plan.head.method.rawValue
    request.cachePolicy = .reloadIgnoringLocalCacheData
    request.httpShouldHandleCookies = configuration.handlesCookies
    // Set by the property, because Linux ignores the initializer's parameter. Our exact time-out fires first. This one is the
    // fallback.
    request.timeoutInterval = TimeInterval(Configuration.wholeSeconds(plan.idleTimeout) + Configuration.platformGrace)
    #if !canImport(FoundationNetworking)
    request.allowsCellularAccess = plan.networkAccess.contains(.cellular)
    request.allowsExpensiveNetworkAccess = plan.networkAccess.contains(.expensive)
    request.allowsConstrainedNetworkAccess = plan.networkAccess.contains(.constrained)
    #endif
    request.setFields(plan.head.headerFields)
    if !plan.body.isEmpty, request.value(forHTTPHeaderField: "Content-Type") == nil {
      // Without the field, Foundation would send the type of a form (RFC 9110 §8.3: unknown bytes are octets).
      request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
    }
    if case .data(let data) = plan.body, !data.isEmpty { request.httpBody = data }
    return request
  }
}

extension URLRequest {
  /// The framing fields, which the platform sets itself.
  private static let framing: Set<HTTPField.Name> = [.contentLength, .transferEncoding]

  /// Sets all fields. A repeated field becomes one with a list (RFC 9110 §5.3).
  fileprivate mutating func setFields(_ fields: HTTPFields) {
    for name in Set(fields.map(\.name)) where !Self.framing.contains(name) {
      setValue(fields[name], forHTTPHeaderField: name.rawName)
    }
  }
}

/// One request and everything that is decided before its transfer is created.
struct TransferPlan: Sendable {
  /// The method, URL and fields, including those that the configuration adds.
  var head: HTTPRequest
  var url: URL
  var body: OutgoingBody
  var idleTimeout: Duration
  var networkAccess: NetworkAccess
  /// The proxy of the request, or `nil` if there is none or it is unknown.
  var proxy: ProxySettings.Proxy?
  /// The largest body, in bytes, that the reader gets together with the head, or 0 to wake it at the head.
  var collectUpTo = 0
  /// Receives the interim responses, or `nil` to drop them.
  var onInterimResponse: (@Sendable (HTTPResponse) -> Void)?

  /// Whether a proxy's response to CONNECT precedes the server's. Foundation on Linux reports both.
  var isTunnelled: Bool {
    #if canImport(FoundationNetworking)
    guard let proxy, proxy.kind != .socks5 else { return false }
    return url.scheme?.lowercased() == "https"
    #else
    return false
    #endif
  }
}
