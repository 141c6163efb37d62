extension ProxySettings {
  /// Creates settings from environment variables: `http_proxy`, `https_proxy`, `all_proxy` as the default of both, and
  /// `no_proxy`.
  ///
  /// Lowercase names take precedence over uppercase ones. An empty value means no proxy, without a fallback to `all_proxy`.
  ///
  /// `HTTP_PROXY` in upper case is not read in a CGI program, which `REQUEST_METHOD` or `GATEWAY_INTERFACE` indicates. A CGI
  /// server sets it from the client's `Proxy` field, so any client could choose the proxy (CVE-2016-5385). curl never reads it.
  ///
  /// - Parameters:
  ///   - environment: The names and values of the environment, as in `ProcessInfo`.
  ///   - readsCapitalHTTP: Whether `HTTP_PROXY` is read at all. Pass `false` to match curl.
  /// - Throws: ``CacheError/Code/invalidConfiguration`` if a value is not a proxy. The error names the variable, but not the
  ///   value, which may contain a password.
  public init(environment: [String: String], readsCapitalHTTP: Bool = true) throws(CacheError) {
    let isCGI = environment["REQUEST_METHOD"] != nil || environment["GATEWAY_INTERFACE"] != nil
    let httpNames = readsCapitalHTTP && !isCGI ? ["http_proxy", "HTTP_PROXY"] : ["http_proxy"]
    let shared = try Self.proxy(["all_proxy", "ALL_PROXY"], in: environment) ?? .none
    http = try Self.proxy(httpNames, in: environment) ?? shared
    https = try Self.proxy(["https_proxy", "HTTPS_PROXY"], in: environment) ?? shared
    let list = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
    exceptions = list.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
  }

  /// Returns the outer `nil` if no variable is set, and the inner `nil` if the variable is empty.
  private static func proxy(_ names: [String], in environment: [String: String]) throws(CacheError) -> Proxy?? {
    guard let name = names.first(where: { environment[$0] != nil }), let value = environment[name] else { return nil }
    guard value.contains(where: { !$0.isWhitespace }) else { return .some(nil) }
    guard let proxy = Proxy(value) else {
      throw CacheError(.invalidConfiguration, reason: "the environment variable \(name) is not a valid proxy address")
    }
    return proxy
  }
}
