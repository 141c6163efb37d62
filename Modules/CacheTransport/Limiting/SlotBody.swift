internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body that occupies its transfer's slot until it has ended, failed, or been cancelled or released.
final class SlotBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let slot: TransferSlot

  init(_ source: any ResourceBody.Source, _ slot: TransferSlot) {
    self.source = source
    self.slot = slot
  }

  func next() async throws(CacheError) -> Data? {
    do throws(CacheError) {
      if let chunk = try await source.next() { return chunk }
      slot.release()
      return nil
    } catch {
      // A second concurrent reader is refused, and the first one continues.
      if error.code != .misuse { slot.release() }
      throw error
    }
  }

  func cancel() {
    source.cancel()
    slot.release()
  }

  var trailers: HTTPFields? { source.trailers }
}
