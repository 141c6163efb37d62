#if Server
import CacheCore
import Foundation
import HTTPTypes
import NIOCore

/// The body of a client's request. The connection pushes bytes on its event loop, and a reader pulls them from any thread. The
/// socket is read only when the reader waits for bytes.
final class IncomingBody: ResourceBody.Source {
  private enum End {
    case complete
    case failed(CacheError)
  }

  private struct State {
    var pieces: [ByteBuffer] = []
    var count = 0
    var end: End?
    var waiter: Resumption<Result<Data?, CacheError>>?
    var isAbandoned = false
  }

  private let state = Lock(State())
  private let onDemand: @Sendable () -> Void

  /// Creates a body that has no bytes yet.
  ///
  /// - Parameter onDemand: Called from any thread when the reader waits for bytes.
  init(onDemand: @escaping @Sendable () -> Void) { self.onDemand = onDemand }

  // MARK: The connection's side

  /// Whether the connection should read more bytes for this body.
  var wantsMore: Bool { state.withLock { $0.waiter != nil || $0.isAbandoned } }

  /// Adds bytes that have arrived. Returns false if the reader has abandoned the body.
  func push(_ bytes: ByteBuffer) -> Bool {
    let (isWanted, waiter, data) = state.withLock { state -> (Bool, Waiter?, Data?) in
      guard !state.isAbandoned else { return (false, nil, nil) }
      state.pieces.append(bytes)
      state.count += bytes.readableBytes
      guard let waiter = state.waiter else { return (true, nil, nil) }
      state.waiter = nil
      return (true, waiter, Self.take(&state))
    }
    waiter?.resume(returning: .success(data))
    return isWanted
  }

  /// Ends the body after its last byte.
  func finish() { end(.complete) }

  /// Ends the body with an error.
  func fail(_ error: CacheError) { end(.failed(error)) }

  private func end(_ end: End) {
    let waiter = state.withLock { state -> Waiter? in
      guard state.end == nil else { return nil }
      state.end = end
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: Self.result(of: end))
  }

  // MARK: The reader's side

  func next() async throws(CacheError) -> Data? {
    let result = await withTaskCancellationHandler {
      await withResumption { (waiter: Waiter) in
        let ready = state.withLock { state -> Result<Data?, CacheError>? in
          if state.isAbandoned { return .failure(.cancelled) }
          if state.count > 0 { return .success(Self.take(&state)) }
          if let end = state.end { return Self.result(of: end) }
          guard state.waiter == nil else {
            return .failure(CacheError(.misuse, reason: "the body has two readers at the same time"))
          }
          state.waiter = waiter
          return nil
        }
        if let ready { waiter.resume(returning: ready) } else { onDemand() }
      }
    } onCancel: {
      cancel()
    }
    return try result.get()
  }

  func cancel() {
    let waiter = state.withLock { state -> Waiter? in
      state.isAbandoned = true
      (state.pieces, state.count) = ([], 0)
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: .failure(.cancelled))
  }

  /// `nil`, because no downloader forwards trailers.
  var trailers: HTTPFields? { nil }

  private typealias Waiter = Resumption<Result<Data?, CacheError>>

  private static func take(_ state: inout State) -> Data {
    var data = Data(capacity: state.count)
    for piece in state.pieces { piece.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    (state.pieces, state.count) = ([], 0)
    return data
  }

  private static func result(of end: End) -> Result<Data?, CacheError> {
    switch end {
    case .complete: .success(nil)
    case .failed(let error): .failure(error)
    }
  }
}
#endif
