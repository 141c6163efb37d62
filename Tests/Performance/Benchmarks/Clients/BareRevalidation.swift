#if Origin && AsyncHTTP
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Conditional requests with async-http-client, one after another on one connection. Each one costs a round trip and the
/// unavoidable work of a client.
struct BareRevalidation {
  private let client = HTTPClient(eventLoopGroupProvider: .singleton)
  private let request: HTTPClientRequest

  init(_ url: String, etag: String) {
    var request = HTTPClientRequest(url: url)
    request.headers.add(name: "if-none-match", value: etag)
    self.request = request
  }

  /// Sends one request and requires a 304.
  ///
  /// - Returns: The elapsed time.
  @discardableResult
  func run() async throws -> Duration {
    let stopwatch = Stopwatch()
    let response = try await client.execute(request, timeout: .minutes(1))
    for try await _ in response.body {}
    let wall = stopwatch.wall
    guard response.status == .notModified else { throw BenchmarkFailure("status \(response.status.code)") }
    return wall
  }

  func median(of count: Int) async throws -> Duration {
    var seconds: [Double] = []
    for _ in 0..<count { seconds.append(try await run() / .seconds(1)) }
    return .seconds(Sample.median(seconds))
  }

  func close() async { try? await client.shutdown() }
}
#endif
