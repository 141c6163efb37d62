internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Takes a body in: into memory for who waits, and chunk by chunk to the disk.
///
/// The disk is a guest here: when it fails the transfer goes on without it. What is incomplete is never committed.
struct Receiver: Sendable {
  let load: ResolvedLoad
  let body: Body
  let writer: (any EntryWriter)?
  let key: CacheKey
  let report: @Sendable (FlightEvent<Fetched>) -> Void

  /// All bytes, and the metadata as the disk has committed it.
  func receive() async throws(CacheError) -> (data: Data, committed: StoredMetadata?) {
    var writing = writer
    do throws(CacheError) {
      let data = try await pull(&writing)
      if let expected = body.length, Int64(data.count) != expected {
        throw CacheError(.truncatedBody, reason: "the body ended after \(data.count) of \(expected) bytes")
      }
      return (data, await commit(&writing, data))
    } catch {
      writing?.abort()
      throw error
    }
  }

  private func pull(_ writing: inout (any EntryWriter)?) async throws(CacheError) -> Data {
    if let length = body.length, length > load.maximumBodySize { throw tooLarge }
    var data = Data()
    while let chunk = try await body.source.next() {
      guard Int64(data.count) + Int64(chunk.count) <= load.maximumBodySize else { throw tooLarge }
      if data.isEmpty {
        data = chunk
        // A server's word may size a buffer only as far as that does no harm.
        if let length = body.length, length > chunk.count { data.reserveCapacity(Int(min(length, 64 << 20))) }
      } else {
        data.append(chunk)
      }
      await attempt(&writing) { writer throws(CacheError) in try await writer.write(chunk) }
      report(.progress(LoadProgress(received: Int64(data.count), expected: body.length)))
    }
    return data
  }

  private func commit(_ writing: inout (any EntryWriter)?, _ data: Data) async -> StoredMetadata? {
    let trailers = body.source.trailers
    var committed: StoredMetadata?
    await attempt(&writing) { writer throws(CacheError) in committed = try await writer.commit(trailers: trailers) }
    if committed != nil { load.observe(.stored(key: key, layer: .disk, bytes: Int64(data.count))) }
    return committed
  }

  private func attempt(
    _ writing: inout (any EntryWriter)?, _ step: (any EntryWriter) async throws(CacheError) -> Void
  ) async {
    guard let writer = writing else { return }
    do throws(CacheError) {
      try await step(writer)
    } catch {
      writer.abort()
      writing = nil
      load.observe(.storeFailed(key: key, error: error))
    }
  }

  private var tooLarge: CacheError { load.bodyTooLarge }
}
