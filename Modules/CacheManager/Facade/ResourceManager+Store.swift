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
  /// The bytes replace every stored variant of the URL. When they are stale, loads revalidate them. With an `ETag` field the
  /// origin can confirm them.
  ///
  /// A load that began before this call returned does not replace the bytes with its response. If the durable store is writing
  /// that response during the call, the URL may have no cached response afterwards.
  ///
  /// - Parameters:
  ///   - data: The body of the response.
  ///   - url: The URL, with any scheme.
  ///   - lifetime: The time for which loads use the bytes without revalidation, at least zero. With a validator, a
  ///     `Cache-Control` field takes precedence, and fractions of a second are dropped. Without a validator, fields have no
  ///     effect, and this is the time to live of the entry.
  ///   - headerFields: The fields of the response, such as `Content-Type` and `ETag`.
  ///   - options: The options that select the stored entry and the stores, such as `key`, `partition` and `writes`.
  /// - Throws: The error of the durable store, or `CacheError.Code.notCached` if the response was not stored, for example because
  ///   its fields forbid it. Earlier responses are removed first. If the store fails to remove them, the call throws, and they
  ///   may remain.
  public func store(
    _ data: Data, for url: URL, freshFor lifetime: Duration = .seconds(300), headerFields: HTTPFields = [:],
    options: RequestOptions = RequestOptions()
  ) async throws(CacheError) {
    try CacheError.require("freshFor", lifetime, in: .zero...)
    var fields = headerFields
    if fields[.cacheControl] == nil { fields[.cacheControl] = "max-age=\(lifetime.components.seconds)" }
    if fields[.date] == nil { fields[.date] = HTTPDate((options.clock ?? configuration.clock).now).description }
    var options = options
    options.downloader = .use(FixedResponse(HTTPResponse(status: .ok, headerFields: fields), data))
    options.alternatives = []
    // The bytes are the caller's, and not a server's that a hook would decrypt.
    options.hooks = nil
    options.policy = .reload
    if options.validator.resolved(configuration.validator) == nil, options.expiration == nil {
      options.expiration = .after(lifetime)
    }
    // The removal comes first, so that a response that was requested earlier is not stored, and no other variant can be selected.
    try await remove(url, options: options)
    let load = try ResolvedRequest(ResourceRequest(url, options: options), core).with { $0.isFromCaller = true }
    guard let store = load.store, options.writes.contains(.disk) else {
      _ = try await core.outcome(of: load, known: nil, .bytes).get()
      // A durable store may still be removing transforms for that load, which would then count as outdated itself.
      if load.store == nil { outdateOtherLoads(of: load) }
      guard try await contains(url, in: options.writes, options: options) else {
        throw CacheError(.notCached, reason: "the response was not stored", url: url.address)
      }
      return
    }
    let revision = try await core.outcome(of: load, core.storeForm(\.metadata.revision)).get().value
    outdateOtherLoads(of: load)
    try await removeOthers(than: revision, of: load, from: store)
    // The response is copied from disk into memory. If that fails, the next load reads the disk.
    (options.policy, options.reads) = (.cacheOnly, .disk)
    if load.writes.contains(.memory) { _ = try? await self.load(url, options: options) }
  }

  /// Prevents running loads of the resource from storing their responses. No new load joins a running one, because a load of
  /// another URL may be redirected to this one.
  private func outdateOtherLoads(of load: ResolvedRequest) {
    core.flights.closeToOthers()
    core.environment.invalidations.advance(removing: load.settings.resource)
  }

  /// Removes the responses that other loads of the resource have stored in the meantime.
  ///
  /// - Throws: The error of the store, or `CacheError.Code.notCached` if such a response replaced the given revision.
  private func removeOthers(
    than revision: Revision, of load: ResolvedRequest, from store: any CacheStore
  ) async throws(CacheError) {
    load.memory.map(MemoryTier.init)?.remove(load.settings.resource)
    var isStored = false
    for variant in try await store.variants(of: load.settings.resource) {
      if variant.metadata.revision == revision {
        isStored = true
      } else {
        try await store.remove(variant.key, ifRevision: variant.metadata.revision)
      }
    }
    guard isStored else {
      throw CacheError(.notCached, reason: "another response replaced the stored one", url: load.address)
    }
  }
}

/// A downloader that returns the same response for every request.
private struct FixedResponse: Downloader {
  let id = ComponentID.unique(FixedResponse.self)
  private let head: HTTPResponse
  private let data: Data

  init(_ head: HTTPResponse, _ data: Data) { (self.head, self.data) = (head, data) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    DownloadResponse(head: head, body: ResourceBody(data))
  }
}
