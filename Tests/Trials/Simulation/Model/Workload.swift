import CacheCore
import CacheTesting
import Foundation

/// The requests of a simulation, in the order of their times.
struct Workload {
  struct Request: Equatable {
    /// Seconds since the first request.
    let time: Double
    /// The index of the object in ``Workload/keys`` and ``Workload/sizes``.
    let object: Int
  }

  /// The keys of the objects.
  private(set) var keys: [CacheKey] = []
  /// The sizes of the objects, in bytes. The size of an object never changes.
  private(set) var sizes: [Int] = []
  private(set) var requests: [Request] = []
  private var indices: [String: Int] = [:]

  /// A hash of the keys that is equal in each run. The decisions of an eviction policy depend on it.
  private static let keyHash = {
    var generator = SplitMix(state: 1)
    return KeyHash(using: &generator)
  }()

  init() {}

  /// The time of the last request, in seconds since the first one.
  var duration: Double { requests.last?.time ?? 0 }

  /// Returns the index of an object, or `nil` if no request names it.
  func index(of object: String) -> Int? { indices[object] }

  /// Appends a request. Its time must not be less than that of the previous one.
  ///
  /// - Parameter size: The size of the object in bytes. It is ignored unless the object is new.
  mutating func append(time: Double, object: String, size: Int) {
    requests.append(Request(time: time, object: index(adding: object, size)))
  }

  private mutating func index(adding object: String, _ size: Int) -> Int {
    if let index = indices[object] { return index }
    indices[object] = keys.count
    keys.append(CacheKey(resource: object, hashedBy: Self.keyHash))
    sizes.append(size)
    return keys.count - 1
  }
}

extension Workload {
  /// Reads a recorded trace, whose lines are `time,object,size`. Times are seconds and must not decrease. An object keeps the
  /// size of its first line.
  init(_ bytes: UnsafeRawBufferPointer) throws(Trace.LineError) {
    self.init()
    var (first, last) = (0.0, -Double.infinity)
    try Trace.readLines(bytes) { line throws(Trace.LineError) in
      guard line.time.isFinite else { throw Trace.LineError(line: line.number, reason: "the time '\(line.time)' is not finite") }
      guard line.time >= last else {
        throw Trace.LineError(line: line.number, reason: "the time \(line.time) is before the previous one, \(last)")
      }
      if requests.isEmpty { first = line.time }
      last = line.time
      append(time: line.time - first, object: line.object, size: line.size)
    }
  }
}

extension Workload {
  /// The parameters of a generated trace.
  struct Zipf: Codable, Equatable, Sendable {
    /// The exponent of Zipf's law: the probability of rank k is proportional to 1 / k^exponent.
    var exponent = 0.9
    var objects = 100_000
    var requests = 1_000_000
    /// The mean number of requests per second for the whole fleet. The times between requests are exponentially distributed.
    var rate = 5_000.0
    /// The smallest size in bytes.
    var smallest = 2_000
    /// The largest size in bytes. The logarithms of the sizes are uniformly distributed.
    var largest = 80_000
  }

  /// Generates a trace. Equal parameters and seeds give equal traces.
  init(_ zipf: Zipf, seed: UInt64) {
    self.init()
    var generator = SplitMix(state: seed)
    var ranks = ZipfSource(objects: zipf.objects, exponent: zipf.exponent, seed: generator.next())
    let span = log(Double(zipf.largest) / Double(max(1, zipf.smallest)))
    for rank in 0..<zipf.objects {
      let size = (Double(max(1, zipf.smallest)) * exp(span * generator.unit())).rounded()
      _ = index(adding: String(rank), min(zipf.largest, Int(size)))
    }
    var time = 0.0
    requests.reserveCapacity(zipf.requests)
    for number in 0..<zipf.requests {
      if number > 0 { time -= log(1 - generator.unit()) / zipf.rate }
      requests.append(Request(time: time, object: ranks.next()))
    }
  }
}

extension SplitMix {
  /// Returns a number from 0 up to, but not including, 1.
  mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

  /// Returns a hash of two numbers. Its bits are independent of small differences between them.
  static func mix(_ first: UInt64, _ second: UInt64) -> UInt64 {
    var inner = SplitMix(state: first)
    var outer = SplitMix(state: inner.next() ^ second)
    return outer.next()
  }
}
