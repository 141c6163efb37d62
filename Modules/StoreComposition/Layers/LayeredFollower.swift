internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A reader of an entry that is being written to several layers. If its layer fails, it continues with the next one at the same
/// offset.
final class LayeredFollower: ResourceBody.Source {
  private struct State {
    var bodies: ArraySlice<ResourceBody>
    var offset = 0
    /// The number of bytes in the current body that were already returned from another one.
    var skip = 0
    var isCancelled = false
    var hasEnded = false
  }

  private let state: Lock<State>

  init(_ bodies: [ResourceBody]) { state = Lock(State(bodies: bodies[...])) }

  func next() async throws(CacheError) -> Data? {
    while true {
      let body = try state.withLock { state throws(CacheError) in
        if state.isCancelled { throw .cancelled }
        return state.bodies.first
      }
      guard let body else { throw CacheError(.truncatedBody, reason: "every layer has failed to store the body") }
      do throws(CacheError) {
        guard let chunk = try await body.source.next() else {
          state.withLock { $0.hasEnded = true }
          return nil
        }
        if let rest = advance(chunk) { return rest }
      } catch {
        if error.isCancellation { throw error }
        try goOn(after: error)
      }
    }
  }

  /// Returns the new part of a chunk, or `nil` if there is none.
  private func advance(_ chunk: Data) -> Data? {
    state.withLock { state in
      let known = min(state.skip, chunk.count)
      state.skip -= known
      guard known < chunk.count else { return nil }
      state.offset += chunk.count - known
      return known == 0 ? chunk : Data(chunk.dropFirst(known))
    }
  }

  private func goOn(after error: CacheError) throws(CacheError) {
    try state.withLock { state throws(CacheError) in
      guard state.bodies.count > 1 else { throw error }
      state.bodies.removeFirst()
      state.skip = state.offset
    }
  }

  func cancel() {
    let bodies = state.withLock { state in
      state.isCancelled = true
      return state.bodies
    }
    for body in bodies { body.source.cancel() }
  }

  var trailers: HTTPFields? {
    state.withLock { $0.hasEnded ? $0.bodies.first?.source.trailers : nil }
  }
}
