#if AsyncHTTP
public import AsyncHTTPClient
public import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
public import ServiceLifecycle
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The downloader for servers, built on async-http-client. It sends one request per download, returns every status as a response
/// and follows no redirects. Bodies keep their content coding.
///
/// ```swift
/// let downloader = AsyncHTTPDownloader()
/// let request = DownloadRequest(head: try HTTPRequest(resource: url))
/// let response = try await downloader.download(request)  // returns at the head
/// for try await chunk in response.body { print(chunk.count) }
/// await downloader.close()
/// ```
///
/// A slow reader makes the server wait: at most 256 KiB and one more chunk are buffered. Request bodies are streamed too.
///
/// A downloader that is released shuts its client down after the running transfers. ``close(finishingTransfers:)`` does so at
/// once and returns when the client has been shut down.
public final class AsyncHTTPDownloader: Downloader {
  /// Unique for each downloader, because clients cannot be compared.
  public let id = ComponentID.unique(AsyncHTTPDownloader.self)
  /// The settings.
  public let configuration: Configuration

  private let owner: ClientOwner
  private let queue: HostQueue
  private let nameCheck: NameCheck?
  private let unverified: TLSConfiguration?
  private let connections: ConnectionCount?
  private let validity: Result<Void, CacheError>

  /// Creates a downloader with its own client and the default settings.
  public convenience init() {
    let configuration = Configuration()
    var client = HTTPClient.Configuration()
    // The defaults name no file, so this cannot fail. The fallback must not follow redirects or trust responses either.
    client.redirectConfiguration = .disallow
    Self.guardResponses(of: &client)
    let connections = ConnectionCount()
    client = (try? configuration.client(counting: connections)) ?? client
    self.init(configuration, client: client, unverified: nil, connections)
  }

  /// Creates a downloader with its own client.
  ///
  /// - Parameter configuration: The settings.
  /// - Throws: `CacheError.Code.invalidConfiguration` if certificates or keys cannot be read, or if a number is out of its range.
  public convenience init(configuration: Configuration) throws(CacheError) {
    try configuration.check()
    let trustsSome = !configuration.tls.trustedHosts.isEmpty
    let connections = ConnectionCount()
    self.init(
      configuration, client: try configuration.client(counting: connections),
      unverified: trustsSome ? try configuration.tls.unverifiedClient() : nil, connections)
  }

  private init(
    _ configuration: Configuration, client: HTTPClient.Configuration, unverified: TLSConfiguration?,
    _ connections: ConnectionCount
  ) {
    self.configuration = configuration
    self.connections = connections
    self.unverified = unverified
    let group = configuration.eventLoopGroup
    var uploading = client
    uploading.httpVersion = .http1Only
    // async-http-client 1.37 terminates the process if a server responds over HTTP/2 before it has read the request body, and
    // then resets the stream.
    owner = ClientOwner(
      owning: HTTPClient(eventLoopGroup: group, configuration: client),
      uploading: !configuration.allowsHTTP2 ? nil : HTTPClient(eventLoopGroup: group, configuration: uploading))
    queue = HostQueue(connectionsPerHost: configuration.connectionsPerHost)
    validity = .success(())
    nameCheck = configuration.addressPolicy.map { NameCheck($0) }
  }

