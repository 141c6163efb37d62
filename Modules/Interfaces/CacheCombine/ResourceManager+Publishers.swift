#if canImport(Combine) || OpenCombine
public import CacheCore
public import CacheManager

#if canImport(Combine)
public import Combine
#elseif OpenCombine
public import OpenCombine
#endif

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Returns a publisher that loads the bytes of a URL and emits one value, then the completion.
  ///
  /// ```swift
  /// manager.publisher(for: url)
  ///   .map(\.data)
  ///   .sink { completion in
  ///     if case .failure(let error) = completion { report(error) }
  ///   } receiveValue: { data in
  ///     show(data)
  ///   }
  ///   .store(in: &cancellables)
  /// ```
  ///
  /// Each subscription starts a separate load with its first demand. As always, loads of the same request share one
  /// transfer. Cancelling the subscription, or releasing its `AnyCancellable`, cancels the load. The subscriber then
  /// receives nothing more, not even a completion. A call that has already begun on another thread may still run.
  ///
  /// The value is that of `ResourceManager.load(_:options:)`. With the policy `staleWhileRevalidate` it
  /// may be stale; see ``eventsPublisher(for:options:)``.
  ///
  /// The subscriber is called on the `CallbackQueue` of the options or of the manager, like the callbacks of a load. On
  /// Apple platforms, that is the main queue by default, and a memory hit is delivered immediately to a subscription on
  /// that queue. On Linux, it is `.immediate`: the thread that has the value.
  public func publisher(
    for url: URL, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<Resource<Data>, CacheError> {
    publisher(for: ResourceRequest(url, options: options), as: .bytes)
  }

  /// Returns a publisher that loads the bytes of a request: see ``publisher(for:options:)``.
  public func publisher(for request: ResourceRequest) -> AnyPublisher<Resource<Data>, CacheError> {
    publisher(for: request, as: .bytes)
  }

  /// Returns a publisher that loads a URL and transforms its bytes: see ``publisher(for:options:)``.
  ///
  /// ```swift
  /// manager.publisher(for: url, as: greeting)
  ///   .sink { _ in } receiveValue: { print($0.value) }
  ///   .store(in: &cancellables)
  /// ```
  public func publisher<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<Resource<Value>, CacheError> {
    publisher(for: ResourceRequest(url, options: options), as: transform)
  }

  /// Returns a publisher that loads a request and transforms its bytes: see ``publisher(for:options:)``.
  public func publisher<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> AnyPublisher<Resource<Value>, CacheError> {
    let queue = callbackQueue(for: request)
    var request = request
    // The subscription switches to the queue itself and checks for cancellation after that.
    request.options.callbackQueue = .immediate
    return LoadPublisher(queue: queue, merge: { _, _ in nil }) { [request] channel in
      let task = self.load(request, as: transform) { result in
        switch result {
        case .success(let resource): channel.finish(with: resource)
        case .failure(let error): channel.fail(error)
        }
      }
      channel.onAbandon { task.cancel() }
    }
    .eraseToAnyPublisher()
  }

  /// The queue on which the subscribers of a request's publishers are called.
  func callbackQueue(for request: ResourceRequest) -> CallbackQueue {
    request.options.callbackQueue ?? configuration.callbackQueue
  }
}

extension ResourceManager {
  /// Returns a publisher of the events of a load: progress, a stale cached response, and the final response. It then
  /// completes.
  ///
  /// ```swift
  /// manager.eventsPublisher(for: url)
  ///   .sink { completion in
  ///     if case .failure(let error) = completion { report(error) }
  ///   } receiveValue: { event in
  ///     switch event {
  ///     case .progress(let progress): bar.fraction = progress.fraction
  ///     case .stale(let old): show(old.data)
  ///     case .final(let resource): show(resource.data)
  ///     }
  ///   }
  ///   .store(in: &cancellables)
  /// ```
  ///
  /// Subscriptions, queues and cancellation work like those of ``publisher(for:options:)``. Events are delivered on
  /// demand. Consecutive undelivered progress reports are merged into the latest one. The completion needs no demand,
  /// but it follows all undelivered events.
  public func eventsPublisher(
    for url: URL, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<ResourceEvent<Data>, CacheError> {
    eventsPublisher(for: ResourceRequest(url, options: options), as: .bytes)
  }

  /// Returns a publisher of the events of a request's load: see ``eventsPublisher(for:options:)``.
  public func eventsPublisher(for request: ResourceRequest) -> AnyPublisher<ResourceEvent<Data>, CacheError> {
    eventsPublisher(for: request, as: .bytes)
  }

  /// Returns a publisher of the events of a load that transforms the bytes: see ``eventsPublisher(for:options:)``.
  ///
  /// ```swift
  /// manager.eventsPublisher(for: url, as: greeting)
  ///   .sink { _ in } receiveValue: { if case .final(let resource) = $0 { print(resource.value) } }
  ///   .store(in: &cancellables)
  /// ```
  public func eventsPublisher<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<ResourceEvent<Value>, CacheError> {
    eventsPublisher(for: ResourceRequest(url, options: options), as: transform)
  }

  /// Returns a publisher of the events of a request's load that transforms the bytes: see ``eventsPublisher(for:options:)``.
  public func eventsPublisher<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> AnyPublisher<ResourceEvent<Value>, CacheError> {
    LoadPublisher(
      queue: callbackQueue(for: request), merge: ResourceEvent.merge, start: events(for: request, as: transform).start
    )
    .eraseToAnyPublisher()
  }
}
#endif
