package import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A reproducible sequence of requests for objects, generated from a pattern and a seed.
package struct Trace: Sendable {
  package struct Request: Sendable {
    package let object: Int
    /// The size in bytes, equal for all requests of an object.
    package let size: Int

    package init(object: Int, size: Int) { (self.object, self.size) = (object, size) }
  }

  /// The pattern of the requests.
  package enum Pattern: String, CaseIterable, Sendable {
    /// The popularity falls with the rank (Zipf's law, exponent 0.99).
    case zipf
    /// `zipf` with occasional long runs through objects that are requested only once.
    case scan
    /// `zipf` with occasional runs through the same objects, which are more than a tenth of all.
    case loop
    /// `zipf` with changing popularity: after as many requests as there are objects, every fifth rank has a new object.
    case shifting
  }

  package let requests: [Request]

  package init(requests: [Request]) { self.requests = requests }

  /// Creates a trace with the given numbers of requests and regular objects, of 256 bytes to 16 KiB each.
  package init(_ pattern: Pattern, requests count: Int, objects: Int, seed: UInt64) {
    var source = ZipfSource(objects: objects, exponent: 0.99, seed: seed)
    // The length of a run is a tenth of the number of objects. Half of the requests belong to runs.
    let run = max(1, objects / 10)
    requests = (0..<count).map { number in
      let (round, place) = number.quotientAndRemainder(dividingBy: run * 2)
      let isRun = place >= run
      let object: Int
      switch pattern {
      case .zipf: object = source.next()
      case .scan: object = isRun ? objects + round * run + place - run : source.next()
      case .loop: object = isRun ? objects + (round * run + place - run) % max(1, objects / 5) : source.next()
      case .shifting: object = Self.occupant(of: source.next(), epoch: number / objects, objects: objects)
      }
      return Request(object: object, size: Self.size(of: object))
    }
  }

  /// Returns the object at a rank.
  private static func occupant(of rank: Int, epoch: Int, objects: Int) -> Int {
    let changes = (0..<epoch).count { epoch in
      var generator = SplitMix(state: UInt64(epoch * objects + rank))
      return generator.next().isMultiple(of: 5)
    }
    return changes * objects + rank
  }

  /// Returns 256 bytes doubled up to six times: most objects are small, some are large.
  private static func size(of object: Int) -> Int {
    var generator = SplitMix(state: UInt64(object))
    let draw = generator.next()
    let doublings = min(draw.trailingZeroBitCount, 5)
    return (256 << doublings) + Int((draw >> 32) % UInt64(256 << doublings))
  }
}

extension Trace {
  /// A malformed line of a recorded trace.
  package struct LineError: Error, Equatable, CustomStringConvertible {
    /// The line number, starting at 1.
    package let line: Int
    package let reason: String

    package init(line: Int, reason: String) { (self.line, self.reason) = (line, reason) }

    package var description: String { "line \(line): \(reason)" }
  }

  /// A line of a recorded trace.
  package struct Line: Equatable, Sendable {
    /// The line number, starting at 1.
    package let number: Int
    /// The time of the request, in the unit of the trace.
    package let time: Double
    package let object: String
    /// The size in bytes.
    package let size: Int
  }

  /// Reads a recorded trace with lines of the form `time,object,size`. Lines end with LF or CRLF, which is optional for
  /// the last line.
  ///
  /// - Parameters:
  ///   - bytes: The trace. Empty input is a trace without requests.
  ///   - body: A closure that is called with the object and the size in bytes of each line, up to the first malformed
  ///     one.
  package static func read(_ bytes: UnsafeRawBufferPointer, _ body: (_ object: String, _ size: Int) -> Void) throws(LineError) {
    try readLines(bytes) { line throws(LineError) in body(line.object, line.size) }
  }