  /// Creates a downloader that uses the caller's client. The caller must shut the client down after the downloader.
  ///
  /// The downloader cannot read the client's configuration.
  /// - `redirectConfiguration` must be `.disallow`. Otherwise a redirected download fails with
  ///   `CacheError.Code.invalidConfiguration`.
  /// - `decompression` must be `.disabled`, its default.
  /// - `httpVersion` should be `.http1Only` if requests have bodies. async-http-client 1.37 terminates the process if a server
  ///   responds over HTTP/2 before it has read the request body, and then resets the stream.
  /// - ``guardResponses(of:)`` must have been applied to it. Otherwise a response with a status below 100 terminates the process
  ///   too.
  ///
  /// With the default of `connectionPool.retryConnectionEstablishment`, `true`, a refused connection is reported only after
  /// the connect timeout.
  ///
  /// - Parameters:
  ///   - client: The client, retained while a transfer runs.
  ///   - connectionsPerHost: The maximum number of connections to one host, at least 1. It must not exceed the limit of the
  ///     client's pool.
  ///   - idleTimeout: The default maximum time without received data, greater than zero. With a number out of its range,
  ///     downloads fail with `CacheError.Code.invalidConfiguration`.
  public init(client: HTTPClient, connectionsPerHost: Int = 8, idleTimeout: Duration = .seconds(60)) {
    configuration = Configuration {
      $0.connectionsPerHost = connectionsPerHost
      $0.idleTimeout = idleTimeout
      $0.eventLoopGroup = client.eventLoopGroup
    }
    owner = ClientOwner(borrowing: client)
    queue = HostQueue(connectionsPerHost: connectionsPerHost)
    validity = Result(catching: configuration.check)
    (nameCheck, unverified, connections) = (nil, nil, nil)
  }

  deinit { owner.close() }

  /// An event loop of the process's shared group (`MultiThreadedEventLoopGroup.singleton`), in rotation, or `nil` if the
  /// downloader uses another group.
  public var preferredExecutor: (any TaskExecutor)? {
    owner.client.eventLoopGroup === MultiThreadedEventLoopGroup.singleton ? LoopExecutors.shared.next() : nil
  }

  /// Sends the request and returns at the head of the response, or with the whole body (`DownloadRequest.collectUpTo`).
  ///
  /// Cancelling the calling task, or releasing the body, stops the transfer.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let calledAt = NIODeadline.now()
    do {
      return try await start(request, calledAt: calledAt)
    } catch {
      request.body?.source.cancel()
      throw error
    }
  }

  /// Closes the downloader. Later downloads fail with `CacheError.Code.closed`. Returns when the downloader's own client has been
  /// shut down.
  ///
  /// Cancelling the calling task ends the running transfers, so that the wait ends.
  ///
  /// - Parameter finishingTransfers: Whether running transfers may complete. Otherwise they fail with `CacheError.Code.closed`.
  public func close(finishingTransfers: Bool = false) async {
    owner.close()
    if !finishingTransfers { owner.failAll(Self.closed) }
    let owner = owner
    await withTaskCancellationHandler {
      await owner.waitForEnd()
    } onCancel: {
      owner.failAll(Self.closed)
    }
  }

  // MARK: One download

  private func start(_ request: DownloadRequest, calledAt: NIODeadline) async throws(CacheError) -> DownloadResponse {
    guard !Task.isCancelled else { throw .cancelled }
    try validity.get()
    let isHTTP1 = !configuration.allowsHTTP2 || request.head.scheme?.lowercased() == "http"
    var outgoing = try OutgoingRequest(
      request.head, userAgent: configuration.userAgent, sendsExactTarget: connections != nil && isHTTP1)
    let connectTimeout = configuration.connectTimeout
    let nameLookup = try await nameCheck?.check(
      outgoing.host, within: TimeAmount(min(connectTimeout, request.timeout ?? connectTimeout)),
      on: owner.client.eventLoopGroup.any())
    let limits = TransferLimits(
      idle: TimeAmount(request.idleTimeout ?? configuration.idleTimeout), total: request.timeout.map { TimeAmount($0) },
      collectUpTo: request.collectUpTo,
      attempts: configuration.resendsLostRequests ? min(max(configuration.connectionsPerHost, 1), 100) + 1 : 1,
      reportsLosses: connections != nil && isHTTP1)
    let interimKey = request.onInterimResponse.flatMap { connections?.marks.add($0) }
    defer { if let interimKey { connections?.marks.remove(interimKey) } }
    if let interimKey { outgoing.headers.add(name: RequestMarks.interimReport, value: interimKey) }
    let transfer = try enter(
      outgoing, request.body, TransferState(limits: limits, calledAt: calledAt, nameLookup: nameLookup))
    let (head, data) = try await transfer.response()
    if head.protocolName == "h2" { queue.noteMultiplexing(outgoing.hostAndPort) }
    let body = data.map { ResourceBody($0) } ?? ResourceBody(length: head.bodyLength, source: TransferBody(transfer))
    // Without the body, so that a logger does not hold a connection open.
    return DownloadResponse(head: head.response, body: body, metrics: { transfer.metrics })
  }

  private func enter(
    _ outgoing: OutgoingRequest, _ body: ResourceBody?, _ state: sending TransferState
  ) throws(CacheError) -> Transfer {
    // Without `self`: transfers must complete after the downloader is released.
    let (owner, queue, client, connections) = (owner, queue, owner.client, connections)
    let tls = configuration.tls.trusts(outgoing.host) ? unverified : nil
    let plain = body == nil || body?.length == 0 ? try outgoing.request(tls: tls) : nil
    // The upload client has separate connections, so an upload must not take a stream of the other client's HTTP/2 connection.
    let host = plain == nil && owner.hasUploadClient ? "upload \(outgoing.hostAndPort)" : outgoing.hostAndPort
    let transfer = Transfer(state, owner: owner) { transfer, hadSlot in
      if hadSlot { queue.leave(host) }
      owner.leave(transfer)
    }
    guard owner.enter(transfer) else { throw Self.closed }
    queue.enter(host) {
      transfer.enqueue { queue.lastProgress(host) }
    } start: {
      transfer.start {
        if let plain {
          return PlainRequest(
            transfer: transfer, client: client, request: plain, method: outgoing.method, connections: connections
          ).launch()
        }
        return Self.upload(body ?? ResourceBody(Data()), transfer, outgoing, client: owner.uploadClient, tls: tls)
      }
    }
    return transfer
  }

  private static func upload(
    _ body: ResourceBody, _ transfer: Transfer, _ outgoing: OutgoingRequest, client: HTTPClient, tls: TLSConfiguration?
  ) -> @Sendable () -> Void {
    let upload = Upload(
      transfer: transfer, client: client, request: outgoing.upload(body, for: transfer, tls: tls), body: body,
      method: outgoing.method)
    let task = Task { await upload.run() }
    return {
      body.source.cancel()
      task.cancel()
    }
  }

  private static var closed: CacheError { CacheError(.closed, reason: "the downloader has been closed") }
}

