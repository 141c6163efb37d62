public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads that stream a response into a file, in constant memory.
///
/// Policies, validation, redirects and errors work as in any load. The file appears in one step, at the end. Until then, and if
/// the load fails or is cancelled, an existing file stays unchanged. Simultaneous loads of one resource into several files make a
/// transfer each.
///
/// The bytes are first written to a hidden file in the same folder. A load that is cancelled, fails or ends with its process
/// leaves that file, and the next load of the resource into the same file requests the rest (RFC 9110 §13.1.5). This needs a
/// response with a length and a strong validator. Old parts are removed by later loads into the folder.
///
/// The durable store receives a copy while the bytes arrive, unless `RequestOptions.writes` or the store's size limit prevents
/// it. The memory store receives none. A cached response that may be used is copied from the store.
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
  ///   - url: The URL to load.
  ///   - file: The `file:` URL of the result. Its folder must exist. A file or a symbolic link at this path is replaced.
  ///   - sizeLimit: The largest body in bytes, or `nil` for no limit. `RequestOptions.maximumBodySize` limits bodies in memory
  ///     and does not apply. A larger body is `CacheError.Code.bodyTooLarge`.
  ///   - isDurable: Whether the bytes are flushed to the disk before the file appears. A power failure then leaves either the old
  ///     file or the new one.
  ///   - options: The options of this load.
  /// - Throws: The errors of any load. `CacheError.Code.fileSystem` or `CacheError.Code.diskFull`, with the path and the `errno`,
  ///   if the file cannot be written.
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

  /// Loads a request into a file with system calls that a test can replace.
  package func load(
    _ request: ResourceRequest, to file: URL, calls: FileSystemCalls
  ) async throws(CacheError) -> Resource<URL> {
    try await load(request, to: FileDestination(url: file, isDurable: true, calls: calls), sizeLimit: nil)
  }

  private func load(
    _ request: ResourceRequest, to destination: FileDestination, sizeLimit: Int64?
  ) async throws(CacheError) -> Resource<URL> {
    let load = try Self.fileLoad(request, sizeLimit, core)
    return try await core.outcome(of: load, FileForm(core: core, destination: destination)).get()
  }

  // MARK: Events

  /// Returns the events of a load into a file: its progress, then its result. The load starts when the iteration begins.
  ///
  /// ```swift
  /// for try await event in manager.events(for: url, to: folder.appending(path: "film.mp4")) {
  ///   if case .progress(let progress) = event { bar.fraction = progress.fraction }
  /// }
  /// ```
  ///
  /// For the parameters see ``load(_:to:sizeLimit:isDurable:options:)``.
  public func events(
    for url: URL, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false, options: RequestOptions = RequestOptions()
  ) -> ResourceEvents<URL> {
    events(for: ResourceRequest(url, options: options), to: file, sizeLimit: sizeLimit, isDurable: isDurable)
  }

  /// Returns the events of a request's load into a file: see ``events(for:to:sizeLimit:isDurable:options:)``.
  public func events(
    for request: ResourceRequest, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false
  ) -> ResourceEvents<URL> {
    let destination = FileDestination(url: file, isDurable: isDurable, calls: .system)
    return ResourceEvents { [core] channel in
      do throws(CacheError) {
        let load = try Self.fileLoad(request, sizeLimit, core)
        let task = LoadTask(id: load.id, priority: LoadPriority(load.priority))
        channel.onAbandon { task.cancel() }
        core.start(
          load, FileForm(core: core, destination: destination), task, event: { channel.send($0) },
          end: { channel.finish(with: $0) })
      } catch {
        channel.fail(error)
      }
    }
  }

  // MARK: Callbacks

  /// Loads a URL into a file and calls `completion` once.
  ///
  /// For `progress` and `completion` see ``load(_:options:progress:completion:)``. For the other parameters see
  /// ``load(_:to:sizeLimit:isDurable:options:)``.
  @discardableResult
  public func load(
    _ url: URL, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false, options: RequestOptions = RequestOptions(),
    progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<URL>, CacheError>) -> Void
  ) -> LoadTask {
    load(
      ResourceRequest(url, options: options), to: file, sizeLimit: sizeLimit, isDurable: isDurable, progress: progress,
      completion: completion)
  }

  /// Loads a request into a file and calls `completion` once: see
  /// ``load(_:to:sizeLimit:isDurable:options:progress:completion:)``.
  @discardableResult
  public func load(
    _ request: ResourceRequest, to file: URL, sizeLimit: Int64? = nil, isDurable: Bool = false,
    progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<URL>, CacheError>) -> Void
  ) -> LoadTask {
    let task = LoadTask(priority: LoadPriority(request.options.priority))
    let queue = request.options.callbackQueue ?? configuration.callbackQueue
    do throws(CacheError) {
      let load = try Self.fileLoad(request, sizeLimit, core, id: task.id)
      let callbacks = CallbackDelivery(queue: queue, progress: progress, completion: completion)
      let destination = FileDestination(url: file, isDurable: isDurable, calls: .system)
      core.start(
        load, FileForm(core: core, destination: destination), task, event: { callbacks.report($0) },
        end: { callbacks.complete($0) })
    } catch {
      task.finish()
      queue.execute { completion(.failure(error)) }
    }
    return task
  }

  private static func fileLoad(
    _ request: ResourceRequest, _ sizeLimit: Int64?, _ core: LoadCoordinator, id: LoadID = LoadID()
  ) throws(CacheError) -> ResolvedRequest {
    try CacheError.require("sizeLimit", sizeLimit, in: 0...)
    return try ResolvedRequest(request, core, id: id).with { $0.maximumBodySize = sizeLimit ?? .max }
  }
}

extension Resource where Value == URL {
  /// The file that contains the bytes.
  public var file: URL { value }
}
