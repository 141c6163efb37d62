internal import CacheCore
internal import HTTPTypes

/// The host of a transfer, for limits per host.
enum TransferHost {
  /// Returns the host and port in normal form. Case and user information are ignored, and the scheme's default port is added (RFC
  /// 3986 §3.2, §6.2.2.1, §6.2.3).
  static func name(of request: HTTPRequest) -> String {
    let named = request.authority ?? ""
    var authority = HostPort.withoutUserInformation((try? HostName.ascii(authority: named)) ?? named).lowercased()
    // An empty port means the scheme's default port.
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
