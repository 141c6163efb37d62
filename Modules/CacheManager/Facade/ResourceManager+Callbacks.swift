public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads the bytes of a URL and calls `completion` once.
  ///
  /// ```swift
  /// let task = manager.load(url) { progress in
  ///   bar.fraction = progress.fraction
  /// } completion: { result in
  ///   if case .success(let resource) = result { show(resource.data) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - url: The URL to load.
  ///   - options: The options of this load.
  ///   - progress: Called on the same queue as `completion`. On a serial queue the calls are in order and never after
  ///     `completion`.
  ///   - completion: Called exactly once, on the `CallbackQueue` of the options or of the manager. A cancelled load receives
  ///     `CacheError.cancelled`.
  @discardableResult
  public func load(
    _ url: URL, options: RequestOptions = RequestOptions(), progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Data>, CacheError>) -> Void
  ) -> LoadTask {
    load(ResourceRequest(url, options: options), as: .bytes, progress: progress, completion: completion)
  }

  /// Loads the bytes of a request and calls `completion` once: see ``load(_:options:progress:completion:)``.
  @discardableResult
  public func load(
    _ request: ResourceRequest, progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Data>, CacheError>) -> Void
  ) -> LoadTask {
    load(request, as: .bytes, progress: progress, completion: completion)
  }

  /// Loads a URL, transforms its bytes, and calls `completion` once: see ``load(_:options:progress:completion:)``.
  ///
  /// ```swift
  /// manager.load(url, as: greeting) { result in
  ///   if case .success(let resource) = result { print(resource.value) }
  /// }
  /// ```
  @discardableResult
  public func load<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions(),
    progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) -> LoadTask {
    load(ResourceRequest(url, options: options), as: transform, progress: progress, completion: completion)
  }

  /// Loads a request, transforms its bytes, and calls `completion` once: see ``load(_:options:progress:completion:)``.
  @discardableResult
  public func load<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>, progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) -> LoadTask {
    let task = LoadTask(priority: LoadPriority(request.options.priority))
    let callbacks = CallbackDelivery(
      queue: request.options.callbackQueue ?? configuration.callbackQueue, progress: progress, completion: completion)
    do throws(CacheError) {
      switch try core.begin(request, transform, id: task.id) {
      case .over(let result):
        task.finish()
        callbacks.complete(result)
      case .underWay(let load, let known):
        core.start(
          load, known: known, transform, task, event: { callbacks.report($0) }, end: { callbacks.complete($0) })
      }
    } catch {
      task.finish()
      callbacks.complete(.failure(error))
    }
    return task
  }
}
