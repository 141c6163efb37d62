internal import CacheCore
internal import HTTPTypes

/// The obligation of the request that is sent to the origin to tell the waiting requests its outcome. Releasing the leader tells
/// them that the request was abandoned, so no request waits in vain.
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

  /// Whether the waiting requests, and those that join, were told of the end.
  var isOver: Bool { ending.withLock { $0 } }

  /// Records the freshness of a response whose head has arrived. The response is stored, or it confirms a stored response.
  func answered(_ freshness: Freshness) { table.answered(request, key, freshness) }

  /// Tells the waiting requests that the response is being stored. Requests can join until it is complete, which
  /// ``stored(_:status:)`` reports.
  func grows(as candidate: Candidate, in body: SharedBody) {
    table.unmark(key)
    request.tell(.growing(candidate, body))
  }

  /// Tells the waiting requests that the response is stored. Does nothing if they were told that they cannot use it. Storing the
  /// response for later requests that revalidate it does not change that.
  func stored(_ candidate: Candidate, status: Int?) {
    guard end() else { return }
    table.unmark(key)
    var kept = candidate
    // The stores have the bytes, so the coalescer does not hold them.
    kept.data = nil
    table.end(request, key, bringing: request.brought(kept, status: status))
    request.tell(.stored(candidate, status: status))
  }

  /// Tells the waiting requests that they cannot use the response.
  ///
  /// - Parameter isUsual: Whether the origin usually responds in this way. Equal requests then do not wait for each other for a
  ///   while.
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

  /// Marks the leader as ended. Returns `false` if it was ended before.
  private func end() -> Bool {
    ending.withLock { isOver in
      defer { isOver = true }
      return !isOver
    }
  }
}
