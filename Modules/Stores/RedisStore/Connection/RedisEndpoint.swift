#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The address of a server.
enum RedisEndpoint: Hashable, Sendable, CustomStringConvertible {
  case host(String, Int)
  case socket(String)

  /// Creates the address of a port that a server states, or returns `nil` if there is no such port.
  init?(_ host: String, port: Int) {
    guard !host.isEmpty, (1...65_535).contains(port) else { return nil }
    self = .host(host, port)
  }

  var description: String {
    switch self {
    case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .socket(let path): path
    }
  }

  /// The name for the server's certificate. An IP address has none (RFC 6066 §3).
  var serverName: String? {
    guard case .host(let host, _) = self, !host.contains(":"), host.utf8.contains(where: { !Self.isOfIPv4($0) }) else {
      return nil
    }
    return host
  }

  private static func isOfIPv4(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}

/// The parts of a `redis`, `rediss` or `unix` URL.
struct RedisAddress: Sendable {
  let endpoint: RedisEndpoint
  let usesTLS: Bool
  let user: String?
  let password: String?
  let database: Int

  /// - Throws: `CacheError.Code.invalidConfiguration` if the URL has another form. The error does not contain the password.
  init(_ url: URL) throws(CacheError) {
    func invalid(_ reason: String) -> CacheError {
      CacheError(.invalidConfiguration, reason: "the URL of a Redis server \(reason)")
    }
    let path = url.path(percentEncoded: false)
    var number = path.drop { $0 == "/" }[...]
    switch url.scheme?.lowercased() {
    case "redis", "rediss":
      guard let host = url.host(percentEncoded: false), !host.isEmpty else { throw invalid("has no host") }
      guard let address = RedisEndpoint(host, port: url.port ?? 6_379) else { throw invalid("has the port \(url.port ?? 0)") }
      endpoint = address
      usesTLS = url.scheme?.lowercased() == "rediss"
    case "unix":
      guard !path.isEmpty else { throw invalid("has no path") }
      endpoint = .socket(path)
      usesTLS = false
      number = url.query.map { $0.hasPrefix("db=") ? $0.dropFirst(3) : $0[...] } ?? ""
    default: throw invalid("has the scheme '\(url.scheme ?? "")' instead of 'redis', 'rediss' or 'unix'")
    }
    guard let database = number.isEmpty ? 0 : Int(number), database >= 0 else {
      throw invalid("does not end with the number of a database")
    }
    self.database = database
    let user = url.user(percentEncoded: false)
    self.user = user?.isEmpty == true ? nil : user
    password = url.password(percentEncoded: false)
  }

  init(_ endpoint: RedisEndpoint, like other: RedisAddress) {
    self.endpoint = endpoint
    (usesTLS, user, password, database) = (other.usesTLS, other.user, other.password, other.database)
  }

  /// The commands that prepare a new connection.
  var handshake: [RedisCommand] {
    var commands: [RedisCommand] = []
    if let password {
      commands.append(user.map { RedisCommand("AUTH", .text($0), .text(password)) } ?? RedisCommand("AUTH", .text(password)))
    }
    if database != 0 { commands.append(RedisCommand("SELECT", .number(database))) }
    return commands + [RedisCommand("PING")]
  }
}
#endif
