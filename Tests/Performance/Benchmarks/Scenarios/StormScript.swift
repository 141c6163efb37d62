#if Origin
import CacheCore
import Foundation
import HTTPTypes
import LoopbackOrigin

/// The faults of the storm's origin for each path, and the plans of its loads. The same seed gives the same storm.
struct StormScript: Sendable {
  /// The plan of one load.
  struct Plan: Sendable {
    let number: Int
    /// The path and query.
    let target: String
    /// The number of task yields after which the caller cancels, or `nil` if it does not.
    let yieldsBeforeCancel: Int?
    let timeout: Duration?
    let priority: LoadPriority.Level
  }

  private static let paths = 48
  private static let queries = 60

  private let bodies: [Data]
  private let faults: [OriginDelivery]

  init(engine: Engine) {
    let whole = Pattern.bytes(Self.paths * 4_000 + 1)
    bodies = (0..<Self.paths).map { Data(whole.prefix($0 * 4_000 + 1)) }
    // A stall costs its load an idle timeout of a second, so only one kind in seven stalls. A connection that is closed in the
    // middle of a head crashes a process that uses URLSession on Linux.
    var kinds: [OriginDelivery] = [
      OriginDelivery(), OriginDelivery(framing: .chunked(of: 700)), OriginDelivery(), OriginDelivery(framing: .untilClose),
      .fault(.cut(afterBodyBytes: 900)), .fault(.resetBeforeHead), .fault(.reset(afterBodyBytes: 2_000)),
      OriginDelivery(framing: .chunked(of: 500), fault: .cut(afterBodyBytes: 1_200)), .fault(.closeBeforeHead),
      .fault(.garbage), OriginDelivery(framing: .claimedLength(300_000)), .fault(.stall(afterBodyBytes: 100)),
      .fault(.stallBeforeHead), OriginDelivery(headDelay: .milliseconds(3), closesAfterwards: true), OriginDelivery(),
    ]
    if engine != .session { kinds.append(.fault(.closeMidHead)) }
    faults = (0..<Self.paths).map { kinds[$0 % kinds.count] }
  }

  func publish(on origin: OriginServer) {
    for (index, body) in bodies.enumerated() {
      origin.setRoute(
        "/\(index)",
        Route(
          body, etag: .strong("\(index)"), fields: [.cacheControl: index.isMultiple(of: 2) ? "max-age=0" : "max-age=60"],
          delivery: faults[index]))
    }
  }

  func plans(_ count: Int, seed: UInt64) -> [Plan] {
    var dice = Dice(seed: seed)
    return (0..<count).map { number in
      let path = Int.random(in: 0..<Self.paths, using: &dice)
      let query = Int.random(in: 0..<Self.queries, using: &dice)
      let yields = Int.random(in: 0..<300, using: &dice)
      let isCancelled = Int.random(in: 0..<3, using: &dice) == 0
      let isHurried = Int.random(in: 0..<4, using: &dice) == 0
      return Plan(
        number: number, target: "/\(path)?\(query)", yieldsBeforeCancel: isCancelled ? yields : nil,
        timeout: isHurried ? .milliseconds(Int.random(in: 1..<200, using: &dice)) : nil,
        priority: [.low, .normal, .high].randomElement(using: &dice) ?? .normal)
    }
  }

  /// Returns the body that a successful load of a path and query must have.
  func body(of target: String) -> Data? {
    guard let index = Int(target.dropFirst().prefix { $0 != "?" }), bodies.indices.contains(index) else { return nil }
    return bodies[index]
  }
}
#endif
