internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Writes one entry into several layers. A layer that fails is dropped.
final class LayeredWriter: EntryWriter {
  private struct State {
    var writers: [Int: any EntryWriter]
    /// The error after which no writer is left.
    var end: CacheError?
  }

  private let key: CacheKey
  private let metadata: StoredMetadata
  /// The layers that get the entry after the commit.
  private let deferredLayers: Range<Int>
  private let store: LayeredStore
  private let state: Lock<State>

  init(
    _ key: CacheKey, _ metadata: StoredMetadata, _ writers: [Int: any EntryWriter], deferredLayers: Range<Int>,
    _ store: LayeredStore
  ) {
    (self.key, self.metadata, self.deferredLayers, self.store) = (key, metadata, deferredLayers, store)
    state = Lock(State(writers: writers))
  }

  deinit { abort() }

  private var writers: [(index: Int, writer: any EntryWriter)] {
    state.withLock { $0.writers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }

  private var ended: CacheError { state.withLock { $0.end } ?? CacheError(.misuse, reason: "the writer has already ended") }

  // MARK: Writing

  func write(_ chunk: Data) async throws(CacheError) {
    let writers = writers
    guard !writers.isEmpty else { throw ended }
    for (index, writer) in writers {
      do throws(CacheError) {
        try await writer.write(chunk)
      } catch {
        try drop(index, error)
      }
    }
  }

  /// - Throws: The error, if this was the last writer.
  private func drop(_ index: Int, _ error: CacheError) throws(CacheError) {
    let (writer, isLast) = state.withLock { state in
      let writer = state.writers.removeValue(forKey: index)
      if state.writers.isEmpty, state.end == nil { state.end = error }
      return (writer, state.writers.isEmpty)
    }
    // If the writer is already gone, it was aborted during the write, which is not a failure of its layer.
    if writer != nil, !error.isCancellation { store.layers[index].note(error) }
    writer?.abort()
    if isLast { throw error }
  }

  // MARK: The end

  /// Commits the lowest layer first, so that an entry that is visible above is already stored below.
  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    try await commit { writer throws(CacheError) in try await writer.commit(trailers: trailers) } ?? metadata
  }

  func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? {
    try await commit { writer throws(CacheError) in try await writer.commitPart(as: metadata) }
  }

  /// - Parameter commit: Commits the entry of one layer. Returns `nil` if the layer does not accept it.
  private func commit(
    _ commit: (any EntryWriter) async throws(CacheError) -> StoredMetadata?
  ) async throws(CacheError) -> StoredMetadata? {
    if !deferredLayers.isEmpty { await store.copyTable.reserve(store.configuration.backlog) }
    defer { if !deferredLayers.isEmpty { store.copyTable.release() } }
    await store.barrier.beginChange([key.resource])
    defer { store.barrier.endChange([key.resource]) }
    let writers = state.withLock { state in
      defer { state.writers = [:] }
      return state.writers
    }
    guard !writers.isEmpty else { throw ended }
    var committed: Set<Int> = []
    var stored: StoredMetadata?
    var failure: CacheError?
    for (index, writer) in writers.sorted(by: { $0.key > $1.key }) {
      do throws(CacheError) {
        guard let entry = try await commit(writer) else { continue }
        stored = entry
        committed.insert(index)
        store.layers[index].show(key)
      } catch {
        store.layers[index].note(error)
        failure = error
        // The layers above must not hide the later response either.
        if error.code == .superseded {
          for writer in writers.values { writer.abort() }
          break
        }
      }
    }
    if committed.isEmpty, let failure {
      state.withLock { $0.end = failure }
      throw failure
    }
    // No layer accepts the part of a body.
    guard let stored else { return nil }
    await replace(committed)
    return stored
  }

  /// Ensures that no other layer returns the replaced entry.
  private func replace(_ committed: Set<Int>) async {
    for (index, layer) in store.layers.enumerated() where !committed.contains(index) {
      if deferredLayers.contains(index) { layer.hide(key) } else { _ = await layer.remove(key) }
    }
    if !deferredLayers.isEmpty { store.writeBack(key) }
  }

  func abort() {
    let writers = state.withLock { state in
      if state.end == nil { state.end = CacheError(.truncatedBody, reason: "the writer of the entry was aborted") }
      defer { state.writers = [:] }
      return state.writers
    }
    for writer in writers.values { writer.abort() }
  }
}
