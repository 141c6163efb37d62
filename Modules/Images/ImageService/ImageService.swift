#if Service
public import CacheCore
public import CacheManager
internal import CacheTransport
internal import ETagValidation
public import HTTPTypes
internal import ImageCodecs
internal import ImageWorkers

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An image service: it responds to signed paths with images made from those of allowed sources.
///
/// ```swift
/// let key = SigningKey.random()
/// let service = try ImageService(
///   .init {
///     $0.keys = [key]
///     $0.sources = [try .origin("https://photos.example.com")]
///     $0.cache.downloader = try AsyncHTTPDownloader(configuration: .init { $0.addressPolicy = .publicOnly })
///     $0.cache.memory = MemoryCache(limits: .init(cost: 256 << 20))
///     $0.cache.store = try DiskCache(path: "/var/cache/images")
///   })
/// let path = key.path(for: "https://photos.example.com/cat.jpg", operations: "width=400")
/// let response = await service.respond(to: HTTPRequest(method: .get, scheme: nil, authority: nil, path: path))
/// ```
///
/// A path has three parts after the prefix: a signature, operations, and a source. The signature covers the bytes of the other
/// two. Nothing is parsed, loaded or decoded before it is checked. <doc:/ImageService/ImageURLs> lists the operations.
///
/// A result is an HTTP response of a shared cache (RFC 9111): with an entity tag, conditions, ranges, the `Cache-Control` and the
/// tags of its source, and stale responses as the source allows them.
public final class ImageService: Sendable {
  /// The manager that caches the sources and the results.
  ///
  /// A source and the results made of it have the same URL in different partitions. A purge in `.all` partitions includes both.
  public let manager: ResourceManager
  private let paths: SignedPaths
  /// The path below which the service responds, without a slash at the end.
  public let pathPrefix: String
  private let presets: [String: ImageOperations]
  private let formats: [ImageFormat]
  let limits: Limits
  private let allowsPartial: Bool
  private let fastShrinkOnLoad: Bool
  private let slots: RenderSlots
  private let workers: CodecWorkers?
  private let refusals: RefusedImages
  private let onCodecFailure: (@Sendable (CacheError) -> Void)?
  let streams = OriginalStreams()
  let folders: FolderSources
  private let rates: ClientRates?
  private let clock: any CacheClock

  /// Creates a service.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if there is no key or no source, if a preset is not valid, or if the path
  ///   does not begin with a slash.
  public init(_ configuration: Configuration) throws(CacheError) {
    guard !configuration.sources.isEmpty else {
      throw CacheError(.invalidConfiguration, reason: "an image service needs at least one source")
    }
    try configuration.limits.check()
    try configuration.cache.check()
    let prefix = configuration.pathPrefix
    guard prefix.hasPrefix("/"), prefix.count > 1, !prefix.hasSuffix("/") else {
      throw CacheError(
        .invalidConfiguration, reason: "the path '\(prefix)' does not begin with a slash, or ends with one")
    }
    var presets: [String: ImageOperations] = [:]
    for (name, text) in configuration.presets {
      do throws(CacheError) {
        presets[name] = try ImageOperations(text, maximumSide: configuration.limits.maximumSide)
      } catch {
        throw CacheError(.invalidConfiguration, reason: "the preset '\(name)' is not valid: \(error.reason)", underlying: error)
      }
    }
    var cache = configuration.cache
    if let addresses = configuration.addresses { cache.downloader = cache.downloader?.restrictingAddresses(to: addresses) }
    cache.downloader = SourceDownloader(cache.downloader, configuration.sources)
    folders = try FolderSources(configuration.sources)
    // A request that no longer waits for an equal one would make the same result again.
    cache.collapseTimeout = cache.collapseTimeout.map { max($0, configuration.limits.timeout) }
    // The service sends no cookies to origins, and none of theirs to clients.
    cache.validator = cache.validator ?? ETagValidator(mode: .shared, ignoresCookies: true)
    // Codecs take seconds. On the cooperative pool, they would delay all requests, and also the timers of their limits.
    cache.executor = cache.executor ?? ProcessingExecutor(width: configuration.workers?.maximumJobs)
    // A thread waits for each worker that has a job.
    if let count = configuration.workers?.maximumJobs { cache.maximumConcurrentTransforms = count }
    manager = ResourceManager(cache)
    paths = SignedPaths(try Self.checked(configuration.keys))
    pathPrefix = prefix
    (self.presets, limits) = (presets, configuration.limits)
    formats = configuration.formats.filter(ImageEncoder.isWritten)
    allowsPartial = configuration.allowsPartial
    fastShrinkOnLoad = configuration.fastShrinkOnLoad
    slots = RenderSlots(limits.resultsInProgress)
    (workers, onCodecFailure) = (configuration.workers, configuration.onCodecFailure)
    refusals = RefusedImages(lifetime: limits.refusalLifetime, clock: cache.clock)
    rates = limits.clientRate.map(ClientRates.init)
    clock = cache.clock
  }

