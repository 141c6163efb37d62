internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A part of a representation that is arriving from the origin. Any number of readers read it at their own pace, each from a
/// position of its own.
///
/// All of its bytes stay in memory until the last reader has left. A part is short, so that this needs no back-pressure, and the
/// memory budget counts it. A part that must not be stored is for the reader alone that has requested it (RFC 9111 §5.2.2.5).
final class PartTransfer: Sendable {
  /// The identity of a reader. A transfer retains that of its owner, so that no later reader has the same one.
  final class Reader: Sendable {
    fileprivate let request: HTTPRequest

    init(_ request: HTTPRequest) { self.request = request }
  }

  private struct State {
    /// The bytes that have arrived, each chunk with its position in the whole.
    var chunks: [(position: Int64, data: Data)] = []
    /// The position after the last byte that has arrived.
    var arrived: Int64
    /// The position after the last byte, which the response may reduce.
    var end: Int64
    /// Whether the response has the expected state.
    var isConfirmed = false
    /// Whether the response must not be used for other requests.
    var isForOwner = false
    var ending: Result<Void, CacheError>?
    var readers: Set<ObjectIdentifier> = []
  }

  private struct Work {
    var isBegun = false
    var isCancelled = false
    var task: Task<Void, Never>?
  }

  /// The position of the first byte.
  let start: Int64
  /// The reader for which the part is requested, or `nil` if the response has arrived and may be stored.
  private let owner: Reader?
  /// The part of the memory budget that the bytes use, or `nil` if they are too few to be counted.
  private let reservation: MemoryReservation?
  private let state: WatchedState<State>
  private let work = Lock(Work())

  init(_ bytes: Range<Int64>, for owner: Reader?, _ reservation: MemoryReservation?) {
    (start, self.owner, self.reservation) = (bytes.lowerBound, owner, reservation)
    state = WatchedState(State(arrived: bytes.lowerBound, end: bytes.upperBound))
  }

  deinit { reservation?.release() }

  /// The positions of all bytes of the part.
  var bytes: Range<Int64> { start..<max(start, state.read { $0.end }) }

  /// Whether a reader may use the bytes. The error of a request that had no part as its response is for its reader alone: the
  /// fields of another reader's request can lead to another response.
  ///
  /// - Parameter isKnown: Whether the response must have arrived. If not, a reader may use them as far as is known.
  func isUsable(by reader: Reader, isKnown: Bool = false) -> Bool {
    reader === owner || state.read { !$0.isForOwner && ($0.isConfirmed || !isKnown && $0.ending == nil) }
  }

  /// Whether the response has not arrived yet, and was requested by another reader.
  func isExpected(by reader: Reader) -> Bool {
    reader !== owner && state.read { !$0.isConfirmed && $0.ending == nil }
  }

  /// Whether the reader that has requested the part has the fields of another one.
  func hasOwner(like reader: Reader) -> Bool { owner?.request.isLike(reader.request) == true }

  /// Whether the bytes are for one reader alone.
  var isForOwner: Bool { state.read { $0.isForOwner } }

  // MARK: Receiving

  /// Returns whether the caller must run the transfer, which is the case once.
  func begin() -> Bool {
    work.withLock { work in
      defer { work.isBegun = true }
      return !work.isBegun
    }
  }

  /// Requests the part and receives it, in a task of its own: the reader that began it may leave before the others.
  ///
  /// - Parameters:
  ///   - executor: The executor of the task.
  ///   - request: Sends the request.
  ///   - ended: Called with the response when all bytes have arrived, or with `nil` after an error.
  func run(
    on executor: (any TaskExecutor)?, _ request: @escaping @Sendable () async throws(CacheError) -> Exchange,
    ended: @escaping @Sendable (Exchange?) -> Void
  ) {
    work.withLock { work in
      // The last reader may have left before this point.
      guard !work.isCancelled else { return }
      work.task = Task.detached(executorPreference: executor) { [self] in
        do throws(CacheError) {
          let exchange = try await request()
          try await receive(exchange)
          finish(.success(()))
          ended(exchange)
        } catch {
          finish(.failure(error))
          ended(nil)
        }
      }
    }
  }

  private func receive(_ exchange: Exchange) async throws(CacheError) {
    defer { exchange.body.source.cancel() }
    let stated = ContentRange(exchange.head.headerFields)?.bytes.upperBound ?? start
    state.update { state in
      state.isConfirmed = true
      state.isForOwner = owner != nil && !exchange.isStored
      state.end = min(state.end, stated)
    }
    while let chunk = try await exchange.body.source.next() {
      let isOverlong = state.update { state in
        let chunk = chunk.prefix(Int(min(Int64(chunk.count), state.end - state.arrived)))
        guard !chunk.isEmpty else { return true }
        state.chunks.append((state.arrived, Data(chunk)))
        state.arrived += Int64(chunk.count)
        return false
      }
      // The bytes beyond the range belong to no position.
      if isOverlong { return }
    }
  }

  private func finish(_ result: Result<Void, CacheError>) {
    state.update { state in
      state.ending = result
      state.end = min(state.end, state.arrived)
    }
  }

  func cancel() {
    let task = work.withLock { work in
      work.isCancelled = true
      return work.task
    }
    task?.cancel()
  }

  // MARK: Reading

  func join(_ reader: Reader) { state.update { _ = $0.readers.insert(ObjectIdentifier(reader)) } }

  /// Removes a reader, which then reads no more.
  ///
  /// - Returns: Whether the bytes are of no use for any other reader.
  func leave(_ reader: Reader) -> Bool {
    state.update { state in
      state.readers.remove(ObjectIdentifier(reader))
      return state.readers.isEmpty || state.isForOwner && reader === owner
    }
  }

  /// Waits until the origin has confirmed the state of the representation.
  ///
  /// - Returns: Whether the reader may use the bytes.
  /// - Throws: A cancellation, and for the owner the error of the request.
  func confirmed(for reader: Reader) async throws(CacheError) -> Bool {
    await state.wait { $0.isConfirmed || $0.ending != nil || !$0.readers.contains(ObjectIdentifier(reader)) }
    try state.read { state -> Result<Void, CacheError> in
      if state.isConfirmed { return .success(()) }
      guard let ending = state.ending, state.readers.contains(ObjectIdentifier(reader)) else { return .failure(.cancelled) }
      return reader === owner ? ending : .success(())
    }.get()
    return isUsable(by: reader)
  }

  /// Returns the next bytes from a position on, or `nil` if the part has no more for the reader.
  func next(at position: Int64, for reader: Reader) async throws(CacheError) -> Data? {
    await state.wait {
      position < $0.arrived || $0.ending != nil || $0.isForOwner && reader !== self.owner
        || !$0.readers.contains(ObjectIdentifier(reader))
    }
    return try state.read { state -> Result<Data?, CacheError> in
      guard state.readers.contains(ObjectIdentifier(reader)) else { return .failure(.cancelled) }
      if state.isForOwner, reader !== owner { return .success(nil) }
      // The reader requests the bytes itself.
      if !state.isConfirmed, state.ending != nil, reader !== owner { return .success(nil) }
      guard position < state.arrived else {
        if Task.isCancelled, state.ending == nil { return .failure(.cancelled) }
        return (state.ending ?? .success(())).map { nil }
      }
      guard let index = state.chunks.lastIndex(where: { $0.position <= position }) else { return .success(nil) }
      let (first, data) = state.chunks[index]
      return .success(position == first ? data : Data(data.dropFirst(Int(position - first))))
    }.get()
  }
}
