internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A range of a representation, read from stored parts and from parts that arrive (RFC 9111 §3.4).
///
/// A part is requested when the reader reaches it. A reader whose range has an end also requests the part after the one that it
/// is reading, so that it need not wait for the origin between two parts.
final class CombinedBody: ResourceBody.Source {
  /// The part that is being read.
  private enum Current {
    case stored(ResourceBody, Candidate, end: Int64)
    case arriving(PartTransfer)
  }

  private struct State {
    /// The position of the next byte in the whole.
    var position: Int64
    var current: Current?
    /// A transfer that was requested before the reader reached it.
    var ahead: PartTransfer?
    /// The whole response, if another request has stored it in place of the parts.
    var whole: Candidate?
    /// The position of the last lookup for parts that were gone.
    var lookup: Int64?
    /// Whether another reader's request for a part has failed. This reader then waits for no such request any more.
    var requestsAlone = false
    var isCancelled = false
    /// Whether other requests may read the body too.
    var isShared = false
    /// The leader that lets them. Weak, because it refers to this body.
    weak var leader: CoalescingLeader?
  }

  private let fetch: Fetch
  private let live: LiveParts
  private let wanted: Range<Int64>
  private let isWhole: Bool
  private let isOpenEnded: Bool
  /// The right to store the whole response, which ends with this body.
  private let claim: LiveParts.RecordingClaim?
  /// Whether the reader stores the whole response, and no parts. A load always collects it.
  let storesWhole: Bool
  private let state: Lock<State>

  /// - Parameters:
  ///   - fetch: The request of the reader.
  ///   - live: The parts.
  ///   - wanted: The positions of the bytes to read.
  ///   - isWhole: Whether the response is the whole one, and not a part.
  ///   - isOpenEnded: Whether the reader is likely to leave before the end.
  init(_ fetch: Fetch, _ live: LiveParts, _ wanted: Range<Int64>, isWhole: Bool, isOpenEnded: Bool) {
    (self.live, self.wanted, self.isWhole, self.isOpenEnded) = (live, wanted, isWhole, isOpenEnded)
    reader = PartTransfer.Reader(fetch.head)
    var alone = fetch
    // The requests for parts are no outcome for the requests that wait for the whole.
    alone.leader = nil
    self.fetch = alone
    claim = isWhole ? live.claimRecording() : nil
    storesWhole = isWhole && (claim != nil || !fetch.request.destination.isStream)
    state = Lock(State(position: wanted.lowerBound))
  }

  deinit { leave() }

  var trailers: HTTPFields? { nil }

  func cancel() {
    state.withLock { $0.isCancelled = true }
    leave()
  }

  private let reader: PartTransfer.Reader

  /// Notes that other requests may read this body too.
  func share(by leader: CoalescingLeader) { state.withLock { ($0.isShared, $0.leader) = (true, leader) } }

  /// Returns whether no other request reads this body. From then on, none does.
  private func isForOneReader() -> Bool {
    let (isShared, leader) = state.withLock { ($0.isShared, $0.leader) }
    return !isShared || leader?.closeIfAlone() == true
  }

  private func leave() {
    let (current, ahead) = state.withLock { state in
      defer { (state.current, state.ahead) = (nil, nil) }
      return (state.current, state.ahead)
    }
    switch current {
    case .stored(let body, _, _): body.source.cancel()
    case .arriving(let transfer): live.leave(transfer, reader)
    case nil: break
    }
    if let ahead { live.leave(ahead, reader) }
  }

  /// Waits until the origin has confirmed a missing part, if the first byte is missing, the whole is wanted or the stored parts
  /// are stale. If no byte is missing, the first one confirms stale parts.
  ///
  /// - Parameter requiresValidation: Whether a response that arrives from now on must confirm the parts.
  /// - Returns: `false` if another reader's request has shown that the origin has another state.
  func begin(requiresValidation: Bool) async throws(CacheError) -> Bool {
    var confirmsAlone = !fetch.acceptsFreshResponse
    while let (transfer, isNew) = try confirmation(requiresValidation, alone: confirmsAlone) {
      let isWanted = take(transfer)
      if isNew { fetch.run(transfer, of: live, isStored: !isWanted || !storesWhole) }
      let isUsable: Bool
      do throws(CacheError) {
        let hasPart = try await transfer.confirmed(for: reader)
        if !hasPart { state.withLock { $0.requestsAlone = true } }
        isUsable = hasPart && (isNew || !requiresValidation || isConfirmed(by: transfer))
        if isUsable, !isWanted, isNew { try await end(of: transfer) }
      } catch {
        if !isWanted { live.leave(transfer, reader) }
        throw error
      }
      if !isWanted { live.leave(transfer, reader) }
      if isUsable { return true }
      leave()
      guard live.isCurrent else { return false }
      confirmsAlone = true
    }
    return true
  }

