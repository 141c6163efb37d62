internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One load of bytes from start to end: what a flight does.
///
/// The validator decides, this carries out: it looks into the stores, asks the network, stores, and follows redirects hop by hop, so that each hop is
/// cached by its own rules.
struct Fetch: Sendable {
  let load: ResolvedLoad
  let priority: LoadPriority
  let report: @Sendable (FlightEvent<Fetched>) -> Void

  func run() async -> Result<Fetched, CacheError> {
    do throws(CacheError) {
      return .success(try await followingRedirects())
    } catch {
      return .failure(error.about(load.address))
    }
  }

  private func followingRedirects() async throws(CacheError) -> Fetched {
    var request = load.head
    var url = load.url
    var chain: [URL] = []
    var bytesOnWire: Int64 = 0
    var isShareable = true
    while true {
      var fetched = try await Hop(fetch: self, request: request, url: url, chain: chain).run()
      // A chain is as private as its most private hop, and costs what all of them cost.
      isShareable = isShareable && fetched.isShareable
      bytesOnWire += fetched.bytesOnWire
      guard load.redirectLimit > 0, let next = try Redirect.target(of: fetched.metadata.response, for: request, at: url) else {
        fetched.isShareable = isShareable
        fetched.bytesOnWire = bytesOnWire
        return try accepted(fetched)
      }
      chain.append(url)
      guard chain.count <= load.redirectLimit else {
        throw CacheError(
          .tooManyRedirects,
          reason: "redirected more than \(load.redirectLimit) times, last to \(ResolvedLoad.address(of: next.url))")
      }
      (request, url) = (next.request, next.url)
    }
  }

  private func accepted(_ fetched: Fetched) throws(CacheError) -> Fetched {
    let status = fetched.metadata.response.status
    guard load.acceptedStatuses.contains(status.code) else { throw Self.unacceptable(status) }
    return fetched
  }

  static func unacceptable(_ status: HTTPResponse.Status) -> CacheError {
    let phrase = status.reasonPhrase.isEmpty ? phrases[status.code] ?? "" : status.reasonPhrase
    let words = phrase.isEmpty ? "" : " \(phrase)"
    return CacheError(.unacceptableStatus, reason: "the server answered \(status.code)\(words)", status: status.code)
  }

  /// What the statuses mean that people meet (RFC 9110 §15): HTTP/2 has no reason phrases, and not every engine tells them.
  private static let phrases: [Int: String] = {
    let met: [HTTPResponse.Status] = [
      .movedPermanently, .found, .seeOther, .notModified, .temporaryRedirect, .permanentRedirect, .badRequest, .unauthorized,
      .forbidden, .notFound, .methodNotAllowed, .notAcceptable, .requestTimeout, .conflict, .gone, .tooManyRequests,
      .internalServerError, .notImplemented, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
    return Dictionary(met.map { ($0.code, $0.reasonPhrase) }, uniquingKeysWith: { first, _ in first })
  }()
}
