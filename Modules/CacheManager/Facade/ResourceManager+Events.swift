public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads the bytes of a URL as a stream of events: progress, a stale cached response, and the final response.
  ///
  /// ```swift
  /// for try await event in manager.events(for: url) {
  ///   switch event {
  ///   case .progress(let progress): bar.fraction = progress.fraction
  ///   case .stale(let old): show(old.data)
  ///   case .final(let resource): show(resource.data)
  ///   }
  /// }
  /// ```
  ///
  /// The load starts with the first call of `next()`. Ending the iteration early cancels it.
  public func events(for url: URL, options: RequestOptions = RequestOptions()) -> ResourceEvents<Data> {
    events(for: ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads the bytes of a request as a stream of events: see ``events(for:options:)``.
  public func events(for request: ResourceRequest) -> ResourceEvents<Data> { events(for: request, as: .bytes) }

  /// Loads a URL, transforms its bytes, and returns a stream of events: see ``events(for:options:)``.
  ///
  /// ```swift
  /// for try await event in manager.events(for: url, as: greeting) {
  ///   if case .final(let resource) = event { print(resource.value) }
  /// }
  /// ```
  public func events<Value: Sendable>(
    for url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> ResourceEvents<Value> {
    events(for: ResourceRequest(url, options: options), as: transform)
  }

  /// Loads a request, transforms its bytes, and returns a stream of events: see ``events(for:options:)``.
  public func events<Value: Sendable>(
    for request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> ResourceEvents<Value> {
    ResourceEvents { [core] channel in
      do throws(CacheError) {
        switch try core.begin(request, transform) {
        case .over(let result): channel.finish(with: result)
        case .underWay(let load, let known):
          let task = LoadTask(id: load.id, priority: LoadPriority(load.priority))
          channel.onAbandon { task.cancel() }
          core.start(
            load, known: known, transform, task, endsWithStale: false, event: { channel.send($0) },
            end: { channel.finish(with: $0) })
        }
      } catch {
        channel.fail(error)
      }
    }
  }
}