  /// Retains a transfer until the reader has read it.
  ///
  /// - Returns: Whether the reader wants its bytes.
  private func take(_ transfer: PartTransfer) -> Bool {
    state.withLock { state in
      if transfer.bytes.contains(state.position) {
        state.current = .arriving(transfer)
      } else if transfer.bytes.overlaps(wanted) {
        state.ahead = transfer
      } else {
        return false
      }
      return true
    }
  }

  /// Whether the response to another reader's request, which has just arrived, confirms the parts for this one. One that was not
  /// fresh does so only if the fields are equal, because the origin cannot distinguish those.
  private func isConfirmed(by transfer: PartTransfer) -> Bool {
    live.mayBeStored && (live.whole.wasFresh || transfer.hasOwner(like: reader)) && fetch.mayJoin(live)
      && fetch.isSatisfied(by: live, isEarly: true)
  }

  /// Waits until the byte that has confirmed the parts is stored. A transfer without readers ends.
  private func end(of transfer: PartTransfer) async throws(CacheError) {
    do throws(CacheError) {
      _ = try await transfer.next(at: transfer.start + 1, for: reader)
    } catch {
      // The reader does not need the byte.
      if error.isCancellation { throw error }
    }
  }

  /// Returns the transfer for which the reader must wait, and whether it must run it. `nil` if it need not wait.
  ///
  /// - Parameter isAlone: Whether the response to another reader's request confirms nothing.
  private func confirmation(
    _ requiresValidation: Bool, alone isAlone: Bool
  ) throws(CacheError) -> (transfer: PartTransfer, isNew: Bool)? {
    let missing = live.firstMissing(in: wanted)
    // A whole body that breaks off, because the origin has another state, costs more than waiting for the first missing part.
    guard requiresValidation || missing == wanted.lowerBound || isWhole else { return nil }
    if let missing, case let (piece, isNew) = try piece(at: missing), case .arriving(let transfer) = piece.source {
      if !requiresValidation || isNew || !isAlone && transfer.isExpected(by: reader) { return (transfer, isNew) }
      live.leave(transfer, reader)
    }
    guard requiresValidation else { return nil }
    guard fetch.permitsRequest else { throw .onlyCached }
    return live.confirmation(for: reader, alone: isAlone)
  }

  /// Returns the piece at a position. If its bytes are missing, the memory budget counts them. Without room, the piece is short.
  private func piece(at position: Int64) throws(CacheError) -> (piece: LiveParts.Piece, isNew: Bool) {
    let isAlone = state.withLock { $0.requestsAlone }
    if let known = live.piece(at: position, for: reader, alone: isAlone, missing: nil) { return known }
    guard fetch.permitsRequest else { throw .onlyCached }
    let most = isOpenEnded ? LiveParts.PieceLength.openEnded(after: position - wanted.lowerBound) : LiveParts.PieceLength.longest
    let reservation = fetch.request.budget.streamReservation(holding: Int(most))
    // A length that an origin states can be the greatest number.
    let end = position + min(wanted.upperBound - position, reservation == nil ? LiveParts.PieceLength.uncounted : most)
    guard let piece = live.piece(at: position, for: reader, alone: isAlone, missing: (end, reservation)) else { throw .cancelled }
    return piece
  }

  /// Whether the next part is requested while this one is read. A reader of a range without an end may leave.
  private func readsAhead(at position: Int64) -> Bool { !isOpenEnded || position - wanted.lowerBound >= 16 << 20 }

  func next() async throws(CacheError) -> Data? {
    while true {
      let (position, current, isCancelled) = state.withLock { ($0.position, $0.current, $0.isCancelled) }
      if isCancelled || Task.isCancelled { throw .cancelled }
      if position >= wanted.upperBound { return nil }
      switch current {
      case nil: try await open(at: position)
      case .stored(let body, let candidate, let end):
        if let chunk = try await nextStored(of: body) { return advance(by: chunk) }
        // The body ends early if the entry is damaged. The rest is then missing.
        if position < end { live.remove(candidate) }
        state.withLock { state in
          state.current = nil
          if position < end { state.whole = nil }
        }
      case .arriving(let transfer):
        if let chunk = try await transfer.next(at: position, for: reader) {
          if transfer.isForOwner, !isForOneReader() {
            throw CacheError(
              .bodyInterrupted, reason: "a part of the body is for one request alone, and others have asked for the body too")
          }
          if readsAhead(at: position) { requestAhead(of: transfer) }
          return advance(by: chunk)
        }
        // A response without bytes would be requested again and again.
        if position == transfer.start, transfer.isUsable(by: reader) {
          throw .truncated(received: 0, expected: wanted.upperBound - position)
        }
        let isUsable = transfer.isUsable(by: reader)
        state.withLock { state in
          state.current = nil
          if !isUsable { state.requestsAlone = true }
        }
        live.leave(transfer, reader)
      }
    }
  }

