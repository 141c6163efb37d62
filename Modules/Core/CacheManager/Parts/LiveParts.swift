internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The parts of one representation that readers combine (RFC 9111 §3.4): those that are stored, and those that are arriving.
///
/// A reader reads what is stored, joins what is arriving, and requests what is missing, piece by piece. Each byte is requested
/// once, whichever ranges the readers want. No reader waits for bytes before its own, except for those of one piece.
final class LiveParts: Sendable {
  /// The length of the pieces that are requested, in bytes. A reader that jumps in a body without end leaves most of a piece
  /// unread, so the pieces are short at first.
  enum PieceLength {
    static let shortest: Int64 = 256 << 10
    static let longest: Int64 = 1 << 20

    /// The length for a range without an end, by the number of bytes that its reader has read.
    static func openEnded(after count: Int64) -> Int64 { min(longest, max(shortest, count / 64)) }

    /// The length without room in the memory budget.
    static let uncounted: Int64 = 64 << 10
  }

  enum Source {
    case stored(Candidate)
    case arriving(PartTransfer)
  }

  /// A part, and where its bytes are.
  struct Piece {
    var bytes: Range<Int64>
    var source: Source

    fileprivate func isUsable(by reader: PartTransfer.Reader, isKnown: Bool) -> Bool {
      if case .arriving(let transfer) = source { transfer.isUsable(by: reader, isKnown: isKnown) } else { true }
    }

    fileprivate func isArriving(_ transfer: PartTransfer) -> Bool {
      if case .arriving(let other) = source { other === transfer } else { false }
    }

    fileprivate func isStored(_ revision: Revision) -> Bool {
      if case .stored(let candidate) = source { candidate.metadata.revision == revision } else { false }
    }
  }

  private struct State {
    /// The metadata of the whole response, with the fields of the latest part.
    var whole: StoredMetadata
    var pieces: [Piece]
    /// The response with which the representation was opened, until a reader reads it.
    var opened: (start: Int64, response: Exchange)?
    /// Whether the origin has another state, or the whole response is stored, so that no request joins.
    var isOutdated = false
    /// Whether a part must not be stored, and the whole with it (RFC 9111 §3).
    var forbidsStoring = false
    /// Whether a reader stores the whole response.
    var isRecorded = false
    /// Whether parts are being merged.
    var isMerging = false
    /// The number of stored parts from which on they are merged, which a failure raises.
    var mergingMinimum = 0
    /// The most bytes of a merged part that the store may accept.
    var mergingLimit = Int64.max
  }

  /// The variant under which the whole response is stored.
  let variant: String
  /// The value of `If-Range` in requests for missing parts.
  private let condition: String?
  /// The caller's request that has opened the representation, or `nil` if parts were stored.
  private let openingRequest: HTTPRequest?
  /// The length of the whole in bytes.
  let length: Int64
  private let validator: RangeValidator?
  private let coding: String?
  /// The position of the ``InvalidationLog`` when the first request began.
  let logPosition: Int
  private let state: Lock<State>
  private let released = Lock<(@Sendable () -> Void)?>(nil)

  /// - Parameters:
  ///   - combination: The parts, and the request for missing ones.
  ///   - candidates: The stored responses that the combination refers to.
  ///   - logPosition: The position of the invalidation log at the lookup.
  ///   - opened: The response with which the representation was opened, the positions of its bytes, and the caller's request.
  init(
    _ combination: PartCombination, _ candidates: [Candidate], logPosition: Int,
    opened: (bytes: Range<Int64>, response: Exchange, reservation: MemoryReservation?, request: HTTPRequest)? = nil
  ) {
    openingRequest = opened?.request
    let whole = combination.whole
    (variant, condition) = (combination.variant, combination.request.headerFields[.ifRange])
    length = whole.bodyLength ?? combination.wanted.upperBound
    validator = RangeValidator(whole.response.headerFields, now: whole.responseTime)
    coding = whole.response.headerFields[.contentEncoding]
    self.logPosition = logPosition
    var pieces = Self.pieces(combination, candidates)
    if let opened {
      let transfer = PartTransfer(opened.bytes, for: nil, opened.reservation)
      pieces.append(Piece(bytes: opened.bytes, source: .arriving(transfer)))
    }
    state = Lock(State(whole: whole, pieces: pieces, opened: opened.map { ($0.bytes.lowerBound, $0.response) }))
  }

  deinit { released.withLock { $0.take() }?() }

  /// Sets the closure that is called when no reader is left.
  func whenReleased(_ body: @escaping @Sendable () -> Void) { released.withLock { $0 = body } }

