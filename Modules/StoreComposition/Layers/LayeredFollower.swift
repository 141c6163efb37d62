internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Follows a writer of several layers: when the layer drops out that it reads, it goes on with the next one where it was.
final class LayeredFollower: ResourceBody.Source {
  private struct State {
    var bodies: ArraySlice<ResourceBody>
    var offset = 0
    /// Bytes of the present body that have been handed out from another one.
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
      guard let body else { throw CacheError(.truncatedBody, reason: "no layer has the body any more") }
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

  /// What of a chunk is new; nil: nothing.
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
