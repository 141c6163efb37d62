internal import CacheCore
internal import HTTPTypes

/// The duty of the one who asks to tell those who wait. Letting go of it tells them that nobody asks any more, so nobody waits in
/// vain.
final class CoalescingLeader: Sendable {
  private let request: PendingRequest
  private let key: CoalescingKey
  private let table: ResponseCoalescer
  private let clock: any CacheClock
  private let ending = Lock(false)

  init(_ request: PendingRequest, _ key: CoalescingKey, _ table: ResponseCoalescer, _ clock: any CacheClock) {
    self.request = request
    self.key = key
    self.table = table
    self.clock = clock
  }

  deinit { abandon() }

  /// Whether those who wait, and those who join, have been told of the end.
  var isOver: Bool { ending.withLock { $0 } }

  /// The head of a response is there that is stored, or that confirms a stored one.
  func answered(_ freshness: Freshness) { table.answered(request, key, freshness) }

  /// The answer is being stored. Others join until it is whole, which ``stored(_:status:)`` tells.
  func grows(as candidate: Candidate, in body: SharedBody) {
    table.unmark(key)
    request.tell(.growing(candidate, body))
  }

  /// Does nothing where the answer was of no use to others: that it is stored, for who asks about it, changes nothing about that.
  func stored(_ candidate: Candidate, status: Int?) {
    guard end() else { return }
    table.unmark(key)
    var kept = candidate
    // The bytes are in the stores.
    kept.data = nil
    table.end(request, key, bringing: request.brought(kept, status: status))
    request.tell(.stored(candidate, status: status))
  }

  /// - Parameter isUsual: whether that is how the origin answers: then equal requests don't wait for each other for a while.
  func unshared(_ answer: Result<HTTPResponse, CacheError>, isUsual: Bool) {
    guard end() else { return }
    if isUsual { table.mark(key, at: clock.now) }
    table.end(request, key, bringing: nil)
    request.tell(.unshared(answer))
  }

  func abandon() {
    guard end() else { return }
    table.end(request, key, bringing: nil)
    request.tell(.abandoned)
  }

  /// Whether nobody has ended it before.
  private func end() -> Bool {
    ending.withLock { isOver in
      defer { isOver = true }
      return !isOver
    }
  }
}
