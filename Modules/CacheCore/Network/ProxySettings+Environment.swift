extension ProxySettings {
  /// The settings that a process's environment holds: `http_proxy`, `https_proxy`, `all_proxy` for both where they have none of
  /// their own, and `no_proxy`. Each in small letters or in capitals, the small ones first; an empty value means none,
  /// `all_proxy` not asked.
  ///
  /// `HTTP_PROXY` in capitals is what a CGI server makes of a client's field `Proxy`, so anybody could set it: where
  /// `REQUEST_METHOD` or `GATEWAY_INTERFACE` shows such a server, it is not read (CVE-2016-5385), and curl never reads it.
  ///
  /// - Parameters:
  ///   - environment: names and values, as `ProcessInfo` has them.
  ///   - readsCapitalHTTP: false to be as strict as curl.
  /// - Throws: ``CacheError/Code/invalidConfiguration`` when a value is no proxy. It names the variable, not the value, in which
  ///   a password may stand.
  public init(environment: [String: String], readsCapitalHTTP: Bool = true) throws(CacheError) {
    let isCGI = environment["REQUEST_METHOD"] != nil || environment["GATEWAY_INTERFACE"] != nil
    let httpNames = readsCapitalHTTP && !isCGI ? ["http_proxy", "HTTP_PROXY"] : ["http_proxy"]
    let shared = try Self.proxy(["all_proxy", "ALL_PROXY"], in: environment) ?? .none
    http = try Self.proxy(httpNames, in: environment) ?? shared
    https = try Self.proxy(["https_proxy", "HTTPS_PROXY"], in: environment) ?? shared
    let list = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
    exceptions = list.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
  }

  /// The outer nil: no such variable. The inner one: it is there and empty.
  private static func proxy(_ names: [String], in environment: [String: String]) throws(CacheError) -> Proxy?? {
    guard let name = names.first(where: { environment[$0] != nil }), let value = environment[name] else { return nil }
    guard value.contains(where: { !$0.isWhitespace }) else { return .some(nil) }
    guard let proxy = Proxy(value) else {
      throw CacheError(.invalidConfiguration, reason: "the environment's \(name) is not the address of a proxy")
    }
    return proxy
  }
}