  private static func pieces(_ combination: PartCombination, _ candidates: [Candidate]) -> [Piece] {
    combination.parts.map { part in
      // Its bytes are read when they are needed.
      var candidate = candidates[part.index]
      (candidate.data, candidate.record) = (nil, nil)
      return Piece(bytes: part.bytes, source: .stored(candidate))
    }
  }

  /// The metadata of the whole response, with the fields of the latest part.
  var whole: StoredMetadata { state.withLock { $0.whole } }

  /// Replaces the metadata after a part has arrived, whose fields are later (RFC 9111 §3.2).
  ///
  /// - Parameter whole: The metadata of the whole response, or `nil` if the part must not be stored.
  func update(_ whole: StoredMetadata?) {
    state.withLock { state in
      if let whole { state.whole = whole } else { state.forbidsStoring = true }
    }
  }

  /// Whether the whole response may be stored, and no reader has found it outdated or stored it.
  var isStorable: Bool { state.withLock { !$0.forbidsStoring && !$0.isOutdated } }

  /// Whether the whole response may be stored.
  var mayBeStored: Bool { state.withLock { !$0.forbidsStoring } }

  /// The right of one reader to store the whole response. Another reader can have it after the last reference is gone.
  final class RecordingClaim: Sendable {
    private let live: LiveParts

    fileprivate init(_ live: LiveParts) { self.live = live }

    deinit { live.state.withLock { $0.isRecorded = false } }
  }

  /// Returns the right to store the whole response, or `nil` if another reader has it.
  func claimRecording() -> RecordingClaim? {
    let isFirst = state.withLock { state in
      defer { state.isRecorded = true }
      return !state.isRecorded
    }
    return isFirst ? RecordingClaim(self) : nil
  }

  /// Whether requests may join.
  var isCurrent: Bool { state.withLock { !$0.isOutdated } }

  /// Whether the fields of a request that arrived before the first response allow it to use that response. One that was not
  /// fresh is shared only by requests with equal fields, because the origin cannot distinguish those.
  func isShareable(with request: HTTPRequest) -> Bool {
    whole.wasFresh || openingRequest?.isLike(request) == true
  }

  /// Whether a combination is about the same representation.
  func isSame(as combination: PartCombination) -> Bool {
    isCurrent && combination.whole.bodyLength == length && isConfirmed(by: combination.whole.response.headerFields)
  }

  private func isConfirmed(by fields: HTTPFields) -> Bool {
    validator?.isConfirmed(by: fields) == true && fields[.contentEncoding] == coding
  }

  /// Adds the stored parts that a later lookup has found.
  func add(_ combination: PartCombination, _ candidates: [Candidate]) { add(Self.pieces(combination, candidates)) }

  private func add(_ pieces: [Piece]) {
    state.withLock { state in
      for piece in pieces {
        guard case .stored(let candidate) = piece.source,
          !state.pieces.contains(where: { $0.isStored(candidate.metadata.revision) })
        else { continue }
        state.pieces.append(piece)
      }
    }
  }

  /// Takes over what other requests have stored in place of parts that are gone: merged parts, which are added, or the whole.
  ///
  /// - Returns: The whole response, if it is stored.
  func takeOver(_ found: [Candidate]) -> Candidate? {
    // Two variants can have the same date as their validator.
    var same = found.filter { $0.variantOfWhole == variant && isConfirmed(by: $0.metadata.response.headerFields) }
    for index in same.indices { (same[index].data, same[index].record) = (nil, nil) }
    if let whole = same.first(where: { $0.metadata.response.status == .ok && $0.metadata.bodyLength == length }) { return whole }
    add(
      same.compactMap { part in
        let response = part.metadata.response
        guard response.isSinglePart, let range = ContentRange(response.headerFields), range.completeLength == length,
          let count = part.metadata.bodyLength, count > 0, count <= range.length
        else { return nil }
        return Piece(bytes: range.bytes.lowerBound..<range.bytes.lowerBound + count, source: .stored(part))
      })
    return nil
  }

  /// The stored parts.
  var stored: [Candidate] {
    state.withLock { state in
      state.pieces.compactMap { if case .stored(let candidate) = $0.source { candidate } else { nil } }
    }
  }

  /// Returns the stored responses of a lookup, with the parts of this representation that are stored now in place of those that
  /// were stored then.
  func candidates(beside found: [Candidate]) -> [Candidate] {
    found.filter { candidate in
      let response = candidate.metadata.response
      return response.status != .partialContent || !isConfirmed(by: response.headerFields)
    } + stored
  }

  // MARK: Reading

