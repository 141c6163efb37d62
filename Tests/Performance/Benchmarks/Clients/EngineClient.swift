#if Origin
import CacheCore
import Foundation
import HTTPTypes

/// A client that uses an engine of this package without a manager.
struct EngineClient: Client {
  private let open: OpenDownloader

  init(_ open: OpenDownloader) { self.open = open }

  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws {
    try await answer(address).body.collect().withUnsafeBytes(inspect)
  }

  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws {
    for try await chunk in try await answer(address).body { try chunk.withUnsafeBytes(take) }
  }

  func close() async { await open.close() }

  private func answer(_ address: Address) async throws -> DownloadResponse {
    let request = DownloadRequest(head: try HTTPRequest(resource: address.url))
    let response = try await open.downloader.download(request)
    guard response.head.status == .ok else { throw BenchmarkFailure("status \(response.head.status.code)") }
    return response
  }
}
#endif
