internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request of a chain of redirects.
///
/// It is an object, because most loads have none, and every stage of a load reserves space for it.
final class RedirectHop: Sendable {
  let request: HTTPRequest
  let url: URL
  /// The body of the request.
  let body: RequestBody?
  /// The URLs that redirected before it, in order.
  let chain: [URL]

  init(request: HTTPRequest, url: URL, body: RequestBody? = nil, chain: [URL] = []) {
    (self.request, self.url, self.body, self.chain) = (request, url, body, chain)
  }
}

/// The rules for redirects (RFC 9110 §15.4).
enum RedirectRules {
  /// Returns the next hop by the rules alone, or `nil` if the response is not a redirect.
  ///
  /// - Throws: ``CacheError/Code/redirectRefused`` if the location is not a URL that can be loaded.
  static func proposal(after response: HTTPResponse, to step: RedirectHop) throws(CacheError) -> RedirectHop? {
    guard leads(response) else { return nil }
    let url = try location(of: response, relativeTo: step.url)
    var fields = step.request.headerFields
    var (method, body) = (step.request.method, step.body)
    // RFC 9110 §15.4.4. After 301 and 302, clients have always changed a POST to a GET (§15.4.2, note).
    if response.status.code == 303 && method != .head || [301, 302].contains(response.status.code) && method == .post {
      (method, body) = (.get, nil)
      for name in content { fields[name] = nil }
    }
    if !step.url.isSameOrigin(as: url) {
      // Credentials and conditions are for one origin and are not sent to another.
      for name in ConfidentialFields.credentials + ConfidentialFields.conditions { fields[name] = nil }
    }
    do throws(CacheError) {
      let request = try HTTPRequest(resource: url, method: method, headerFields: fields)
      return RedirectHop(request: request, url: url, body: body, chain: step.chain + [step.url])
    } catch {
      throw CacheError(.redirectRefused, reason: "redirected to \(url.address): \(error.reason)")
    }
  }

  /// Returns the URL that the response redirects to.
  ///
  /// Browsers refuse different `Location` lines too: one may have been added by an attacker (response splitting). User
  /// information in a URL from another party is an error, because it often disguises the host (RFC 9110 §4.2.4).
  private static func location(of response: HTTPResponse, relativeTo base: URL) throws(CacheError) -> URL {
    guard let line = response.headerFields.single(.location) else {
      throw CacheError(.redirectRefused, reason: "the response has different Location fields")
    }
    // The bytes, because servers also send paths that are not UTF-8.
    let bytes = line.withUnsafeBytesOfValue { Array($0) }
    guard let url = URL(encoding: bytes, relativeTo: base)?.absoluteURL else {
      let reason = HostName.refusal(ofURL: line.value)?.reason ?? "not a URL"
      throw CacheError(.redirectRefused, reason: "redirected to \(line.value.prefix(80)): \(reason)")
    }
    // A relative reference inherits the user information of the caller's URL.
    if url.user() != nil, URL(encoding: bytes)?.user() != nil {
      throw CacheError(.redirectRefused, reason: "redirected to \(url.address): the URL has user information")
    }
    return url
  }

  /// Lets the interceptor decide about a proposed hop.
  ///
  /// - Returns: The hop, or `nil` if the redirect is not followed. Its response is then like any other.
  static func decide(
    _ proposal: RedirectHop, after response: HTTPResponse, to step: RedirectHop, _ interceptor: RequestInterceptor
  ) async throws(CacheError) -> RedirectHop? {
    var redirection = Redirection(
      from: step.url, to: proposal.url, response: response, number: proposal.chain.count, request: proposal.request)
    do throws(CacheError) {
      try await interceptor.willRedirect(&redirection)
    } catch {
      guard error.code == .refused else { throw error }
      throw CacheError(
        .redirectRefused, reason: "redirected to \(proposal.url.address): \(error.reason)", response: response,
        underlying: error.underlying)
    }
    guard redirection.isFollowed else { return nil }
    var request = redirection.request
    guard request != proposal.request else { return proposal }
    try request.convertHost()
    guard let url = request.absoluteURL else {
      throw CacheError(.redirectRefused, reason: "the interceptor's request has no URL")
    }
    return RedirectHop(
      request: request, url: url, body: request.method == proposal.request.method ? proposal.body : nil, chain: proposal.chain)
  }

  /// Checks the rules that no interceptor can override.
  static func check(_ next: RedirectHop, from step: RedirectHop, _ load: ResolvedRequest) throws(CacheError) {
    guard next.request.scheme == "http" || next.request.scheme == "https" else {
      throw CacheError(
        .redirectRefused, reason: "redirected to \(next.url.address): only http and https are followed")
    }
    if next.request.scheme == "http", step.request.scheme == "https", !load.allowsInsecureRedirects {
      throw CacheError(
        .redirectRefused,
        reason: "redirected to \(next.url.address): a redirect from https to http is not allowed")
    }
    guard next.chain.count <= load.redirectLimit else {
      throw CacheError(
        .tooManyRedirects,
        reason: "redirected more than \(load.redirectLimit) times, last to \(next.url.address)")
    }
  }

  /// Whether a response redirects the load.
  static func leads(_ response: HTTPResponse) -> Bool {
    guard response.status.kind == .redirection else { return false }
    return [301, 302, 303, 307, 308].contains(response.status.code) && response.headerFields.contains(.location)
  }

  /// The fields that describe the content of a request. They are removed together with the content.
  private static let content: [HTTPField.Name] = [
    .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentDisposition, .transferEncoding,
    .expect,
  ]
}
