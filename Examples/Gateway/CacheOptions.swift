#if Gateway
import ArgumentParser
import ETagValidation
import GatewayServer

/// What is stored.
struct CacheOptions: ParsableArguments {
  /// A rule set, or none.
  enum Mode: String, ExpressibleByArgument, CaseIterable, Sendable {
    case `private`
    case shared
    case off
  }

  /// On or off.
  enum Switch: String, ExpressibleByArgument, CaseIterable, Sendable {
    case on
    case off
  }

  @Option(help: "Whose cache it is: of one user, or of many; off passes everything through.")
  var mode = Mode.shared

  @Option(help: ArgumentHelp("Keep answers in this folder too, so that they outlive the gateway.", valueName: "folder"))
  var cache: String?

  @Option(help: ArgumentHelp("What may be kept in memory: bytes, or with K, M, G.", valueName: "size"))
  var memory = ByteSize(256 << 20)

  @Option(help: ArgumentHelp("What may be kept in the folder.", valueName: "size"))
  var disk = ByteSize(1 << 30)

  @Option(help: "Whether lifetimes are guessed for answers that state none; on in shared mode, off in private mode.")
  var heuristics: Switch?

  @Option(help: "Whether equal requests at the same moment become one to the origin.")
  var collapse = Switch.on

  /// What they say; nil: nothing is stored.
  var settings: CacheSettings? {
    guard mode != .off else { return nil }
    return CacheSettings {
      $0.mode = mode == .shared ? .shared : .private
      $0.guesses = heuristics.map { $0 == .on }
      $0.memory = Int(clamping: memory.bytes)
      $0.folder = cache
      $0.disk = disk.bytes
      $0.collapses = collapse == .on
    }
  }
}

/// A size as people write it: `4096`, `64K`, `256M`, `2G`.
struct ByteSize: ExpressibleByArgument, Hashable, CustomStringConvertible, Sendable {
  let bytes: Int64

  init(_ bytes: Int64) { self.bytes = bytes }

  init?(argument: String) {
    let units: [Character: Int64] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let unit = argument.uppercased().last.flatMap { units[$0] }
    guard let count = Int64(unit == nil ? argument : String(argument.dropLast())), count >= 0 else { return nil }
    let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: unit ?? 1)
    guard !isTooLarge else { return nil }
    self.bytes = bytes
  }

  var description: String {
    for (letter, unit) in [("G", Int64(1) << 30), ("M", 1 << 20), ("K", 1 << 10)] where bytes > 0 && bytes % unit == 0 {
      return "\(bytes / unit)\(letter)"
    }
    return "\(bytes)"
  }
}
#endif