/// A downloader can run in a `ServiceGroup`. List it before the services that use it, so that it ends after them.
extension AsyncHTTPDownloader: Service {
  /// Waits for the group's graceful shutdown, then closes after the running transfers. Cancelling the task ends them.
  public func run() async throws {
    // Cancellation and shutdown both close the downloader. `close` ends the transfers only if the task is cancelled.
    try? await gracefulShutdown()
    await close(finishingTransfers: true)
  }
}

/// A task executor that runs on the thread of an event loop.
///
/// A load that runs on the event loop of its connection changes no threads between the head, the body and its next step.
final class LoopExecutor: TaskExecutor {
  let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The executors of the process's shared event loop group, in rotation.
///
/// Only the shared group is used, because it is never shut down. A loop that was shut down drops its jobs, so a task on it would
/// never continue.
final class LoopExecutors: Sendable {
  static let shared = LoopExecutors(MultiThreadedEventLoopGroup.singleton)

  private let executors: [LoopExecutor]
  private let turn = Atomic(0)

  private init(_ group: MultiThreadedEventLoopGroup) { executors = group.makeIterator().map { LoopExecutor($0) } }

  /// Returns the executor of the current event loop, or the next one if the caller runs on none.
  func next() -> LoopExecutor {
    if let current = executors.first(where: { $0.eventLoop.inEventLoop }) { return current }
    return executors[turn.wrappingAdd(1, ordering: .relaxed).oldValue % executors.count]
  }
}
#endif
