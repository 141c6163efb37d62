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
