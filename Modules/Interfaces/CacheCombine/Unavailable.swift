#if !canImport(Combine) && !OpenCombine
public import CacheManager

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// The public methods of this module, and the Combine types that appear in their signatures. Each error names the
// disabled trait. The types have the members that callers use first, because the compiler reports a missing member
// before an unavailable method.

extension ResourceManager {
  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func publisher(
    for url: URL, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<Resource<Data>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func publisher(
    for request: ResourceRequest
  ) -> AnyPublisher<Resource<Data>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func publisher<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<Resource<Value>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func publisher<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> AnyPublisher<Resource<Value>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func eventsPublisher(
    for url: URL, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<ResourceEvent<Data>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func eventsPublisher(
    for request: ResourceRequest
  ) -> AnyPublisher<ResourceEvent<Data>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func eventsPublisher<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> AnyPublisher<ResourceEvent<Value>, CacheError> { AnyPublisher() }

  /// Unavailable without the trait `OpenCombine`.
  @available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
  public func eventsPublisher<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> AnyPublisher<ResourceEvent<Value>, CacheError> { AnyPublisher() }
}

/// Unavailable without the trait `OpenCombine`.
@available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
public struct AnyPublisher<Output, Failure: Error> {
  public func map<Other>(_ transform: (Output) -> Other) -> AnyPublisher<Other, Failure> { AnyPublisher<Other, Failure>() }

  public func mapError<Other: Error>(_ transform: (Failure) -> Other) -> AnyPublisher<Output, Other> {
    AnyPublisher<Output, Other>()
  }

  public func eraseToAnyPublisher() -> Self { self }

  public func sink(
    receiveCompletion: (Subscribers.Completion<Failure>) -> Void, receiveValue: (Output) -> Void
  ) -> AnyCancellable { AnyCancellable() }
}

/// Unavailable without the trait `OpenCombine`.
@available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
public struct AnyCancellable: Hashable {
  public func cancel() {}
  public func store(in cancellables: inout Set<AnyCancellable>) {}
  public func store(in cancellables: inout [AnyCancellable]) {}
}

/// Unavailable without the trait `OpenCombine`.
@available(*, unavailable, message: "enable the trait 'OpenCombine' of the package etagere")
public enum Subscribers {
  public enum Completion<Failure: Error> { case finished, failure(Failure) }
}
#endif
