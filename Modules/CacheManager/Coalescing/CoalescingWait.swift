internal import CacheCore
internal import HTTPTypes

/// How a request waits for an equal one, and what it has learnt while it did.
struct CoalescingWait: Sendable {
  /// How long it waits, in all; nil: not at all.
  private let limit: Duration?
  /// When it stops waiting, by the clock that only durations are measured with; nil: it has not begun to.
  private var end: Duration?
  /// Fields that have been seen to select an answer of the resource.
  private var selecting = Self.alwaysSelecting
  /// How often it has begun anew.
  private var rounds = 0

  /// One set for all: most requests have no more, and many don't look.
  private static let alwaysSelecting: Set<HTTPField.Name> = [.authorization]

  init(limit: Duration?) { self.limit = limit.flatMap { $0 > .zero ? $0 : nil } }

  /// What is left of the time to wait; nil: none, or it has waited three times for what was of no use to it.
  mutating func left(at uptime: Duration) -> Duration? {
    guard let limit, rounds < 3 else { return nil }
    let end = end ?? uptime + limit
    self.end = end
    return end > uptime ? end - uptime : nil
  }

  /// The same request, after it has waited.
  ///
  /// - Parameters:
  ///   - fields: that selected an answer which was of no use to it.
  ///   - counts: whether there was an answer; who has left is nobody's fault.
  func again(knowing fields: [HTTPField.Name] = [], counts: Bool = true) -> CoalescingWait {
    var next = self
    next.selecting.formUnion(fields)
    if counts { next.rounds += 1 }
    return next
  }

  /// Equal for requests that may get one answer: of one resource, by the same components, with equal selecting fields as far as
  /// they are known.
  func key(of load: ResolvedRequest, _ candidates: [Candidate]) -> CoalescingKey {
    let names = candidates.reduce(into: selecting) { $0.formUnion(Planner(load).sharingFields(of: $1.metadata)) }
    var head = load.head
    if head.method != .get { head.method = .get }
    // As a rule the request has none of them.
    let fields = load.head.headerFields
    head.headerFields = names.contains(where: fields.contains) ? fields.filter { names.contains($0.name) } : [:]
    return CoalescingKey(load, head: head, timeout: load.timeout)
  }
}
