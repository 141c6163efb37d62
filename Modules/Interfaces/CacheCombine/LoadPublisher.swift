#if canImport(Combine) || OpenCombine
internal import CacheCore
internal import CacheManager

#if canImport(Combine)
internal import Combine
#elseif OpenCombine
internal import OpenCombine
#endif

/// A publisher that starts a separate load for each subscription.
struct LoadPublisher<Output: Sendable>: Publisher {
  typealias Failure = CacheError

  /// The queue on which subscribers are called.
  let queue: CallbackQueue
  /// A closure that merges two consecutive undelivered events into one, or returns `nil` to leave both.
  let merge: @Sendable (Output, Output) -> Output?
  /// A closure that starts the load, which sends its events into the channel.
  let start: @Sendable (EventChannel<Output>) -> Void

  func receive<Downstream: Subscriber>(subscriber: Downstream)
  where Downstream.Input == Output, Downstream.Failure == CacheError {
    subscriber.receive(subscription: LoadSubscription(subscriber, on: queue, EventChannel(merging: merge), start: start))
  }
}

/// A subscription without the type of its subscriber, so that a Sendable closure can capture it.
private protocol Delivering: Sendable {
  /// Enqueues the delivery on the queue, unless it is already enqueued or running.
  func schedule()
  /// Delivers everything that can be delivered now. Called on the queue.
  func deliver()
}

/// The subscription to one load. It delivers as many events as are demanded, one at a time, and then one completion.
///
/// The thread that sends an event or adds demand enqueues the delivery on the queue. If a delivery is already enqueued
/// or running, it also delivers the new events. The subscriber is never called under a lock.
final class LoadSubscription<Downstream: Subscriber>: Subscription, Delivering
where Downstream.Input: Sendable, Downstream.Failure == CacheError {
  typealias Event = Downstream.Input
  typealias Channel = EventChannel<Event>

  // Proof of `@unchecked Sendable`: the channel is Sendable. Combine permits a publisher to call a subscriber on any thread, one
  // call at a time. `State.isDelivering` is set before the first call and cleared after the last one, under the lock.
  private struct Connection: @unchecked Sendable {
    let subscriber: Downstream
    let channel: Channel
  }

  private struct State {
    /// The subscriber and its channel, or `nil` after completion or cancellation.
    var connection: Connection?
    /// A closure that starts the load, or `nil` after the start.
    var start: (@Sendable (Channel) -> Void)?
    var demand = Subscribers.Demand.none
    /// Whether the delivery is enqueued or running.
    var isDelivering = false

    /// Adds demand.
    ///
    /// - Returns: The work to do outside the lock if the load must be started.
    mutating func add(_ demand: Subscribers.Demand) -> (start: @Sendable (Channel) -> Void, channel: Channel)? {
      guard let connection else { return nil }
      self.demand += demand
      defer { start = nil }
      return start.map { ($0, connection.channel) }
    }

    mutating func begin() -> Bool {
      guard connection != nil, !isDelivering else { return false }
      isDelivering = true
      return true
    }

    /// Removes the next delivery. If there is none, returns `nil` and ends the delivery in the same step. The sender of
    /// a later event delivers it.
    mutating func next() -> (subscriber: Downstream, delivery: Result<Event?, CacheError>)? {
      guard let connection, let delivery = connection.channel.takeNext(event: demand > .none) else {
        isDelivering = false
        return nil
      }
      if case .success(.some) = delivery { demand -= 1 } else { self.connection = nil }
      return (connection.subscriber, delivery)
    }
  }

  private let queue: CallbackQueue
  private let state: Lock<State>

  /// - Parameters:
  ///   - subscriber: The subscriber.
  ///   - queue: The queue on which the subscriber is called.
  ///   - channel: The channel, used only by this subscription.
  ///   - start: A closure that starts the load with the first demand. The load sends its events into the channel.
  init(
    _ subscriber: Downstream, on queue: CallbackQueue, _ channel: Channel, start: @escaping @Sendable (Channel) -> Void
  ) {
    self.queue = queue
    let connection = Connection(subscriber: subscriber, channel: channel)
    state = Lock(State(connection: connection, start: start))
  }

  func request(_ demand: Subscribers.Demand) {
    guard demand > .none else { return }
    if let (start, channel) = state.withLock({ $0.add(demand) }) {
      // The running load retains the subscription, because a subscriber need not. The channel releases the closure at
      // the end of the load.
      let subscription: any Delivering = self
      channel.onReady { subscription.schedule() }
      start(channel)
    }
    schedule()
  }

  func cancel() {
    // Released outside the lock, because their deinitializers may call this subscription.
    let (connection, _) = state.withLock { state in
      defer { (state.connection, state.start) = (nil, nil) }
      return (state.connection, state.start)
    }
    connection?.channel.abandon()
  }

  fileprivate func schedule() {
    guard state.withLock({ $0.begin() }) else { return }
    let subscription: any Delivering = self
    queue.execute { subscription.deliver() }
  }

  fileprivate func deliver() {
    while let (subscriber, delivery) = state.withLock({ $0.next() }) {
      switch delivery {
      case .success(let event?):
        let demand = subscriber.receive(event)
        state.withLock { $0.demand += demand }
      case .success(nil): subscriber.receive(completion: .finished)
      case .failure(let error): subscriber.receive(completion: .failure(error))
      }
    }
  }
}
#endif
