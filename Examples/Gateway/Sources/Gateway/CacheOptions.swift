import ArgumentParser
import ETagValidation
import GatewayServer

/// The options of the cache.
struct CacheOptions: ParsableArguments {
  /// The mode of the cache, or `off` for no cache.
  enum Mode: String, ExpressibleByArgument, CaseIterable, Sendable {
    case `private`
    case shared
    case off
  }

  /// A setting that is on or off.
  enum Switch: String, ExpressibleByArgument, CaseIterable, Sendable {
    case on
    case off
  }

  @Option(help: "The kind of cache: private (one user), shared (many users), or off (no cache).")
  var mode = Mode.shared

  @Option(help: ArgumentHelp("Also store responses in this folder, so that they survive a restart.", valueName: "folder"))
  var cache: String?

  @Option(help: ArgumentHelp("The size of the cache in memory, in bytes or with K, M or G.", valueName: "size"))
  var memory = ByteSize(256 << 20)

  @Option(help: ArgumentHelp("The size of the cache on disk, in bytes or with K, M or G.", valueName: "size"))
  var disk = ByteSize(1 << 30)

  @Option(help: "Whether responses without a lifetime get a heuristic one (default: on if shared, off if private).")
  var heuristics: Switch?

  @Flag(help: "Store and share responses regardless of cookies. Without it, those of a session need 'public' or a lifetime.")
  var ignoreCookies = false

  @Option(help: "Whether equal requests at the same time become one request to the origin.")
  var collapse = Switch.on

  /// The settings of the cache, or `nil` for no cache.
  var settings: CacheSettings? {
    guard mode != .off else { return nil }
    return CacheSettings {
      $0.mode = mode == .shared ? .shared : .private
      $0.guesses = heuristics.map { $0 == .on }
      $0.ignoresCookies = ignoreCookies
      $0.memory = Int(clamping: memory.bytes)
      $0.folder = cache
      $0.disk = disk.bytes
      $0.collapses = collapse == .on
    }
  }
}

/// A size in bytes: `4096`, `64K`, `256M`, `2G`.
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
