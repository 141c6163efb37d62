internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Takes a body in: to where the load wants it, and chunk by chunk to the disk.
///
/// The disk is a guest here: when it fails the transfer goes on without it, unless the load is for the disk alone. What is
/// incomplete is never committed.
struct Receiver: Sendable {
  /// A body that has come to its end.
  struct Received: Sendable {
    /// All bytes, where they go into memory; else none.
    var data: Data
    /// How many bytes there were.
    var count: Int64
    /// What the disk has taken, to be committed; nil: it takes no part (any more).
    var writer: (any EntryWriter)?
  }

  let load: ResolvedRequest
  let body: ResourceBody
  let writer: (any EntryWriter)?
  let key: CacheKey
  /// What the body takes of the memory budget.
  let share: MemoryReservation
  /// Asked once the body is whole: whether it is still to be stored.
  var isWanted: @Sendable () -> Bool = { true }
  let report: @Sendable (CoalescedLoadEvent<LoadOutcome>) -> Void

  func receive() async throws(CacheError) -> Received {
    var writing = writer
    var sink = BodySink(load, share)
    do throws(CacheError) {
      try await pull(into: &sink, &writing)
      if let expected = body.length, sink.count != expected {
        throw CacheError(.truncatedBody, reason: "the body ended after \(sink.count) of \(expected) bytes")
      }
      try await sink.finish()
      return Received(data: sink.data, count: sink.count, writer: writing)
    } catch {
      writing?.abort()
      throw error
    }
  }

  private func pull(into sink: inout BodySink, _ writing: inout (any EntryWriter)?) async throws(CacheError) {
    try await sink.begin(expecting: body.length)
    while let chunk = try await body.source.next() {
      try await sink.take(chunk, of: body.length)
      if let writer = writing, try await !write(chunk, to: writer) { writing = nil }
      report(.progress(LoadProgress(received: sink.count, expected: body.length)))
    }
  }

  /// The metadata as the disk has committed it; nil: it has not.
  func commit(_ received: Received) async throws(CacheError) -> StoredMetadata? {
    guard let writer = received.writer else { return nil }
    guard isWanted() else {
      writer.abort()
      return nil
    }
    do throws(CacheError) {
      let committed = try await writer.commit(trailers: body.source.trailers)
      load.observe(.stored(key: key, layer: .disk, bytes: received.count))
      return committed
    } catch {
      try fail(writer, error)
      return nil
    }
  }

  /// - Returns: whether the disk goes on taking part.
  private func write(_ chunk: Data, to writer: any EntryWriter) async throws(CacheError) -> Bool {
    let outcome = await load.writeDeadline.wait(load, times: 10) { () -> Result<Void, CacheError> in
      do throws(CacheError) {
        return .success(try await writer.write(chunk))
      } catch {
        return .failure(error)
      }
    }
    do throws(CacheError) {
      try (outcome ?? .failure(CacheError(.overloaded, reason: "the store takes too long"))).get()
      return true
    } catch {
      try fail(writer, error)
      return false
    }
  }

  private func fail(_ writer: any EntryWriter, _ error: CacheError) throws(CacheError) {
    writer.abort()
    load.observe(.storeFailed(key: key, error: error))
    // Nobody else wants the bytes: there is nothing to go on for.
    if load.target.isStore { throw error }
  }
}
