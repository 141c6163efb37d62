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
