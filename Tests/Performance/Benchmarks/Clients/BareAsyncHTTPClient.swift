#if Origin && AsyncHTTP
import AsyncHTTPClient
import CacheCore
import Foundation
import NIOCore
import NIOHTTP1

/// The client that uses async-http-client directly, as a program without this package would.
final class BareAsyncHTTPClient: Client {
  private let client: HTTPClient
  private let timeout = TimeAmount.minutes(2)
  /// The bodies by address, or `nil` if they are not kept.
  private let kept: Lock<[String: ByteBuffer]>?

  /// - Parameters:
  ///   - connections: The maximum number of connections to a host, or `nil` for the library's default.
  ///   - keepsBodies: Whether each loaded body is kept in a dictionary.
  init(connections: Int? = nil, keepsBodies: Bool = false) {
    kept = keepsBodies ? Lock([:]) : nil
    var configuration = HTTPClient.Configuration()
    if let connections { configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections }
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws {
    let buffer = try await answer(address).body.collect(upTo: 1 << 30)
    kept?.withLock { $0[address.text] = buffer }
    buffer.withUnsafeReadableBytes(inspect)
  }

  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws {
    for try await buffer in try await answer(address).body { try buffer.withUnsafeReadableBytes(take) }
  }

  func close() async throws { try await client.shutdown() }

  private func answer(_ address: Address) async throws -> HTTPClientResponse {
    let response = try await client.execute(HTTPClientRequest(url: address.text), timeout: timeout)
    guard response.status == .ok else { throw BenchmarkFailure("status \(response.status.code)") }
    return response
  }
}
#endif
