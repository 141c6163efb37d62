#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// An origin and a downloader of the test's own, closed in good order whatever the test does.
struct Fixture {
  let origin: OriginServer
  let downloader: SessionDownloader

  static func run(
    _ configuration: SessionDownloader.Configuration = .init(), delegate: SessionDelegate = SessionDelegate(),
    clock: any CacheClock = SystemClock(), _ body: (Fixture) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    var configuration = configuration
    // Between two moments of a test there may be any time when the machine is busy.
    if configuration.idleTimeout == SessionDownloader.Configuration().idleTimeout { configuration.idleTimeout = .seconds(3_600) }
    let downloader = SessionDownloader(configuration: configuration, delegate: delegate, clock: clock)
    do {
      try await body(Fixture(origin: origin, downloader: downloader))
    } catch {
      downloader.close()
      await origin.stop()
      throw error
    }
    downloader.close()
    await origin.stop()
  }

  func request(
    _ path: String, method: HTTPRequest.Method = .get, fields: HTTPFields = [:], body: ResourceBody? = nil,
    priority: LoadPriority = LoadPriority(), idleTimeout: Duration? = nil, timeout: Duration? = nil
  ) throws -> DownloadRequest {
    let head = try HTTPRequest(resource: origin.url(path), method: method, headerFields: fields)
    return DownloadRequest(head: head, body: body, priority: priority, idleTimeout: idleTimeout, timeout: timeout)
  }

  func get(_ path: String, fields: HTTPFields = [:]) async throws -> DownloadResponse {
    try await downloader.download(request(path, fields: fields))
  }

  /// The code of the error that loading head and body ends with; nil when it succeeds.
  func failure(of request: DownloadRequest) async -> CacheError? {
    do {
      _ = try await downloader.download(request).body.collect()
      return nil
    } catch {
      return error
    }
  }
}

/// Bytes that tell their own order.
func pattern(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

/// Reads until at least so many bytes have come.
func read(_ count: Int, from iterator: inout ResourceBody.AsyncIterator) async throws -> Data {
  var data = Data()
  while data.count < count, let chunk = try await iterator.next() { data.append(chunk) }
  return data
}
#endif
