internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Takes a body in: to where the load wants it, and chunk by chunk to the disk.
///
/// The disk is a guest here: when it fails the transfer goes on without it, unless the load is for the disk alone. What is incomplete is never
/// committed.
struct Receiver: Sendable {
  /// A body that has come to its end.
  struct Received: Sendable {
    /// All bytes, where they go into memory; else none.
    var data: Data
    /// How many bytes there were.
    var count: Int64
    /// The metadata as the disk has committed it.
    var committed: StoredMetadata?
  }

  let load: ResolvedLoad
  let body: Body
  let writer: (any EntryWriter)?
  let key: CacheKey
  /// Asked once the body is whole: whether it is still to be stored.
  var isWanted: @Sendable () -> Bool = { true }
  let report: @Sendable (FlightEvent<Fetched>) -> Void

  func receive() async throws(CacheError) -> Received {
    var writing = writer
    var sink = BodySink(load)
    do throws(CacheError) {
      try await pull(into: &sink, &writing)
      if let expected = body.length, sink.count != expected {
        throw CacheError(.truncatedBody, reason: "the body ended after \(sink.count) of \(expected) bytes")
      }
      try await sink.finish()
      return Received(data: sink.data, count: sink.count, committed: try await commit(&writing, count: sink.count))
    } catch {
      writing?.abort()
      throw error
    }
  }

  private func pull(into sink: inout BodySink, _ writing: inout (any EntryWriter)?) async throws(CacheError) {
    try await sink.begin(expecting: body.length)
    while let chunk = try await body.source.next() {
      try await sink.take(chunk, of: body.length)
      try await attempt(&writing) { writer throws(CacheError) in try await writer.write(chunk) }
      report(.progress(LoadProgress(received: sink.count, expected: body.length)))
    }
  }

  private func commit(_ writing: inout (any EntryWriter)?, count: Int64) async throws(CacheError) -> StoredMetadata? {
    guard isWanted() else {
      writing?.abort()
      writing = nil
      return nil
    }
    let trailers = body.source.trailers
    var committed: StoredMetadata?
    try await attempt(&writing) { writer throws(CacheError) in committed = try await writer.commit(trailers: trailers) }
    if committed != nil { load.observe(.stored(key: key, layer: .disk, bytes: count)) }
    return committed
  }

  private func attempt(
    _ writing: inout (any EntryWriter)?, _ step: (any EntryWriter) async throws(CacheError) -> Void
  ) async throws(CacheError) {
    guard let writer = writing else { return }
    do throws(CacheError) {
      try await step(writer)
    } catch {
      writer.abort()
      writing = nil
      load.observe(.storeFailed(key: key, error: error))
      // Nobody else wants the bytes: there is nothing to go on for.
      if load.target.isStore { throw error }
    }
  }
}