  /// Reads the lines of a recorded trace with their times.
  ///
  /// - Parameters:
  ///   - bytes: The trace. Empty input is a trace without requests.
  ///   - body: A closure that is called with each line, up to the first malformed one. An error that it throws ends the reading.
  package static func readLines(_ bytes: UnsafeRawBufferPointer, _ body: (Line) throws(LineError) -> Void) throws(LineError) {
    var rest = bytes[...]
    var number = 0
    var total = 0
    while !rest.isEmpty {
      number += 1
      var line = rest.prefix { $0 != UInt8(ascii: "\n") }
      rest = rest[line.endIndex...].dropFirst()
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      let parsed = try parse(line, number)
      let (sum, overflow) = total.addingReportingOverflow(parsed.size)
      guard !overflow else { throw LineError(line: number, reason: "the sizes add up to more than \(Int.max) bytes") }
      total = sum
      try body(parsed)
    }
  }

  private static func parse(_ line: Slice<UnsafeRawBufferPointer>, _ number: Int) throws(LineError) -> Line {
    let fields = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(text)
    func failed(_ reason: String) -> LineError { LineError(line: number, reason: reason) }
    guard fields.count == 3 else { throw failed("\(fields.count) fields, not time,object,size") }
    guard let time = Double(fields[0]) else { throw failed("the time '\(fields[0])' is not a number") }
    guard !fields[1].isEmpty else { throw failed("the object has no name") }
    guard let size = Int(fields[2]), size >= 0 else { throw failed("the size '\(fields[2])' is not a number of bytes") }
    return Line(number: number, time: time, object: fields[1], size: size)
  }

  /// Removes surrounding blanks.
  private static func text(_ field: Slice<UnsafeRawBufferPointer>) -> String {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var field = field.drop(while: isBlank)
    while let last = field.last, isBlank(last) { field.removeLast() }
    return String(decoding: field, as: UTF8.self)
  }
}

extension Trace {
  /// The results of a replay.
  package struct Outcome: Sendable {
    package private(set) var requests = 0
    package private(set) var hits = 0
    package private(set) var bytes = 0
    package private(set) var hitBytes = 0

    package init() {}

    /// Hits divided by requests, from 0 to 1.
    package var objectRatio: Double { requests > 0 ? Double(hits) / Double(requests) : 0 }
    /// Hit bytes divided by requested bytes, from 0 to 1.
    package var byteRatio: Double { bytes > 0 ? Double(hitBytes) / Double(bytes) : 0 }

    package mutating func add(_ request: Request, isHit: Bool) {
      requests += 1
      bytes += request.size
      guard isHit else { return }
      hits += 1
      hitBytes += request.size
    }
  }

  /// A hash of the keys that is equal in each run. A policy's decisions, and therefore the hit ratio, depend on it.
  private static let keyHash = {
    var generator = SplitMix(state: 1)
    return KeyHash(using: &generator)
  }()

  /// Looks up each object, and stores it after a miss with its size as the cost.
  package func replay(into store: some MemoryStoring) -> Outcome {
    var outcome = Outcome()
    let revision = Revision(high: 0, low: 1)
    for request in requests {
      let key = CacheKey(resource: String(request.object), hashedBy: Self.keyHash)
      let isHit = store.entry(for: key) != nil
      outcome.add(request, isHit: isHit)
      if !isHit { store.insert(MemoryEntry(request.object, cost: request.size, revision: revision), for: key) }
    }
    return outcome
  }
}

/// A source of ranks by Zipf's law: the probability of rank k is proportional to 1 / k^exponent.
package struct ZipfSource: Sendable {
  private let cumulative: [Double]
  private var generator: SplitMix

  package init(objects: Int, exponent: Double, seed: UInt64) {
    var sum = 0.0
    cumulative = (1...max(1, objects)).map { rank in
      sum += pow(Double(rank), -exponent)
      return sum
    }
    generator = SplitMix(state: seed)
  }

  /// Returns the next rank, starting at 0.
  package mutating func next() -> Int {
    let draw = Double(generator.next() >> 11) / 0x1p53 * (cumulative.last ?? 1)
    var (low, high) = (0, cumulative.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if cumulative[middle] < draw { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// SplitMix64 (Steele, Lea, Flood): a random number generator with equal numbers for equal seeds on every system.
package struct SplitMix: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(state: UInt64) { self.state = state }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
