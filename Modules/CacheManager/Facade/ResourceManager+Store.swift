public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Stores bytes as the response of a URL, for example an image that the app has just uploaded.
  ///
  /// ```swift
  /// try await manager.store(avatar, for: url, headerFields: [.contentType: "image/png"])
  /// let shown = try await manager.load(url).data  // the avatar, without a request
  /// ```
  ///
  /// The bytes replace every stored variant of the URL. When they are no longer fresh, loads ask the origin again. With an `ETag`
  /// field the origin can confirm them. A response to a load that began before this call ended is not stored over them.
  ///
  /// - Parameters:
  ///   - data: The body of the response.
  ///   - url: The URL. Its scheme may be any.
  ///   - lifetime: The time for which loads use the bytes without asking the origin. Fractions of a second are dropped. A
  ///     `Cache-Control` field takes precedence. For a manager without a validator, which reads no fields, it is the time to live
  ///     of the entry.
  ///   - headerFields: The fields of the response, such as `Content-Type` and `ETag`.
  ///   - options: The options that select the stored entry and the stores, such as `key`, `partition` and `writes`.
  /// - Throws: the error of the durable store, or `CacheError.Code.notCached` if the response was not stored, for example because
  ///   its fields forbid it. What was stored of the URL before is removed even then.
  public func store(
    _ data: Data, for url: URL, freshFor lifetime: Duration = .seconds(300), headerFields: HTTPFields = [:],
    options: RequestOptions = RequestOptions()
  ) async throws(CacheError) {
    var fields = headerFields
    if fields[.cacheControl] == nil { fields[.cacheControl] = "max-age=\(max(0, lifetime.components.seconds))" }
    if fields[.date] == nil { fields[.date] = HTTPDate((options.clock ?? configuration.clock).now).description }
    var options = options
    options.downloader = .use(FixedResponse(HTTPResponse(status: .ok, headerFields: fields), data))
    options.alternatives = []
    options.policy = .reload
    if options.validator.resolved(configuration.validator) == nil, options.expiration == nil {
      options.expiration = .after(lifetime)
    }
    // First, so that a response that was requested before is not stored any more, and no other variant can be selected.
    try await remove(url, options: options)
    guard options.store.resolved(configuration.store) != nil, options.writes.contains(.disk) else {
      _ = try await load(url, options: options)
      try outdateLoads(of: url, options)
      guard try await contains(url, in: options.writes, options: options) else {
        throw CacheError(.notCached, reason: "the response was not stored", url: url.absoluteString)
      }
      return
    }
    let load = try ResolvedLoad(ResourceRequest(url, options: options), configuration, core)
    let task = LoadTask(priority: LoadPriority(load.priority), isHandedOut: false)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        core.startStoring(load, task, .init(event: nil, end: { continuation.resume(returning: $0) }, endsWithStale: true))
      }
    } onCancel: {
      task.cancel()
    }
    _ = try result.get()
    try outdateLoads(of: url, options)
    // A response that was stored in the meantime gives way.
    load.memory.map(MemoryFacets.init)?.remove(load.parts.resource)
    // From disk into memory. A failure costs the next load a look at the disk and nothing else.
    (options.policy, options.reads) = (.cacheOnly, .disk)
    if options.writes.contains(.memory) { _ = try? await self.load(url, options: options) }
  }

  /// Lets no load that is under way store its response, and lets no other load join it.
  private func outdateLoads(of url: URL, _ options: RequestOptions) throws(CacheError) {
    let load = try ResolvedLoad(ResourceRequest(url, options: options), configuration, core)
    core.flights.closeToOthers()
    core.removals.advance(removing: load.parts.resource)
  }
}

/// A downloader that returns one response whatever the request.
private struct FixedResponse: Downloader {
  let id = ComponentID.unique(FixedResponse.self)
  private let head: HTTPResponse
  private let data: Data

  init(_ head: HTTPResponse, _ data: Data) { (self.head, self.data) = (head, data) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    DownloadResponse(head: head, body: ResourceBody(data))
  }
}
