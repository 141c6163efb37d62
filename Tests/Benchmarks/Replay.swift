import CacheCore
import CacheTesting
import Foundation
import MemoryStore

/// `replay FILE --policy P --capacity N [--bytes] [--shards N]`: the hit ratios of a recorded trace, whose lines are `time,object,size`.
struct Replay {
  private var file = ""
  private var policy = ReplayPolicy.s3fifo
  private var capacity = 0
  private var countsBytes = false
  private var shards = 1

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(of option: String) throws -> String {
      guard let value = rest.popFirst() else { throw BenchmarkFailure("\(option) takes a value") }
      return value
    }
    func number(of option: String) throws -> Int {
      guard let number = Int(try value(of: option)), number > 0 else { throw BenchmarkFailure("\(option) takes a number from 1") }
      return number
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--policy":
        let name = try value(of: argument)
        guard let known = ReplayPolicy(rawValue: name.lowercased()) else {
          throw BenchmarkFailure("there is no policy '\(name)': \(ReplayPolicy.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        policy = known
      case "--capacity": capacity = try number(of: argument)
      case "--shards": shards = try number(of: argument)
      case "--bytes": countsBytes = true
      default:
        guard file.isEmpty, !argument.hasPrefix("-") else { throw BenchmarkFailure("replay does not know '\(argument)'") }
        file = argument
      }
    }
    guard !file.isEmpty else { throw BenchmarkFailure("replay takes a file") }
    guard capacity > 0 else { throw BenchmarkFailure("replay takes --capacity N: entries, or with --bytes bytes") }
  }

  /// The lines to print.
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
      throw BenchmarkFailure("\(file) can't be read")
    }
    let limits = MemoryCache.Limits(
      cost: countsBytes ? capacity : .max, count: countsBytes ? .max : capacity, entryCost: .max)
    let cache = policy.cache(limits, shards: shards)
    var outcome = Trace.Outcome()
    let revision = Revision(high: 0, low: 1)
    for (index, line) in data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      // The end of the last line is no line of its own.
      if line.isEmpty, line.endIndex == data.endIndex { break }
      let (object, size) = try Self.parse(line, number: index + 1, file)
      let key = CacheKey(resource: object)
      let isHit = cache.entry(for: key) != nil
      outcome.add(Trace.Request(object: 0, size: size), isHit: isHit)
      if !isHit { cache.insert(MemoryEntry((), cost: size, revision: revision), for: key) }
    }
    return outcome
  }

  private static func parse(_ line: Data, number: Int, _ file: String) throws -> (object: String, size: Int) {
    let parts = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    func text(_ part: Data) -> String { String(decoding: part, as: UTF8.self).trimmingCharacters(in: .whitespaces) }
    guard parts.count == 3 else {
      throw BenchmarkFailure("\(file), line \(number): \(parts.count) fields, not time,object,size")
    }
    let (time, object, size) = (text(parts[0]), text(parts[1]), text(parts[2]))
    guard Double(time) != nil else { throw BenchmarkFailure("\(file), line \(number): the time is no number: '\(time)'") }
    guard !object.isEmpty else { throw BenchmarkFailure("\(file), line \(number): the object has no name") }
    guard let bytes = Int(size), bytes >= 0 else {
      throw BenchmarkFailure("\(file), line \(number): the size is no number of bytes: '\(size)'")
    }
    return (object, bytes)
  }
}
