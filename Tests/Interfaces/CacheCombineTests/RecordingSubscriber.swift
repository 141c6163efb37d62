#if canImport(Combine) || OpenCombine
import CacheCombine
import CacheCore
import CacheTesting

/// A subscriber with a configurable demand that records the values and completions it receives.
final class RecordingSubscriber<Input: Sendable>: Subscriber, Sendable {
  struct Record: Sendable {
    var values: [Input] = []
    /// The error code of each completion; `nil` for `finished`.
    var ends: [CacheError.Code?] = []
    /// The error of the last completion.
    var error: CacheError?
    /// Whether a call began before another one had ended.
    var hasOverlap = false
    /// Whether a value arrived after a completion.
    var isLate = false
    fileprivate var isReceiving = false
  }

  private let record = WatchedState(Record())
  private let subscription = Lock<(any Subscription)?>(nil)
  private let initialDemand: Subscribers.Demand
  private let onValue: @Sendable (RecordingSubscriber, Input) -> Subscribers.Demand

  /// - Parameters:
  ///   - demand: The demand that is added when the subscription arrives.
  ///   - onValue: A closure that is called with each value and returns the demand to add.
  init(
    demand: sending Subscribers.Demand = .none,
    onValue: @escaping @Sendable (RecordingSubscriber, Input) -> Subscribers.Demand = { _, _ in .none }
  ) {
    initialDemand = demand
    self.onValue = onValue
  }

  var values: [Input] { record.read { $0.values } }
  var ends: [CacheError.Code?] { record.read { $0.ends } }
  var error: CacheError? { record.read { $0.error } }
  var hasOverlap: Bool { record.read { $0.hasOverlap } }
  var isLate: Bool { record.read { $0.isLate } }

  func receive(subscription: any Subscription) {
    self.subscription.withLock { $0 = subscription }
    if initialDemand > .none { subscription.request(initialDemand) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    record.update { record in
      if record.isReceiving { record.hasOverlap = true }
      if !record.ends.isEmpty { record.isLate = true }
      record.isReceiving = true
      record.values.append(input)
    }
    let demand = onValue(self, input)
    record.update { $0.isReceiving = false }
    return demand
  }

  func receive(completion: Subscribers.Completion<CacheError>) {
    record.update { record in
      if record.isReceiving { record.hasOverlap = true }
      if case .failure(let error) = completion { record.error = error }
      record.ends.append(record.error?.code)
    }
  }

  func request(_ demand: Subscribers.Demand) { subscription.withLock { $0 }?.request(demand) }

  func cancel() { subscription.withLock { $0 }?.cancel() }

  /// Releases the subscription without cancelling it.
  func forget() {
    let former = subscription.withLock { subscription in
      defer { subscription = nil }
      return subscription
    }
    _ = former
  }

  /// Returns when the given number of values has been received.
  func received(_ count: Int) async { await record.wait { $0.values.count >= count } }

  /// Returns when a completion has been received.
  func ended() async { await record.wait { !$0.ends.isEmpty } }
}
#endif
