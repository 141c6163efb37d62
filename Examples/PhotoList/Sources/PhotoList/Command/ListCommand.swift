/// A command of the program, read from its arguments.
enum ListCommand: Equatable, Sendable {
  /// Runs all passes and prints the table, or one JSON document.
  case measure(isJSON: Bool)
  /// Serves the images until the process ends.
  case serve(port: Int, lifetime: Int)
  case help

  /// An error in the arguments.
  struct UsageError: Error, Equatable, CustomStringConvertible {
    var description: String
  }

  static let usage = """
    usage: PhotoList [measure] [--json]
           PhotoList serve [--port N] [--lifetime SECONDS]

    measure   loads 56 small images and 3 photographs from a server in this process,
              behind a link of 2 Mbit/s and 5 ms, without a cache and with one
      --json      prints one JSON document instead of the table
    serve     serves the images on 127.0.0.1, behind the same link, for the app
      --port      the port (default: 8059); 0 selects a free port
      --lifetime  the seconds for which a response is fresh (default: 30)

    On macOS, the app starts if there is no argument.

    Exit status: 0 if all counts and images are as expected, 1 if not, 64 for invalid
    arguments (EX_USAGE), 69 if the server cannot start (EX_UNAVAILABLE).
    """

  /// Reads the arguments, without the name of the program.
  init(_ arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    if rest.contains("--help") || rest.contains("-h") {
      self = .help
      return
    }
    let isServing = rest.first == "serve"
    if isServing || rest.first == "measure" { rest.removeFirst() }
    self = isServing ? try Self.serve(&rest) : try Self.measure(&rest)
  }

  private static func measure(_ rest: inout ArraySlice<String>) throws(UsageError) -> Self {
    var isJSON = false
    while let argument = rest.popFirst() {
      guard argument == "--json" else { throw UsageError(description: "unknown argument '\(argument)'") }
      isJSON = true
    }
    return .measure(isJSON: isJSON)
  }

  private static func serve(_ rest: inout ArraySlice<String>) throws(UsageError) -> Self {
    var (port, lifetime) = (8_059, 30)
    while let argument = rest.popFirst() {
      switch argument {
      case "--port": port = try number(after: argument, &rest, 0...65_535)
      case "--lifetime": lifetime = try number(after: argument, &rest, 0...31_536_000)
      default: throw UsageError(description: "unknown argument '\(argument)'")
      }
    }
    return .serve(port: port, lifetime: lifetime)
  }

  private static func number(
    after option: String, _ rest: inout ArraySlice<String>, _ range: ClosedRange<Int>
  ) throws(UsageError) -> Int {
    guard let text = rest.popFirst(), let number = Int(text), range.contains(number) else {
      throw UsageError(description: "\(option) needs a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