  /// Replaces the keys whose signatures are accepted.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if there is no key. The service then retains its keys.
  public func setKeys(_ keys: [SigningKey]) throws(CacheError) {
    paths.setKeys(try Self.checked(keys))
  }

  private static func checked(_ keys: [SigningKey]) throws(CacheError) -> [SigningKey] {
    guard !keys.isEmpty else {
      throw CacheError(.invalidConfiguration, reason: "an image service needs at least one signing key")
    }
    return keys
  }

  /// The number of results that are being made or waiting. It does not include originals.
  public var resultsInProgress: Int { slots.count }

  // MARK: Responding

  /// Responds to a request. Every failure is a response with an `application/problem+json` body.
  ///
  /// - Parameters:
  ///   - request: The request. Of its fields, only conditions, ranges, `Accept` and client hints have an effect: a client cannot
  ///     force the service to load a source again.
  ///   - client: The identity of the client for ``Limits/clientRate``, such as its address, or `nil` for no limit.
  public func respond(to request: HTTPRequest, client: String? = nil) async -> ImageResponse {
    guard request.method == .get || request.method == .head else { return ImageResponse(.methodNotAllowed) }
    if let client, let delay = rates?.take(client, at: clock.uptime) {
      return ImageResponse(.tooManyRequests(retryAfter: max(1, delay.components.seconds + 1)))
    }
    do throws(CacheError) {
      return try await response(to: request)
    } catch {
      return ImageResponse(Problem(error), error: error)
    }
  }

  private func response(to request: HTTPRequest) async throws(CacheError) -> ImageResponse {
    let path = request.path ?? ""
    let signed = try paths.signed(path) { keys throws(CacheError) in try signedPath(path, keys) }
    let operations = signed.operations
    if let expiry = operations.expiry, clock.now > expiry {
      throw CacheError(.invalidSignature, reason: "the signature has expired")
    }
    let isHead = request.method == .head
    // A range of a response to HEAD has no meaning (RFC 9110 §14.2).
    let effective = isHead ? Self.conditions : Self.conditionsAndRanges
    let conditions = request.headerFields.filter { effective.contains($0.name) }
    if operations.isOriginal {
      var (response, status) = try await original(signed.source, with: conditions, isHead: isHead)
      response.head.headerFields.forbidScripts()
      if let expiry = operations.expiry { Self.limit(&response.head.headerFields, status, until: expiry - clock.now) }
      return response
    }
    let (negotiated, name) = signed.constant ?? negotiated(operations, with: request.headerFields)
    let failure = NotedFailure()
    let renderer = ImageRenderer(
      manager: manager, folders: folders, operations: negotiated.operations, format: negotiated.format, name: name,
      limits: limits, allowsPartial: allowsPartial, fastShrinkOnLoad: fastShrinkOnLoad, slots: slots, workers: workers,
      refusals: refusals, onCodecFailure: onCodecFailure, report: { [failure] in failure.note($0) })
    let options = RequestOptions {
      $0.downloader = .use(renderer)
      $0.partition = name
    }
    var loaded = signed.source
    loaded.headerFields.append(contentsOf: conditions)
    let cached = try await manager.respond(to: loaded, options: options)
    var response = ImageResponse(
      head: cached.head, body: cached.body, servedFrom: cached.source,
      error: cached.head.status.code >= 400 ? failure.value : nil)
    Self.complete(&response.head.headerFields, negotiated)
    if let expiry = operations.expiry { Self.limit(&response.head.headerFields, cached.status, until: expiry - clock.now) }
    guard isHead else { return response }
    // The body is read so that the result is stored.
    if cached.status.isStored { for try await _ in response.body {} } else { response.body.source.cancel() }
    response.body = ResourceBody(Data())
    return response
  }

