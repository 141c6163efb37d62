internal import CacheCore
internal import HTTPTypes

/// To whom a transfer goes, as far as limits tell hosts apart.
enum TransferHost {
  /// Host and port in one form, whatever their spelling: case does not count, the scheme's port may be left out, and what stands
  /// before the `@` is none of the host (RFC 3986 §3.2, §6.2.2.1, §6.2.3).
  static func name(of request: HTTPRequest) -> String {
    let named = request.authority ?? ""
    var authority = HostPort.withoutUserInformation((try? HostName.ascii(authority: named)) ?? named).lowercased()
    // An empty port is the scheme's.
    if authority.hasSuffix(":") { authority.removeLast() }
    guard let (host, port) = HostPort.split(authority), let port = port ?? standardPort(request.scheme) else { return authority }
    return "\(host):\(port)"
  }

  private static func standardPort(_ scheme: String?) -> Int? {
    switch scheme?.lowercased() {
    case "http": 80
    case "https": 443
    default: nil
    }
  }
}
