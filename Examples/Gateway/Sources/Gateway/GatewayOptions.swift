public import ArgumentParser
public import GatewayServer
public import HTTPServing
import NIOCore

/// The options of the connections to clients and to the origin.
struct PlaceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The URL of the origin: http or https, a host, an optional port, and no path.", valueName: "url"))
  var origin: OriginAddress

  @Option(help: ArgumentHelp("The address to listen on. Port 0 selects a free port.", valueName: "host:port"))
  var listen: HostAndPort = HostAndPort(host: "127.0.0.1", port: 8080)

  @Option(help: ArgumentHelp("The limit of connections to the origin. Further requests wait.", valueName: "n"))
  var originConnections = 256

  @Option(help: ArgumentHelp("The time that the origin may be silent before the response is 504.", valueName: "seconds"))
  var originTimeout = 60

  @Option(help: ArgumentHelp("The time that connecting to the origin may take.", valueName: "seconds"))
  var connectTimeout = 10

  func validate() throws {
    try check(originConnections, "--origin-connections", 1...65_536)
    try check(originTimeout, "--origin-timeout", 1...86_400)
    try check(connectTimeout, "--connect-timeout", 1...3600)
  }
}

/// The source of `Host` in requests to the origin.
enum HostChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
  case client
  case origin
}

/// The options of the fields that are added or changed.
struct FieldOptions: ParsableArguments {
  @Option(help: "The Host that the origin gets: the client's, or the origin's own.")
  var host: HostChoice = .client

  @Option(
    help: ArgumentHelp("Add Via with this name to requests and responses (default: no Via).", valueName: "name"))
  var via: String?

  @Flag(help: "Add X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto to requests.")
  var forwarded = false

  func validate() throws {
    guard let via else { return }
    guard GatewaySettings.isViaName(via) else {
      throw ValidationError("--via '\(via)' is not a name: use letters, digits, '-', '.' and '_'")
    }
  }
}

/// The options of the operation.
struct OperationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The address of the status page, in HTML and JSON (default: no page).", valueName: "host:port"))
  var status: HostAndPort?

  @Option(help: ArgumentHelp("Append a line for each response to this file. '-' is standard output.", valueName: "file"))
  var accessLog: String?

  @Option(help: "The clients that may use PURGE. 'origin' forwards PURGE to the origin.")
  var purge: PurgePermission = .loopback

  @Option(help: ArgumentHelp("The number of threads that serve connections.", valueName: "n"))
  var threads = System.coreCount

  @Option(help: ArgumentHelp("The limit of client connections. Further ones wait until one is closed.", valueName: "n"))
  var maxConnections = 1000

  @Option(
    help: ArgumentHelp(
      "The time that a client has to send a request's head, the next piece of its body, or to read a piece of a response.",
      valueName: "seconds"))
  var clientTimeout = 60

  func validate() throws {
    try check(threads, "--threads", 1...256)
    try check(maxConnections, "--max-connections", 1...1_000_000)
    try check(clientTimeout, "--client-timeout", 1...86_400)
  }
}

private func check(_ value: Int, _ name: String, _ range: ClosedRange<Int>) throws {
  guard range.contains(value) else {
    throw ValidationError("\(name) \(value) is not between \(range.lowerBound) and \(range.upperBound)")
  }
}

extension PurgePermission: @retroactive ExpressibleByArgument {}

extension OriginAddress: @retroactive ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}

extension HostAndPort: @retroactive ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}