  private func advance(by chunk: Data) -> Data {
    state.withLock { state in
      let left = wanted.upperBound - state.position
      let chunk = Int64(chunk.count) > left ? Data(chunk.prefix(Int(left))) : chunk
      state.position += Int64(chunk.count)
      return chunk
    }
  }

  /// Returns the next bytes of a stored part, or `nil` at its end or if it cannot be read.
  private func nextStored(of body: ResourceBody) async throws(CacheError) -> Data? {
    do throws(CacheError) {
      return try await body.source.next()
    } catch {
      // The entry is not damaged because a reader leaves.
      if error.isCancellation || state.withLock({ $0.isCancelled }) { throw .cancelled }
      return nil
    }
  }

  private func open(at position: Int64) async throws(CacheError) {
    // A transfer that has ended is no piece any more, unless it was stored.
    let passed = state.withLock { state -> PartTransfer? in
      guard let ahead = state.ahead, ahead.start <= position else { return nil }
      state.ahead = nil
      guard ahead.start == position || ahead.bytes.contains(position) else { return ahead }
      state.current = .arriving(ahead)
      return nil
    }
    if let passed { live.leave(passed, reader) }
    if state.withLock({ $0.current != nil }) { return }
    if !live.isCurrent, state.withLock({ $0.whole == nil }) { try await lookUp(at: position) }
    if let whole = state.withLock({ $0.whole }) {
      if try await open(whole, position..<wanted.upperBound, upTo: wanted.upperBound) { return }
      state.withLock { $0.whole = nil }
    }
    let (piece, isNew) = try piece(at: position)
    switch piece.source {
    case .arriving(let transfer):
      let isLeft = state.withLock { state in
        if !state.isCancelled { state.current = .arriving(transfer) }
        return state.isCancelled
      }
      if isNew { fetch.run(transfer, of: live, isStored: !storesWhole) }
      if isLeft { live.leave(transfer, reader) }
    case .stored(let candidate):
      let end = min(piece.bytes.upperBound, wanted.upperBound)
      let bytes = (position - piece.bytes.lowerBound)..<(end - piece.bytes.lowerBound)
      if try await open(candidate, bytes, upTo: end) { return }
      live.remove(candidate)
      try await lookUp(at: position)
    }
  }

  /// Begins to read some of the bytes of a stored response.
  ///
  /// - Parameter end: The position after the last byte in the whole.
  /// - Returns: Whether they can be read.
  private func open(_ candidate: Candidate, _ bytes: Range<Int64>, upTo end: Int64) async throws(CacheError) -> Bool {
    guard let body = try await fetch.storedBytes(of: candidate, bytes) else { return false }
    let isLeft = state.withLock { state in
      if !state.isCancelled { state.current = .stored(body, candidate, end: end) }
      return state.isCancelled
    }
    if isLeft { body.source.cancel() }
    return true
  }

  /// Looks once for what other requests have stored in place of a part that is gone.
  private func lookUp(at position: Int64) async throws(CacheError) {
    let isFirst = state.withLock { state in
      defer { state.lookup = position }
      return state.lookup != position
    }
    guard isFirst else { return }
    let whole = live.takeOver(try await fetch.storedNow())
    state.withLock { $0.whole = whole }
  }

  /// Requests the part after a transfer that is being read, if it is missing.
  private func requestAhead(of transfer: PartTransfer) {
    let next = transfer.bytes.upperBound
    guard next < wanted.upperBound, state.withLock({ $0.ahead == nil && !$0.isCancelled }) else { return }
    guard let (piece, isNew) = try? piece(at: next), case .arriving(let following) = piece.source, following !== transfer else {
      return
    }
    let isLeft = state.withLock { state in
      if !state.isCancelled { state.ahead = following }
      return state.isCancelled
    }
    if isNew { fetch.run(following, of: live, isStored: !storesWhole) }
    if isLeft { live.leave(following, reader) }
  }
}
