public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Resources that go into a file, of any size: they stream there, and memory does not grow with them.
///
/// Policies, validation, redirects, sharing and errors are those of any load. The file comes into being in one step, at the end:
/// until then, and when the load fails or is cancelled, what was there before stays, whole. The bytes are written to
/// `.etagere-….part` in the same folder, which a process that is killed leaves behind.
///
/// The durable store takes its copy as the bytes come (as far as `RequestOptions.writes` allows, and as it has room for them);
/// the memory store gets none. A stored answer that may be used is copied from the store by its stream.
extension ResourceManager {
  // MARK: async

  /// Loads a URL into a file.
  ///
  /// ```swift
  /// let film = try await manager.load(url, to: folder.appending(path: "film.mp4"))
  /// print(film.file, film.source, film.bytesOnWire)
  /// ```
  ///
  /// - Parameters:
  ///   - url: what to load.
  ///   - file: the `file:` URL that it is to be at; its folder must be there. What is at that place is replaced, a link too.
  ///   - sizeLimit: bytes that the body may have; nil: any number. `RequestOptions.maximumBodySize` is about memory and does not
  ///     count here.
  ///   - isDurable: whether the bytes are flushed to the disk before the file takes its place, so that a loss of power leaves the
  ///     old file or the new one. Costs a flush.
  ///   - options: what this load sets for itself; the rest comes from the manager.
  /// - Throws: what any load throws; `CacheError.Code.fileSystem` and `CacheError.Code.diskFull`, with path and number, when the
  ///   file can't be written.
  public func load(
    _ url: URL, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> Resource<URL> {
    try await load(ResourceRequest(url, options: options), to: file, sizeLimit: sizeLimit, isDurable: isDurable)
  }

  /// Loads a request into a file: see ``load(_:to:sizeLimit:isDurable:options:)``.
  public func load(
    _ request: ResourceRequest, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false
  ) async throws(CacheError) -> Resource<URL> {
    try await load(
      request, to: FileDestination(url: file, isDurable: isDurable, calls: .system), sizeLimit: sizeLimit)
  }

  /// The same, with system calls that a test can let fail.
  package func load(
    _ request: ResourceRequest, to file: URL, calls: DraftCalls
  ) async throws(CacheError) -> Resource<URL> {
    try await load(request, to: FileDestination(url: file, isDurable: true, calls: calls), sizeLimit: nil)
  }

  private func load(
    _ request: ResourceRequest, to destination: FileDestination, sizeLimit: Int64?
  ) async throws(CacheError) -> Resource<URL> {
    let load = try fileLoad(request, sizeLimit)
    let core = core
    let task = LoadTask(priority: LoadPriority(load.priority), isHandedOut: false)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        core.startFile(
          load, destination, task,
          .init(event: nil, end: { continuation.resume(returning: $0) }, endsWithStale: true))
      }
    } onCancel: {
      task.cancel()
    }
    return try result.get()
  }

  // MARK: Events

  /// Loads a request into a file as a stream of events, progress and the result, which starts when its first event is asked for.
  ///
  /// - Parameters:
  ///   - request: what to load.
  ///   - file: see ``load(_:to:sizeLimit:isDurable:options:)``, as for the rest.
  ///   - sizeLimit: bytes that the body may have.
  ///   - isDurable: whether the bytes are flushed to the disk first.
  public func events(
    for request: ResourceRequest, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false
  ) -> ResourceEvents<URL> {
    let (core, destination) = (core, FileDestination(url: file, isDurable: isDurable, calls: .system))
    let resolved = Result { () throws(CacheError) in try fileLoad(request, sizeLimit) }
    return ResourceEvents { channel in
      do throws(CacheError) {
        let load = try resolved.get()
        let task = LoadTask(priority: LoadPriority(load.priority))
        channel.onAbandon { task.cancel() }
        core.startFile(
          load, destination, task,
          .init(event: { channel.send($0) }, end: { channel.finish(with: $0) }, endsWithStale: true))
      } catch {
        channel.fail(error)
      }
    }
  }

  // MARK: Callbacks

  /// Loads a request into a file and calls back, once.
  ///
  /// - Parameters:
  ///   - request: what to load.
  ///   - file: see ``load(_:to:sizeLimit:isDurable:options:)``, as for the rest.
  ///   - sizeLimit: bytes that the body may have.
  ///   - isDurable: whether the bytes are flushed to the disk first.
  ///   - progress: called in order, one at a time, on the same queue as `completion` (a serial one), and never after it.
  ///   - completion: called exactly once, on the options' or the manager's `CallbackQueue`.
  @discardableResult
  public func load(
    _ request: ResourceRequest, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false,
    progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<URL>, CacheError>) -> Void
  ) -> LoadTask {
    let task = LoadTask(priority: LoadPriority(request.options.priority))
    let queue = request.options.callbackQueue ?? configuration.callbackQueue
    do throws(CacheError) {
      let load = try fileLoad(request, sizeLimit)
      let callbacks = Callbacks(queue: queue, progress: progress, completion: completion)
      core.startFile(
        load, FileDestination(url: file, isDurable: isDurable, calls: .system), task,
        .init(event: { callbacks.report($0) }, end: { callbacks.complete($0) }, endsWithStale: true))
    } catch {
      task.finish()
      queue.execute { completion(.failure(error)) }
    }
    return task
  }

  private func fileLoad(_ request: ResourceRequest, _ sizeLimit: Int64?) throws(CacheError) -> ResolvedLoad {
    try ResolvedLoad(request, configuration, core).with { $0.maximumBodySize = sizeLimit ?? .max }
  }
}

extension Resource where Value == URL {
  /// The file that holds the bytes.
  public var file: URL { value }
}
