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
#endif
