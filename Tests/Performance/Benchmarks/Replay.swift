import CacheCore
import CacheTesting
import Foundation
import MemoryStore

/// The command `replay FILE --policy P --capacity N [--bytes] [--shards N]`.
///
/// Computes the hit ratios of a recorded trace, whose lines are `time,object,size`.
struct Replay {
  private var file = ""
  private var policy = ReplayPolicy.s3fifo
  private var capacity = 0
  private var countsBytes = false
  private var shards = 1

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(of option: String) throws -> String {
      guard let value = rest.popFirst() else { throw BenchmarkFailure("\(option) needs a value") }
      return value
    }
    func number(of option: String) throws -> Int {
      guard let number = Int(try value(of: option)), number > 0 else {
        throw BenchmarkFailure("\(option) needs a number of at least 1")
      }
      return number
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--policy":
        let name = try value(of: argument)
        guard let known = ReplayPolicy(rawValue: name.lowercased()) else {
          throw BenchmarkFailure(
            "unknown policy '\(name)'; known policies: \(ReplayPolicy.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        policy = known
      case "--capacity": capacity = try number(of: argument)
      case "--shards": shards = try number(of: argument)
      case "--bytes": countsBytes = true
      default:
        guard file.isEmpty, !argument.hasPrefix("-") else { throw BenchmarkFailure("unknown argument '\(argument)' for replay") }
        file = argument
      }
    }
    guard !file.isEmpty else { throw BenchmarkFailure("replay needs a file") }
    guard capacity > 0 else { throw BenchmarkFailure("replay needs --capacity N, in entries or, with --bytes, in bytes") }
  }

  /// Replays the trace.
  ///
  /// - Returns: The text to print.
  func run() throws -> String {
    let outcome = try replay()
    func percent(_ ratio: Double) -> String { Text.decimal(ratio * 100, 2) }
    return """
      \(policy.rawValue), \(capacity) \(countsBytes ? "bytes" : "entries"), \(shards) \(shards == 1 ? "shard" : "shards"): \
      \(outcome.requests) requests
      object hit ratio \(percent(outcome.objectRatio)) %
      byte hit ratio   \(percent(outcome.byteRatio)) %
      """
  }

  private func replay() throws -> Trace.Outcome {
    guard let data = try? Data(contentsOf: URL(filePath: file), options: .mappedIfSafe) else {
      throw BenchmarkFailure("cannot read '\(file)'")
    }
    let limits = MemoryCache.Limits(
      cost: countsBytes ? capacity : .max, count: countsBytes ? .max : capacity, entryCost: .max)
    let cache = policy.cache(limits, shards: shards)
    var outcome = Trace.Outcome()
    let revision = Revision(high: 0, low: 1)
    do {
      try data.withUnsafeBytes { bytes in
        try Trace.read(bytes) { object, size in
          let key = CacheKey(resource: object)
          let isHit = cache.entry(for: key) != nil
          outcome.add(Trace.Request(object: 0, size: size), isHit: isHit)
          if !isHit { cache.insert(MemoryEntry((), cost: size, revision: revision), for: key) }
        }
      }
    } catch let error as Trace.LineError {
      throw BenchmarkFailure("\(file), \(error)")
    }
    return outcome
  }
}