  /// The fields of a request that have an effect on a given result.
  private static let conditions: [HTTPField.Name] = [.ifNoneMatch, .ifModifiedSince]
  private static let conditionsAndRanges = conditions + [.range, .ifRange]

  private static let acceptedHints = HTTPField.Name("Accept-CH")

  private static func complete(_ fields: inout HTTPFields, _ negotiated: ImageOperations.Negotiated) {
    if !negotiated.decisive.isEmpty { fields[.vary] = negotiated.decisive.joined(separator: ", ") }
    let hints = negotiated.decisive.filter { $0.hasPrefix("Sec-CH-") }
    if !hints.isEmpty, let name = Self.acceptedHints { fields[name] = hints.joined(separator: ", ") }
    // An original may be a page or a drawing with scripts.
    fields.forbidScripts()
  }

  /// Limits the lifetime of a response to that of its URL, because caches do not read the URL.
  private static func limit(_ fields: inout HTTPFields, _ status: CacheStatus, until expiry: Duration) {
    let directives = CacheControl(fields)
    // Such a response is not used without a request, which is refused after the expiry.
    guard !directives.noStore, !directives.noCache else { return }
    let isPrivate = directives.isPrivate || !directives.privateFields.isEmpty
    let lifetime = max(.zero, min(status.lifetimeLeft ?? .zero, expiry))
    let restrictions = (isPrivate ? "private, " : "") + (directives.noTransform ? "no-transform, " : "")
    fields[.cacheControl] = "\(restrictions)max-age=\(lifetime.components.seconds), must-revalidate"
    (fields[.expires], fields[.age]) = (nil, nil)
    for name in ImageRenderer.targetedFields { fields[name] = nil }
  }

  /// Checks the signature of a path, and parses the path.
  private func signedPath(_ path: String, _ keys: [SigningKey]) throws(CacheError) -> SignedPath {
    let invalid = CacheError(.invalidSignature, reason: "the signature is missing or does not match the path")
    guard let parts = PathParts(path, under: pathPrefix) else { throw invalid }
    let bytes = Data(parts.signed.utf8)
    // All keys are tried, so that the time does not show the number of the key.
    let isValid = keys.reduce(false) { $1.accepts(parts.signature, of: bytes) || $0 }
    guard isValid else { throw invalid }
    let (operations, source) = try parts.decoded
    let parsed = try ImageOperations(operations, presets: presets, maximumSide: limits.maximumSide)
    let result = negotiated(parsed, with: [:])
    return SignedPath(
      operations: parsed, source: try SourceReference(source).request,
      constant: result.negotiated.decisive.isEmpty ? result : nil)
  }

  /// Decides the operations for the fields of a request, and returns them with the name of their result.
  private func negotiated(
    _ operations: ImageOperations, with fields: HTTPFields
  ) -> (negotiated: ImageOperations.Negotiated, name: String) {
    let negotiated = operations.negotiated(with: fields, formats: formats, maximumSide: limits.maximumSide)
    return (negotiated, "\(negotiated.operations.description) \(negotiated.format.name)")
  }

  // MARK: Signing

