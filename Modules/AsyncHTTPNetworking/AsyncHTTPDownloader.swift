#if AsyncHTTP
public import AsyncHTTPClient
public import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The engine for servers, on async-http-client: one hop per request, every status an answer, redirects not followed, bodies as
/// they are on the wire.
///
/// ```swift
/// let downloader = AsyncHTTPDownloader()
/// let request = DownloadRequest(head: try HTTPRequest(resource: url))
/// let response = try await downloader.download(request)  // returns at the head
/// for try await chunk in response.body { print(chunk.count) }
/// await downloader.close()
/// ```
///
/// Bodies are pulled: at most 256 KiB and one more piece wait for a slow reader, then the server has to. A request's own body
/// streams too.
///
/// A downloader that is released lets its transfers come to their end and shuts its client down; ``close(finishingTransfers:)``
/// does so at a moment of the caller's choosing, and tells when it is done.
public final class AsyncHTTPDownloader: Downloader {
  /// Unlike any other's: clients can't be compared.
  public let id = ComponentID.unique(AsyncHTTPDownloader.self)
  /// How it asks.
  public let configuration: Configuration

  private let owner: ClientOwner
  private let queue: HostQueue
  private let nameCheck: NameCheck?
  private let unverified: TLSConfiguration?
  private let connections: ConnectionCount?

  /// A downloader with a client of its own and every default.
  public convenience init() {
    let configuration = Configuration()
    var client = HTTPClient.Configuration()
    // The defaults name no file, so nothing can fail; a client that can't be configured would still not follow redirects.
    client.redirectConfiguration = .disallow
    let connections = ConnectionCount()
    client = (try? configuration.client(counting: connections)) ?? client
    self.init(configuration, client: client, unverified: nil, connections)
  }

  /// A downloader with a client of its own.
  ///
  /// - Parameter configuration: how it asks.
  /// - Throws: `CacheError.Code.invalidConfiguration` when certificates or keys can't be read.
  public convenience init(configuration: Configuration) throws(CacheError) {
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
    // async-http-client 1.37 ends the process when a server answers a request over HTTP/2 before it has read its body, and then
    // resets the stream.
    owner = ClientOwner(
      owning: HTTPClient(eventLoopGroup: group, configuration: client),
      uploading: !configuration.allowsHTTP2 ? nil : HTTPClient(eventLoopGroup: group, configuration: uploading))
    queue = HostQueue(connectionsPerHost: configuration.connectionsPerHost)
    nameCheck = configuration.addressPolicy.map { NameCheck($0) }
  }

  /// A downloader on a client of the caller's own, who shuts it down, after the downloader.
  ///
  /// The client's configuration can't be read from outside, so some of it is up to the caller: it must not follow redirects
  /// (`redirectConfiguration: .disallow`; one that does makes downloads fail with `CacheError.Code.invalidConfiguration` at the
  /// second hop) and not decode (`decompression: .disabled`, its default). It should speak HTTP/1.1 alone where requests have
  /// bodies: async-http-client 1.37 ends the process when a server answers one over HTTP/2 before it has read the body, and
  /// resets the stream. With `retryConnectionEstablishment`, on by default, a refused connection is told only after its time for
  /// connecting.
  ///
  /// - Parameters:
  ///   - client: held as long as a transfer runs.
  ///   - connectionsPerHost: no more than the client's own pool allows.
  ///   - idleTimeout: for requests that set none of their own.
  public init(client: HTTPClient, connectionsPerHost: Int = 8, idleTimeout: Duration = .seconds(60)) {
    configuration = Configuration {
      $0.connectionsPerHost = connectionsPerHost
      $0.idleTimeout = idleTimeout
      $0.eventLoopGroup = client.eventLoopGroup
    }
    owner = ClientOwner(borrowing: client)
    queue = HostQueue(connectionsPerHost: connectionsPerHost)
    (nameCheck, unverified, connections) = (nil, nil, nil)
  }

  deinit { owner.close() }

  /// The event loops' threads, by turns, where the downloader runs on the process's own (`MultiThreadedEventLoopGroup.singleton`,
  /// the default); else none.
  public var preferredExecutor: (any TaskExecutor)? {
    owner.client.eventLoopGroup === MultiThreadedEventLoopGroup.singleton ? LoopExecutors.shared.next() : nil
  }

  /// Sends the request and returns at the head of the answer.
  ///
  /// Cancelling the calling task, or letting go of the body, stops the transfer.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let calledAt = NIODeadline.now()
    do {
      return try await start(request, calledAt: calledAt)
    } catch {
      request.body?.source.cancel()
      throw error
    }
  }

  /// Ends the downloader: later downloads fail with `CacheError.Code.closed`. Returns when its client, if it is one of its own,
  /// has been shut down.
  ///
  /// Cancelling the calling task ends what still runs, so that the wait has an end.
  ///
  /// - Parameter finishingTransfers: whether what runs may come to its end; else it fails with `CacheError.Code.closed`.
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
    let isHTTP1 = !configuration.allowsHTTP2 || request.head.scheme?.lowercased() == "http"
    let outgoing = try OutgoingRequest(
      request.head, userAgent: configuration.userAgent, sendsExactTarget: connections != nil && isHTTP1)
    let connectTimeout = configuration.connectTimeout
    let nameLookup = try await nameCheck?.check(
      outgoing.host, within: TimeAmount(min(connectTimeout, request.timeout ?? connectTimeout)),
      on: owner.client.eventLoopGroup.any())
    let limits = TransferLimits(
      idle: TimeAmount(request.idleTimeout ?? configuration.idleTimeout), total: request.timeout.map { TimeAmount($0) },
      attempts: configuration.resendsLostRequests ? min(max(configuration.connectionsPerHost, 1), 100) + 1 : 1)
    let body = try enter(outgoing, request.body, TransferState(limits: limits, calledAt: calledAt, nameLookup: nameLookup))
    let head = try await body.head()
    if head.protocolName == "h2" { queue.noteMultiplexing(outgoing.hostAndPort) }
    return DownloadResponse(
      head: head.response, body: ResourceBody(length: head.bodyLength, source: body), metrics: body.meter)
  }

  private func enter(
    _ outgoing: OutgoingRequest, _ body: ResourceBody?, _ state: sending TransferState
  ) throws(CacheError) -> TransferBody {
    // Not `self`: a downloader that is released must not take the end of its transfers with it.
    let (owner, queue, client, connections) = (owner, queue, owner.client, connections)
    let tls = configuration.tls.trusts(outgoing.host) ? unverified : nil
    let plain = body == nil || body?.length == 0 ? try outgoing.request(tls: tls) : nil
    // A client of their own has connections of its own: streams of the other's HTTP/2 connection are no places for uploads.
    let host = plain == nil && owner.hasUploadClient ? "upload \(outgoing.hostAndPort)" : outgoing.hostAndPort
    let transfer = Transfer(state, owner: owner) { transfer, hadTurn in
      if hadTurn { queue.leave(host) }
      owner.leave(transfer)
    }
    guard owner.enter(transfer) else { throw Self.closed }
    queue.enter(host) {
      transfer.enqueue { queue.lastTurn(host) }
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
    return TransferBody(transfer)
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
#endif
