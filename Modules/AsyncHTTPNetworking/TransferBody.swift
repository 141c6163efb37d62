#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The reader's side of a transfer. Releasing it stops the transfer.
final class TransferBody: ResourceBody.Source {
  private let transfer: Transfer

  init(_ transfer: Transfer) { self.transfer = transfer }

  deinit { transfer.cancel() }

  func next() async throws(CacheError) -> Data? { try await transfer.next() }

  func cancel() { transfer.cancel() }

  /// Always `nil`, because async-http-client does not expose trailers.
  var trailers: HTTPFields? { nil }
}
#endif
