#if Gateway
public import ArgumentParser
public import GatewayServer

/// Where clients come from and where their requests go.
struct PlaceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Where the origin is: http or https, a host, perhaps a port, and no path.", valueName: "url"))
  var origin: OriginAddress

  @Option(help: ArgumentHelp("Where clients are waited for; port 0 takes a free one.", valueName: "host:port"))
  var listen: HostAndPort = HostAndPort(host: "127.0.0.1", port: 8080)

  @Option(help: ArgumentHelp("Connections to the origin at once; more requests wait.", valueName: "n"))
  var originConnections = 256

  @Option(help: ArgumentHelp("How long the origin may be silent before the answer is 504.", valueName: "seconds"))
  var originTimeout = 60

  @Option(help: ArgumentHelp("How long connecting to it may take.", valueName: "seconds"))
  var connectTimeout = 10

  func validate() throws {
    try check(originConnections, "--origin-connections", 1...65_536)
    try check(originTimeout, "--origin-timeout", 1...86_400)
    try check(connectTimeout, "--connect-timeout", 1...3600)
  }
}

/// Whose name the origin sees in `Host`.
enum HostChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
  case client
  case origin
}

/// What the origin is told besides the client's own fields.
struct FieldOptions: ParsableArguments {
  @Option(help: "The Host that the origin sees: the one that the client named, or the origin's own.")
  var host: HostChoice = .client

  @Option(
    help: ArgumentHelp("Add Via with this name to requests and answers; without it nothing is added.", valueName: "name"))
  var via: String?

  @Flag(help: "Tell the origin about the client: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto.")
  var forwarded = false

  func validate() throws {
    guard let via else { return }
    guard GatewaySettings.isViaName(via) else {
      throw ValidationError("--via '\(via)' is no name: letters, digits and -._ make one")
    }
  }
}

/// How it is run.
struct OperationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Where the status page is shown, as HTML and as JSON; without it nowhere.", valueName: "host:port"))
  var status: HostAndPort?

  @Option(help: ArgumentHelp("A line for each answer, appended to this file; - is standard output.", valueName: "file"))
  var accessLog: String?

  @Option(help: "Whose PURGE is obeyed; 'origin' passes it on.")
  var purge: PurgePermission = .loopback

  @Option(help: ArgumentHelp("Threads that serve connections.", valueName: "n"))
  var threads = ProcessorCount.value

  @Option(help: ArgumentHelp("Clients' connections at once; more wait until one is closed.", valueName: "n"))
  var maxConnections = 1000

  @Option(
    help: ArgumentHelp(
      "How long a client may take for a request's head, or be silent in its body, or not take an answer.",
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
#endif