  /// Returns the piece that has the byte at a position, and which a reader then reads up to its end. If the byte is missing, the
  /// piece is a new transfer.
  ///
  /// - Parameters:
  ///   - position: The position of the byte in the whole.
  ///   - missing: The end of a missing piece, and the part of the memory budget for it, if it is not short. With `nil`, nothing
  ///     is requested.
  ///   - reader: The reader, which joins a transfer.
  ///   - isAlone: Whether the reader joins no transfer whose response has not arrived.
  /// - Returns: The piece, and whether the caller must run its transfer. `nil` if the byte is missing and nothing is requested.
  func piece(
    at position: Int64, for reader: PartTransfer.Reader, alone isAlone: Bool,
    missing: (end: Int64, reservation: MemoryReservation?)?
  ) -> (piece: Piece, isNew: Bool)? {
    state.withLock { state in
      // After a part that is for one reader alone, readers do not wait for each other: the next one may be such a part too.
      let pieces = state.pieces.filter { $0.isUsable(by: reader, isKnown: state.forbidsStoring || isAlone) }
      let known = pieces.filter { $0.bytes.contains(position) }.max { $0.bytes.upperBound < $1.bytes.upperBound }
      if let known {
        guard case .arriving(let transfer) = known.source else { return (known, false) }
        transfer.join(reader)
        return (known, transfer.begin())
      }
      guard let missing else { return nil }
      let next = pieces.lazy.map(\.bytes.lowerBound).filter { $0 > position }.min() ?? length
      let transfer = PartTransfer(position..<max(position + 1, min(next, missing.end)), for: reader, missing.reservation)
      transfer.join(reader)
      let piece = Piece(bytes: transfer.bytes, source: .arriving(transfer))
      state.pieces.append(piece)
      return (piece, transfer.begin())
    }
  }

  /// Returns a transfer whose response confirms the stored parts: one whose response is expected, or a new one for the first
  /// byte.
  ///
  /// - Parameters:
  ///   - reader: The reader, which joins the transfer.
  ///   - isAlone: Whether the transfer must be a new one.
  /// - Returns: The transfer, and whether the caller must run it.
  func confirmation(for reader: PartTransfer.Reader, alone isAlone: Bool) -> (transfer: PartTransfer, isNew: Bool) {
    state.withLock { state in
      let expected = state.pieces.lazy.compactMap { piece -> PartTransfer? in
        if !isAlone, case .arriving(let transfer) = piece.source, transfer.isExpected(by: reader) { transfer } else { nil }
      }.first
      let transfer = expected ?? PartTransfer(0..<1, for: reader, nil)
      if expected == nil { state.pieces.append(Piece(bytes: transfer.bytes, source: .arriving(transfer))) }
      transfer.join(reader)
      return (transfer, transfer.begin())
    }
  }

  /// Returns the position of the first missing byte in a range, or `nil` if none is missing.
  func firstMissing(in wanted: Range<Int64>) -> Int64? {
    let stored = state.withLock { state in
      state.pieces.compactMap { piece in if case .stored = piece.source { piece.bytes } else { nil } }
    }
    return wanted.firstMissing(apartFrom: stored.sorted { $0.lowerBound < $1.lowerBound })
  }

  /// Removes a reader from a transfer. A transfer without readers ends.
  func leave(_ transfer: PartTransfer, _ reader: PartTransfer.Reader) {
    let isAbandoned = state.withLock { state in
      // A reader joins under this lock.
      guard transfer.leave(reader), let index = state.pieces.firstIndex(where: { $0.isArriving(transfer) }) else { return false }
      state.pieces.remove(at: index)
      return true
    }
    if isAbandoned { transfer.cancel() }
  }

  /// Replaces a transfer that has ended by the part that it has stored.
  ///
  /// - Parameter candidate: The stored part, or `nil` if it is not stored.
  /// - Returns: Whether the part must be removed, because the representation has become outdated.
  func ended(_ transfer: PartTransfer, storedAs candidate: Candidate?, _ length: Int64) -> Bool {
    state.withLock { state in
      state.pieces.removeAll { $0.isArriving(transfer) }
      guard let candidate else { return false }
      guard !state.isOutdated else { return true }
      // Its last reader may have left just before, and a lookup may have found it since.
      guard length > 0, !state.pieces.contains(where: { $0.isStored(candidate.metadata.revision) }) else { return false }
      state.pieces.append(Piece(bytes: transfer.start..<transfer.start + length, source: .stored(candidate)))
      return false
    }
  }