  /// Returns the signed path of an image, with the first of the current keys.
  ///
  /// - Parameters:
  ///   - source: The URL of the image, or the name of a folder, a slash, and the path of a file in it.
  ///   - text: The operations, separated by commas.
  ///   - limit: The time for which the path is valid, unless the operations state an earlier end.
  /// - Throws: `CacheError.Code.invalidOperation` or `.invalidURL`, if the service would refuse the path for that reason.
  package func signedPath(
    for source: String, operations text: String, validFor limit: Duration
  ) throws(CacheError) -> String {
    let operations = try ImageOperations(text, presets: presets, maximumSide: limits.maximumSide)
    _ = try SourceReference(source)
    let end = clock.now + limit
    let endsEarlier = operations.expiry.map { $0 < end } ?? false
    // The last `expires` of a list counts.
    return paths.keys[0]
      .path(for: source, operations: text, expiresAt: endsEarlier ? nil : end, under: pathPrefix)
  }

  // MARK: Purging and ending

  /// Purges a source and the results made of it, in this process and, with a fleet, in all processes.
  ///
  /// The results are found by listing the stores, which reads a part of every file on disk. A purge by tag finds them faster in
  /// stores with an index of tags.
  ///
  /// - Parameters:
  ///   - source: The source, as in a path: a URL, or the name of a folder and the path of a file in it.
  ///   - mode: Whether responses are removed or marked stale.
  /// - Returns: The number of responses that matched in this process and in its shared store.
  @discardableResult
  public func purge(source: String, _ mode: PurgeMode = .hard) async throws(CacheError) -> Int {
    try await manager.purge(.url(SourceReference(source).url), mode, in: .all)
  }

  /// Rejects new requests, and returns when the running ones have ended or `limit` has passed. The workers end then.
  public func close(within limit: Duration) async {
    await manager.close(within: limit)
    workers?.close()
  }
}

/// A response of an ``ImageService``.
public struct ImageResponse: Sendable {
  /// The status and the fields. Fields about the connection, `Date` and `Server` are left to the HTTP server.
  public var head: HTTPResponse
  /// The bytes, which stream. The body is empty for HEAD.
  public var body: ResourceBody
  /// The tier of the cache from which the response came, or `nil` if the service responds itself, for example to a request
  /// without a signature.
  public var servedFrom: ResourceSource?
  /// The error that caused this response, with its reason, for a log; or `nil`. The body does not contain it.
  public var error: CacheError?

  /// Creates a response from its parts, for fakes in tests.
  public init(head: HTTPResponse, body: ResourceBody, servedFrom: ResourceSource? = nil, error: CacheError? = nil) {
    (self.head, self.body, self.servedFrom, self.error) = (head, body, servedFrom, error)
  }

  init(_ problem: Problem, error: CacheError? = nil) {
    let (head, body) = problem.response
    self.init(head: head, body: ResourceBody(body), error: error)
  }
}

/// The request rates of clients: a token bucket for each.
final class ClientRates: Sendable {
  private struct State {
    var buckets: [String: TokenBucket] = [:]
    /// The number of clients at which full buckets are removed.
    var cleanupCount = 1_024
  }

  private let limit: RateLimit
  private let state = Lock(State())

  init(_ limit: ImageService.Rate) {
    self.limit = RateLimit(perSecond: limit.perSecond, burst: limit.burst)
  }

  /// Counts a request. Returns `nil` if it is allowed, or else the time after which the next one is.
  func take(_ client: String, at now: Duration) -> Duration? {
    state.withLock { state in
      var bucket = state.buckets[client] ?? TokenBucket(limit)
      let delay = bucket.delay(at: now)
      guard bucket.take(at: now) else { return delay }
      state.buckets[client] = bucket
      if state.buckets.count > state.cleanupCount {
        // A full bucket is like none. The number doubles, so that the work for each request is constant.
        state.buckets = state.buckets.filter { !$0.value.isFull(at: now) }
        state.cleanupCount = max(1_024, state.buckets.count * 2)
      }
      return nil
    }
  }
}
#endif
