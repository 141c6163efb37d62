/// The settings from the command line.
struct Settings: Equatable {
  /// An error in the arguments.
  struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }

  var file: String?
  var zipf = Workload.Zipf()
  var nodes = [1, 2, 5, 10, 20, 50, 100]
  var routings = FleetConfiguration.Routing.allCases
  var shared: [Int?] = [nil, 1_000_000_000, 4_000_000_000]
  var json: String?
  /// The parameters that all runs have in common.
  var fleet = FleetConfiguration()

  /// The parameters of all runs, in the order of the output.
  var runs: [FleetConfiguration] {
    routings.flatMap { routing in
      shared.flatMap { shared in
        nodes.map { nodes in
          var run = fleet
          (run.nodes, run.routing, run.shared) = (nodes, routing, shared)
          return run
        }
      }
    }
  }

  init(_ arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    var generating: String?
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("-"), argument != "-" else {
        guard file == nil else { throw UsageError("unexpected argument '\(argument)'") }
        file = argument
        continue
      }
      guard Self.options.contains(argument) else { throw UsageError("unknown option '\(argument)'") }
      guard let text = rest.popFirst() else { throw UsageError("\(argument) needs a value") }
      if Self.generatorOptions.contains(argument) { generating = argument }
      try set(Value(option: argument, text: text))
    }
    if let file, let generating { throw UsageError("\(generating) has no effect on the trace '\(file)'") }
    guard zipf.smallest <= zipf.largest else { throw UsageError("--sizes takes MIN..MAX with MIN not above MAX") }
    for loss in fleet.losses {
      if let node = loss.node, node >= nodes.max() ?? 0 { throw UsageError("--lose names node \(node), and no run has it") }
    }
  }

  private static let generatorOptions: Set = ["--zipf", "--objects", "--requests", "--rate", "--sizes"]
  private static let options = generatorOptions.union([
    "--nodes", "--routing", "--shared", "--memory", "--lifetime", "--latency", "--shared-latency", "--lease", "--wait",
    "--points", "--lose", "--purge", "--seed", "--json",
  ])

  private mutating func set(_ value: Value) throws(UsageError) {
    switch value.option {
    case "--nodes": nodes = try value.list { value throws(UsageError) in try value.count(atMost: 10_000) }
    case "--routing": routings = try value.list { value throws(UsageError) in try value.routing() }
    case "--shared":
      shared = try value.list { value throws(UsageError) in try value.optional { v throws(UsageError) in try v.bytes() } }
    case "--memory": fleet.memory = try value.bytes()
    case "--lifetime": fleet.lifetime = try value.optional { value throws(UsageError) in try value.seconds() }
    case "--latency": fleet.originLatency = try value.seconds()
    case "--shared-latency": fleet.sharedLatency = try value.seconds()
    case "--lease": fleet.leaseDuration = try value.optional { value throws(UsageError) in try value.positive("seconds") }
    case "--wait": fleet.longestWait = try value.seconds()
    case "--points": fleet.pointsPerNode = try value.count(atMost: 100_000)
    case "--lose": fleet.losses.append(try value.loss())
    case "--purge": fleet.purges.append(try value.purge())
    case "--seed": fleet.seed = try value.seed()
    case "--json": json = value.text
    case "--zipf": zipf.exponent = try value.number("an exponent of at least 0")
    case "--objects": zipf.objects = try value.count(atMost: 100_000_000)
    case "--requests": zipf.requests = try value.count(atMost: 1_000_000_000)
    case "--rate": zipf.rate = try value.positive("requests per second")
    default: (zipf.smallest, zipf.largest) = try value.sizes()
    }
  }
}
