internal import CacheCore
internal import HTTPTypes

/// The state of a request that waits for an equal one: its limits, and the selecting fields that it has learnt while it waited.
struct CoalescingWait: Sendable {
  /// The total time that the request may wait, or `nil` if it does not wait.
  private let limit: Duration?
  /// The uptime at which the request stops waiting, or `nil` if it has not begun to wait.
  private var end: Duration?
  /// The fields that are known to select a response of the resource.
  private var selecting = Self.alwaysSelecting
  /// The number of times that the request has started again.
  private var rounds = 0

  /// One set is shared by all requests, because most requests have no other fields, and many do not read the set.
  private static let alwaysSelecting: Set<HTTPField.Name> = [.authorization]

  init(limit: Duration?) { self.limit = limit.flatMap { $0 > .zero ? $0 : nil } }

  /// Returns the remaining time to wait. Returns `nil` if no time is left, or if the request has waited three times for a
  /// response that it could not use.
  mutating func left(at uptime: Duration) -> Duration? {
    guard let limit, rounds < 3 else { return nil }
    let end = end ?? uptime + limit
    self.end = end
    return end > uptime ? end - uptime : nil
  }

  /// The state of the same request after it has waited.
  ///
  /// - Parameters:
  ///   - fields: The fields that selected a response which the request could not use.
  ///   - counts: Whether the round counts, because there was a response. A round whose leader left does not count.
  func again(knowing fields: [HTTPField.Name] = [], counts: Bool = true) -> CoalescingWait {
    var next = self
    next.selecting.formUnion(fields)
    if counts { next.rounds += 1 }
    return next
  }

  /// Returns the key that is equal for requests that may share one response. These have the same resource, the same components,
  /// and equal selecting fields as far as those are known.
  func key(of load: ResolvedRequest, _ candidates: [Candidate]) -> CoalescingKey {
    let names = candidates.reduce(into: selecting) { $0.formUnion(Planner(load).sharingFields(of: $1.metadata)) }
    var head = load.head
    if head.method != .get { head.method = .get }
    // Most requests have none of these fields.
    let fields = load.head.headerFields
    head.headerFields = names.contains(where: fields.contains) ? fields.filter { names.contains($0.name) } : [:]
    return CoalescingKey(load, head: head, timeout: load.timeout)
  }
}
