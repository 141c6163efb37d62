#if ContentDecoding
internal import CacheCore
internal import HTTPTypes
private import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body with one content coding removed. No step produces more than ``DecodingLimits/step`` bytes. The next encoded chunk is
/// requested when the last one is decoded completely.
final class DecodingBody: ResourceBody.Source {
  private struct State {
    /// Released at the end of the data, which may be long before the body is released.
    var decoder: (any ContentDecoder)?
    var input = Data()
    var hasInput = false
    var isBusy = false
    var outcome: Result<Void, CacheError>?

    mutating func end(_ outcome: Result<Void, CacheError>) {
      guard self.outcome == nil else { return }
      self.outcome = outcome
      decoder = nil
      input = Data()
    }
  }

  private let source: any ResourceBody.Source
  private let coding: ContentCoding
  private let limits: DecodingLimits
  private let wire: ByteCount
  private let isOnWire: Bool
  private let state: Lock<State>

  /// - Parameters:
  ///   - source: The encoded bytes.
  ///   - coding: The coding to remove.
  ///   - limits: The limits of decoding.
  ///   - wire: The counter of received bytes.
  ///   - isOnWire: Whether `source` delivers the received bytes.
  init(_ source: any ResourceBody.Source, _ coding: ContentCoding, _ limits: DecodingLimits, _ wire: ByteCount, isOnWire: Bool) {
    self.source = source
    self.coding = coding
    self.limits = limits
    self.wire = wire
    self.isOnWire = isOnWire
    state = Lock(State(decoder: coding.makeDecoder()))
  }

  /// The number of decoded bytes.
  let decoded = ByteCount()

  var trailers: HTTPFields? { source.trailers }

  func cancel() {
    state.withLock { $0.end(.failure(.cancelled)) }
    source.cancel()
  }

  // Runs off the reader's actor, which may be the main actor, because decoding costs time.
  @concurrent
  func next() async throws(CacheError) -> Data? {
    guard try begin() else { return nil }
    defer { state.withLock { $0.isBusy = false } }
    do throws(CacheError) {
      return try await decodeNext()
    } catch {
      let isFirst = state.withLock { state in
        defer { state.end(.failure(error)) }
        return state.outcome == nil
      }
      if isFirst { source.cancel() }
      throw error
    }
  }

  /// - Returns: Whether more bytes may follow.
  private func begin() throws(CacheError) -> Bool {
    try state.withLock { state throws(CacheError) in
      guard !state.isBusy else { throw CacheError(.misuse, reason: "two tasks read a body at the same time") }
      switch state.outcome {
      case .success: return false
      case .failure(let error): throw error
      case nil:
        state.isBusy = true
        return true
      }
    }
  }

  private func decodeNext() async throws(CacheError) -> Data? {
    while true {
      if Task.isCancelled { throw .cancelled }
      if let decoded = try step() { return decoded }
      guard let encoded = try await source.next() else { return try finish() }
      if isOnWire { wire.add(encoded.count) }
      state.withLock { state in
        guard state.outcome == nil else { return }
        state.hasInput = true
        // The remaining input is at most the one byte that does not identify a format yet.
        state.input = state.input.isEmpty ? encoded : state.input + encoded
      }
    }
  }

  /// - Returns: The decoded bytes, or `nil` if more input is needed.
  private func step() throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      if case .failure(let error) = state.outcome { throw error }
      guard let decoder = state.decoder else { return nil }
      let output = try decoder.decode(&state.input)
      guard !output.isEmpty else { return nil }
      decoded.add(output.count)
      try check(decoded.value)
      return output
    }
  }

  private func check(_ decoded: Int64) throws(CacheError) {
    guard decoded <= limits.limit else { throw .tooLarge("has at least \(decoded) bytes after decoding", limit: limits.limit) }
    guard let ratio = limits.ratio, decoded > DecodingLimits.ratioThreshold else { return }
    let onWire = wire.value
    guard Double(decoded) > Double(ratio) * Double(onWire) else { return }
    throw CacheError(
      .bodyTooLarge,
      reason: "the body's first \(onWire) bytes decode to \(decoded) bytes, more than \(ratio) times as many")
  }

  /// Ends the body after the last encoded byte.
  private func finish() throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      if case .failure(let error) = state.outcome { throw error }
      // An empty input is an empty body regardless of its coding, because servers send it.
      guard state.decoder?.isComplete == true || !state.hasInput else {
        throw CacheError(
          .truncatedBody, reason: "the body ended in the middle of its \(coding) coding, after \(decoded.value) decoded bytes")
      }
      state.end(.success(()))
      return nil
    }
  }
}

/// A byte counter that outlives its body, because the metrics use it.
final class ByteCount: Sendable {
  private let bytes = Atomic<Int64>(0)

  var value: Int64 { bytes.load(ordering: .relaxed) }

  func add(_ count: Int) { bytes.wrappingAdd(Int64(count), ordering: .relaxed) }
}
#endif
