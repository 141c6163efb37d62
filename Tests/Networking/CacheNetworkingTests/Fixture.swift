#if Origin
import CacheCore
@testable import CacheNetworking
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// An origin and a downloader for one test. Both are closed in order, even if the test fails.
struct Fixture {
  let origin: OriginServer
  let downloader: SessionDownloader
  /// The URL path and the error of each transfer that has ended.
  let transferEnds = Recorder<TransferEnd>()
  /// An element for each session that has ended, which is `true` if it was ended on purpose.
  let sessionEnds = Recorder<Bool>()

  struct TransferEnd: Equatable {
    var path: String
    var error: CacheError.Code?
  }

  static func run(
    _ configuration: SessionDownloader.Configuration = .init(), clock: any CacheClock = SystemClock(),
    challengeHandler: AuthenticationChallenge.Handler = .init(), _ body: (Fixture) async throws -> Void
  ) async throws {
    let fixture = Fixture(
      try await OriginServer.start(), configuration, clock: clock, challengeHandler: challengeHandler)
    do {
      try await body(fixture)
    } catch {
      await fixture.close()
      throw error
    }
    await fixture.close()
  }

  private init(
    _ origin: OriginServer, _ configuration: SessionDownloader.Configuration, clock: any CacheClock,
    challengeHandler: AuthenticationChallenge.Handler
  ) {
    self.origin = origin
    var configuration = configuration
    // On a busy machine any time may pass between two steps of a test.
    if configuration.idleTimeout == SessionDownloader.Configuration().idleTimeout { configuration.idleTimeout = .seconds(3_600) }
    downloader = SessionDownloader(
      configuration: configuration, clock: clock, challengeHandler: challengeHandler
    ) { [transferEnds, sessionEnds] event in
      switch event {
      case .transferEnded(let url, let error): transferEnds.record(TransferEnd(path: url.path, error: error?.code))
      case .sessionEnded(let error): sessionEnds.record(error == nil)
      }
    }
  }

  private func close() async {
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

  /// Loads head and body and returns the error, or `nil` on success.
  func failure(of request: DownloadRequest) async -> CacheError? {
    do {
      _ = try await downloader.download(request).body.collect()
      return nil
    } catch {
      return error
    }
  }
}

/// Returns bytes whose order can be verified.
func pattern(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

/// Reads until at least `count` bytes were received.
func read(_ count: Int, from iterator: inout ResourceBody.AsyncIterator) async throws -> Data {
  var data = Data()
  while data.count < count, let chunk = try await iterator.next() { data.append(chunk) }
  return data
}
#endif
