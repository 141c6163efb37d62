/// Requests for objects, as a cache of a size sees them: made by a recipe and a seed, so the same each time.
package struct Trace: Sendable {
  package struct Request: Sendable {
    package let object: Int
    /// Bytes; the same for each request of an object.
    package let size: Int

    package init(object: Int, size: Int) { (self.object, self.size) = (object, size) }
  }

  /// How requests come.
  package enum Pattern: String, CaseIterable, Sendable {
    /// Objects of a popularity that falls with their rank (Zipf's law, exponent 0.99).
    case zipf
    /// The same, and every now and then a long run through objects that nobody asks for again.
    case scan
    /// The same, and every now and then a run through the same objects, which are more than a tenth of all.
    case loop
    /// The same, while what is popular changes: after as many requests as there are objects, every fifth rank has a new object.
    case shifting
  }

  package let requests: [Request]

  package init(requests: [Request]) { self.requests = requests }

  /// So many requests for so many usual objects, of 256 bytes to 16 KiB each.
  package init(_ pattern: Pattern, requests count: Int, objects: Int, seed: UInt64) {
    var source = ZipfSource(objects: objects, exponent: 0.99, seed: seed)
    // A run is as long as a tenth of the objects are many; half of the requests are part of one.
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

  /// Which object has the rank.
  private static func occupant(of rank: Int, epoch: Int, objects: Int) -> Int {
    let changes = (0..<epoch).count { epoch in
      var generator = SplitMix(state: UInt64(epoch * objects + rank))
      return generator.next().isMultiple(of: 5)
    }
    return changes * objects + rank
  }

  /// Most are small, some are large: 256 bytes, doubled up to six times.
  private static func size(of object: Int) -> Int {
    var generator = SplitMix(state: UInt64(object))
    let draw = generator.next()
    let doublings = min(draw.trailingZeroBitCount, 5)
    return (256 << doublings) + Int((draw >> 32) % UInt64(256 << doublings))
  }
}