  /// Removes a stored part that could not be read.
  func remove(_ candidate: Candidate) {
    state.withLock { $0.pieces.removeAll { $0.isStored(candidate.metadata.revision) } }
  }

  /// Stops requests from joining, because the origin has another state, or the whole response is stored.
  ///
  /// - Returns: The stored parts, which are of no use any more.
  func becomeOutdated() -> [Candidate] {
    state.withLock { $0.isOutdated = true }
    return stored
  }

  // MARK: The origin

  /// Makes a reader's request for a part one for a part of this representation. If the resource has changed, the origin sends the
  /// whole response (RFC 9110 §13.1.5).
  func restrict(_ request: inout HTTPRequest) {
    request.headerFields[.ifRange] = condition
    if coding == nil { request.refusePlatformCodings() }
  }

  /// Returns the response with which the representation was opened, once, if it begins at a position.
  func takeOpened(at start: Int64) -> Exchange? {
    state.withLock { state in
      guard state.opened?.start == start else { return nil }
      return state.opened.take()?.response
    }
  }

  /// Returns whether a response is the part of this representation that was requested, or the beginning of it.
  ///
  /// - Parameter count: The announced length of the body. It is unknown if an engine has decoded the body.
  func accepts(_ response: HTTPResponse, _ count: Int64?, from start: Int64) -> Bool {
    let fields = response.headerFields
    guard response.isSinglePart, let range = ContentRange(fields) else { return false }
    return range.bytes.lowerBound == start && range.completeLength == length && count == range.length && isConfirmed(by: fields)
  }

  // MARK: Merging stored parts

  /// Returns stored parts that follow each other and should be one part, and `nil` if there are none or if others are being
  /// merged. ``endMerging(as:_:instead:)`` must follow.
  ///
  /// - Parameter limit: The most bytes that the merged part may have.
  func beginMerging(upTo limit: Int64) -> [(candidate: Candidate, bytes: Range<Int64>)]? {
    state.withLock { state in
      guard !state.isMerging, !state.isOutdated else { return nil }
      let all = state.pieces.compactMap { piece -> (candidate: Candidate, bytes: Range<Int64>)? in
        if case .stored(let candidate) = piece.source { (candidate, piece.bytes) } else { nil }
      }
      // A part inside another one, such as the byte that has confirmed stale parts, would interrupt the run.
      let stored = all.filter { part in
        !all.contains { $0.bytes != part.bytes && $0.bytes.clamped(to: part.bytes) == part.bytes }
      }.sorted { $0.bytes.lowerBound < $1.bytes.lowerBound }
      let limit = min(limit, state.mergingLimit)
      guard stored.count >= state.mergingMinimum, let run = Self.run(in: stored.map(\.bytes), upTo: limit) else { return nil }
      state.isMerging = true
      return Array(stored[run])
    }
  }

  private static let fewestMerged = 8

  /// Returns the parts to merge: at least eight that follow each other, of which none is much larger than those after it
  /// together.
  ///
  /// Each byte is thus copied a few times at most, however many parts a long body arrives in.
  static func run(in parts: [Range<Int64>], upTo limit: Int64 = .max) -> Range<Int>? {
    guard parts.count >= fewestMerged else { return nil }
    for last in stride(from: parts.count - 1, through: fewestMerged - 1, by: -1) {
      var (first, total) = (last, parts[last].upperBound - parts[last].lowerBound)
      while first > 0, parts[first - 1].upperBound == parts[first].lowerBound,
        case let size = parts[first - 1].upperBound - parts[first - 1].lowerBound, size < 4 * total, total + size <= limit
      {
        total += size
        first -= 1
      }
      if last - first + 1 >= fewestMerged { return first..<last + 1 }
    }
    return nil
  }

  /// - Parameters:
  ///   - result: The part into which others were merged, or `nil` if that failed. It is tried again with more parts, or with
  ///     fewer bytes if there were too many for the store.
  ///   - former: The parts that it replaces.
  func endMerging(as result: Result<Candidate?, CacheError>, _ bytes: Range<Int64>, instead former: [Candidate]) {
    state.withLock { state in
      state.isMerging = false
      guard let candidate = try? result.get() else {
        if case .failure(let error) = result, error.code == .entryTooLarge {
          let length = bytes.upperBound - bytes.lowerBound
          state.mergingLimit = length - length / 8 - 1
        } else {
          state.mergingMinimum = state.pieces.count + Self.fewestMerged
        }
        return
      }
      for former in former { state.pieces.removeAll { $0.isStored(former.metadata.revision) } }
      state.pieces.append(Piece(bytes: bytes, source: .stored(candidate)))
    }
  }
}
