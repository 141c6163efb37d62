internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request of a chain of redirects.
struct RedirectHop: Sendable {
  var request: HTTPRequest
  var url: URL
  /// What is sent with it.
  var body: RequestBody?
  /// The URLs that redirected before it, in order.
  var chain: [URL] = []
}

/// Where a 3xx leads (RFC 9110 §15.4).
enum RedirectRules {
  /// The next step, by the rules alone; nil when the answer is none that redirects.
  ///
  /// - Throws: ``CacheError/Code/redirectRefused`` when it leads nowhere.
  static func proposal(after response: HTTPResponse, to step: RedirectHop) throws(CacheError) -> RedirectHop? {
    guard leads(response), let location = response.headerFields[.location] else { return nil }
    guard let url = URL(string: location, relativeTo: step.url)?.absoluteURL else {
      let reason = HostName.refusal(ofURL: location)?.reason ?? "not a URL"
      throw CacheError(.redirectRefused, reason: "redirected to \(location.prefix(80)): \(reason)")
    }
    var fields = step.request.headerFields
    var (method, body) = (step.request.method, step.body)
    // RFC 9110 §15.4.4, and for 301 and 302 what every client has done for thirty years (§15.4.2, note).
    if response.status.code == 303 && method != .head || [301, 302].contains(response.status.code) && method == .post {
      (method, body) = (.get, nil)
      for name in content { fields[name] = nil }
    }
    if !step.url.isSameOrigin(as: url) {
      // What was meant for one host is not told to another: credentials, and conditions on its own entity tags.
      for name in ConfidentialFields.credentials + ConfidentialFields.conditions { fields[name] = nil }
    }
    do throws(CacheError) {
      let request = try HTTPRequest(resource: url, method: method, headerFields: fields)
      return RedirectHop(request: request, url: url, body: body, chain: step.chain + [step.url])
    } catch {
      throw CacheError(.redirectRefused, reason: "redirected to \(url.address): \(error.reason)")
    }
  }

  /// What the load's handler makes of a proposal.
  ///
  /// - Returns: nil when it stops: the answer is one like any other.
  static func decide(
    _ proposal: RedirectHop, after response: HTTPResponse, to step: RedirectHop, _ handler: RedirectHandler
  ) async throws(CacheError) -> RedirectHop? {
    let decision = await handler.decide(
      Redirection(
        from: step.url, to: proposal.url, response: response, number: proposal.chain.count, request: proposal.request))
    switch decision {
    case .follow: return proposal
    case .stop: return nil
    case .refuse(let reason):
      throw CacheError(
        .redirectRefused, reason: "redirected to \(proposal.url.address): \(reason)", status: response.status.code)
    case .rewrite(var request):
      try request.convertHost()
      guard let url = request.absoluteURL else {
        throw CacheError(.redirectRefused, reason: "the redirect's handler left no URL to load")
      }
      var rewritten = proposal
      (rewritten.request, rewritten.url) = (request, url)
      if request.method != proposal.request.method { rewritten.body = nil }
      return rewritten
    }
  }

  /// What no handler can permit.
  static func check(_ next: RedirectHop, from step: RedirectHop, _ load: ResolvedRequest) throws(CacheError) {
    guard next.request.scheme == "http" || next.request.scheme == "https" else {
      throw CacheError(
        .redirectRefused, reason: "redirected to \(next.url.address): only http and https are followed")
    }
    if next.request.scheme == "http", step.request.scheme == "https", !load.allowsInsecureRedirects {
      throw CacheError(
        .redirectRefused,
        reason: "redirected to \(next.url.address): from https to http is only followed where that is allowed")
    }
    guard next.chain.count <= load.redirectLimit else {
      throw CacheError(
        .tooManyRedirects,
        reason: "redirected more than \(load.redirectLimit) times, last to \(next.url.address)")
    }
  }

  /// Whether an answer sends its reader elsewhere.
  static func leads(_ response: HTTPResponse) -> Bool {
    guard response.status.kind == .redirection else { return false }
    return [301, 302, 303, 307, 308].contains(response.status.code) && response.headerFields[.location] != nil
  }

  /// Fields that describe what is sent: without it they are untrue.
  private static let content: [HTTPField.Name] = [
    .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentDisposition, .transferEncoding,
    .expect,
  ]
}
