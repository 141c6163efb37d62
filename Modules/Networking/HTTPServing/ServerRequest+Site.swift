#if Server
import CacheCore
import HTTPTypes

extension ServerRequest {
  /// Whether a web page of another site, or of another port, sent the request. Its browser states that in `Sec-Fetch-Site` (W3C
  /// Fetch Metadata) or `Origin` (RFC 6454 §7). Programs such as curl send neither field.
  ///
  /// An address without access control is reachable for the pages in the browsers of its operators. So requests that change
  /// something are refused if this is `true`.
  public var isCrossSite: Bool {
    let fields = head.headerFields
    let sites = Self.fetchSite.map { fields[values: $0] } ?? []
    return !sites.allSatisfy { $0 == "same-origin" || $0 == "none" } || !fields[values: .origin].allSatisfy(isOwn)
  }

  private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")

  /// Returns whether an origin has the host and port of this request. The scheme may differ, because a proxy in front may use
  /// TLS.
  private func isOwn(_ origin: String) -> Bool {
    guard let separator = origin.firstRange(of: "://") else { return false }
    let scheme = String(origin[..<separator.lowerBound])
    func normal(_ authority: String?) -> String? {
      ResourceID.authority(of: HTTPRequest(method: .get, scheme: scheme, authority: authority, path: nil))
    }
    let own = normal(head.authority)
    return own != nil && normal(String(origin[separator.upperBound...])) == own
  }
}
#endif
