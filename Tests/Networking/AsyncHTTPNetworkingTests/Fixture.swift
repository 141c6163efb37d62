#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// An origin and a downloader for one test. Both are closed in order, even if the test fails.
struct Fixture {
  let origin: OriginServer
  let downloader: AsyncHTTPDownloader

  static func run(
    _ configuration: AsyncHTTPDownloader.Configuration = .init(), _ body: (Fixture) async throws -> Void
  ) async throws {
    try await run(downloader(configuration), body)
  }

  /// Returns a downloader with this configuration and long limits in place of the default ones.
  static func downloader(_ configuration: AsyncHTTPDownloader.Configuration = .init()) throws -> AsyncHTTPDownloader {
    var configuration = configuration
    // On a busy machine any time may pass between two steps of a test.
    let usual = AsyncHTTPDownloader.Configuration()
    if configuration.idleTimeout == usual.idleTimeout { configuration.idleTimeout = .seconds(3_600) }
    if configuration.connectTimeout == usual.connectTimeout { configuration.connectTimeout = .seconds(3_600) }
    return try AsyncHTTPDownloader(configuration: configuration)
  }

  static func run(_ downloader: AsyncHTTPDownloader, _ body: (Fixture) async throws -> Void) async throws {
    let origin = try await OriginServer.start()
    do {
      try await body(Fixture(origin: origin, downloader: downloader))
    } catch {
      await downloader.close()
      await origin.stop()
      throw error
    }
    await downloader.close()
    await origin.stop()
  }

  func request(
    _ path: String, method: HTTPRequest.Method = .get, fields: HTTPFields = [:], body: ResourceBody? = nil,
    idleTimeout: Duration? = nil, timeout: Duration? = nil
  ) throws -> DownloadRequest {
    let head = try HTTPRequest(resource: origin.url(path), method: method, headerFields: fields)
    return DownloadRequest(head: head, body: body, idleTimeout: idleTimeout, timeout: timeout)
  }

  func get(_ path: String, fields: HTTPFields = [:]) async throws -> DownloadResponse {
    try await downloader.download(request(path, fields: fields))
  }

  /// Loads head and body and returns the error, or `nil` on success.
  func failure(of request: DownloadRequest) async -> CacheError? { await AsyncHTTPNetworkingTests.failure(downloader, request) }
}

/// Loads head and body and returns the error, or `nil` on success.
func failure(_ downloader: AsyncHTTPDownloader, _ request: DownloadRequest) async -> CacheError? {
  do {
    _ = try await downloader.download(request).body.collect()
    return nil
  } catch {
    return error
  }
}

/// Returns bytes whose order can be verified.
func pattern(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

/// A request body that produces its chunks on demand and records its cancellation.
final class MadeBody: ResourceBody.Source {
  private let pieces: Lock<[Result<Data, CacheError>]>
  private let wasCancelled = Lock(false)

  init(_ pieces: [Result<Data, CacheError>]) { self.pieces = Lock(pieces) }

  var isCancelled: Bool { wasCancelled.withLock { $0 } }

  func next() async throws(CacheError) -> Data? {
    if isCancelled { throw .cancelled }
    let piece = pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    return try piece?.get()
  }

  func cancel() { wasCancelled.withLock { $0 = true } }

  var trailers: HTTPFields? { nil }
}
#endif
