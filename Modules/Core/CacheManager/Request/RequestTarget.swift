internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The target of a load, which is the original or an alternative: the request, and the downloader that sends it.
struct RequestTarget: Sendable {
  let head: HTTPRequest
  /// The URL, or `nil` if the head states it.
  let url: URL?
  /// The text of the URL if it is the effective URI, as that of most URLs is.
  let uri: String?
  let downloader: (any Downloader)?
  let isFromSchemeHandler: Bool

  /// - Throws: ``CacheError/Code/invalidURL``, or the error with which the interceptor refuses the request.
  init(
    _ url: URL, _ request: borrowing ResourceRequest, headerFields: HTTPFields, _ environment: Environment
  ) throws(CacheError) {
    var url = url
    var uri = ResourceID.plainURI(of: url)
    var head: HTTPRequest
    if let uri {
      head = HTTPRequest(plainURI: uri, method: request.method, headerFields: headerFields)
    } else {
      head = try HTTPRequest(parsing: url, method: request.method, headerFields: headerFields)
    }
    if let type = request.body?.contentType, head.headerFields[.contentType] == nil { head.headerFields[.contentType] = type }
    if environment.interceptsLookups, let interceptor = environment.interceptor {
      (head, url) = try Self.changed(head, url, by: interceptor)
      uri = ResourceID.plainURI(of: url)
    }
    let scheme = head.scheme ?? ""
    let isHTTP = scheme == "http" || scheme == "https"
    let provided = isHTTP ? environment.downloader : environment.schemeHandlers[scheme]
    (self.head, self.url, self.uri) = (head, url, uri)
    downloader = Self.resolved(provided, request.options, environment, isHTTP: isHTTP)
    isFromSchemeHandler = !isHTTP && provided != nil && request.options.keepsDownloader
  }

  /// Creates the target of a request that is sent unchanged. Returns `nil` if an interceptor may change the request, or if the
  /// target needs a URL.
  init?(plain request: HTTPRequest, _ options: RequestOptions, _ environment: Environment) {
    guard !environment.interceptsLookups, request.hasPlainTarget else { return nil }
    (head, url, uri, isFromSchemeHandler) = (request, nil, nil, false)
    downloader = Self.resolved(environment.downloader, options, environment, isHTTP: true)
  }

  /// Returns the load's own downloader or the provided one, with the hooks of the load and the interceptor. The downloader with
  /// hooks is unique, so the load is coalesced with no other.
  private static func resolved(
    _ provided: (any Downloader)?, _ options: RequestOptions, _ environment: Environment, isHTTP: Bool
  ) -> (any Downloader)? {
    let isIntercepted = isHTTP && environment.interceptsSending
    // Most loads have the provided one. Each change copies it.
    guard options.storage != nil || isIntercepted else { return provided }
    guard var downloader = options.downloader.resolved(provided) else { return nil }
    if let hooks = options.hooks, hooks.isSet { downloader = HookedDownloader(downloader, hooks: hooks) }
    if isIntercepted, let interceptor = environment.interceptor {
      downloader = InterceptedDownloader(downloader, by: interceptor)
    }
    return downloader
  }

  /// Returns the request after the interceptor has changed it. This request is loaded, even if it names another resource.
  private static func changed(
    _ original: HTTPRequest, _ url: URL, by interceptor: RequestInterceptor
  ) throws(CacheError) -> (HTTPRequest, URL) {
    var head = original
    do throws(CacheError) {
      try interceptor.willLookUp(&head)
      try head.convertHost()
    } catch {
      throw error.about(url.address)
    }
    guard head.scheme != original.scheme || head.authority != original.authority || head.path != original.path else {
      return (head, url)
    }
    guard let changed = head.absoluteURL, changed.scheme != nil else {
      throw CacheError(.invalidURL, reason: "the interceptor's request has no URL", url: url.address)
    }
    return (head, changed)
  }
}

extension RequestOptions {
  /// Whether the load has the provided downloader, or an adapted one.
  fileprivate var keepsDownloader: Bool {
    switch downloader {
    case nil, .adapted: true
    case .use, .disabled: false
    }
  }
}

/// An alternative source with its request.
struct ResolvedAlternative: Sendable {
  let alternative: AlternativeSource
  /// The target of the source, or the error for a source that cannot be requested.
  let source: Result<RequestTarget, CacheError>

  init(_ alternative: AlternativeSource, _ request: ResourceRequest, _ environment: Environment) {
    self.alternative = alternative
    let url = alternative.url
    var fields = request.headerFields
    // Conditions are about the original's responses. Credentials and cookies are for its origin.
    for name in ConfidentialFields.conditions { fields[name] = nil }
    if !url.isSameOrigin(as: request.url) { for name in ConfidentialFields.credentials { fields[name] = nil } }
    do throws(CacheError) {
      source = .success(try RequestTarget(url, request, headerFields: fields, environment))
    } catch {
      source = .failure(error.about(url.address))
    }
  }
}
