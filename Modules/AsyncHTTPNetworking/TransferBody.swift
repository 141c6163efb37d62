#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The reader's end of a transfer. Letting go of it stops the transfer.
final class TransferBody: ResourceBody.Source {
  private let transfer: Transfer

  init(_ transfer: Transfer) { self.transfer = transfer }

  deinit { transfer.cancel() }

  func head() async throws(CacheError) -> ReceivedHead { try await transfer.head() }

  func next() async throws(CacheError) -> Data? { try await transfer.next() }

  func cancel() { transfer.cancel() }

  /// Tells what was measured, without keeping the body: who only wants to log keeps no connection.
  var meter: @Sendable () -> TransferMetrics { { [transfer] in transfer.metrics } }

  /// async-http-client keeps trailers to itself.
  var trailers: HTTPFields? { nil }
}
#endif
