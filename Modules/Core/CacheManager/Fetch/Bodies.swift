internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Glibc)
internal import Glibc
#endif

/// Collects one body at its destination, chunk by chunk.
///
/// The reader waits until the destination has accepted each chunk, so no chunks accumulate.
struct BodyCollector: Sendable {
  private let request: ResolvedRequest
  private let reservation: MemoryReservation?
  /// The announced length in bytes.
  private let length: Int64?
  /// The bytes, if the destination is memory.
  private var data: Data?
  /// The bytes of a stream, or `nil` if the memory store does not accept the stream, or the memory budget has no room for it.
  private(set) var stream: CollectedBytes?
  /// The number of bytes collected.
  private(set) var count: Int64 = 0

  /// - Parameters:
  ///   - request: The request whose destination receives the bytes.
  ///   - length: The announced length in bytes.
  ///   - reservation: The part of the memory budget that the bytes use, or `nil` if they are not counted.
  init(_ request: ResolvedRequest, length: Int64?, _ reservation: MemoryReservation? = nil) {
    self.request = request
    self.length = length
    self.reservation = reservation
    switch request.destination {
    case .memory: data = Data()
    case .stream where Self.mayFitInMemory(length, request): stream = CollectedBytes(length: length, request.budget)
    case .stream, .file, .store: break
    }
  }

  /// The bytes, if they are collected in memory.
  var bytes: Data? { stream?.data ?? data }

  /// Whether the memory store may accept a streamed body of this length. A body of unknown length (`nil`) may fit.
  static func mayFitInMemory(_ length: Int64?, _ request: ResolvedRequest) -> Bool {
    length ?? 0 <= request.maximumBodyInMemory && request.writes.contains(.memory)
  }

  /// Prepares the destination. A file may contain bytes of an earlier body: of a redirect, or of an interrupted one.
  func begin() async throws(CacheError) {
    if let length, length > limit { throw request.bodyTooLarge }
    if case .file(let file) = request.destination { file.restart() }
  }

  /// Collects the next bytes.
  mutating func take(_ chunk: Data) async throws(CacheError) {
    guard count + Int64(chunk.count) <= limit else { throw request.bodyTooLarge }
    if count == 0 { reservation?.begin(holding: Int64(chunk.count), of: request.destination.isMemory ? length : nil) }
    count += Int64(chunk.count)
    switch request.destination {
    case .memory:
      try await reservation?.grow(to: count, most: min(length ?? limit, limit))
      data?.collect(chunk, of: length)
    case .stream: if count > request.maximumBodyInMemory || stream?.append(chunk) == false { stream = nil }
    case .file(let file):
      try await growForStreaming(count)
      try await file.write(chunk)
    case .store: try await growForStreaming(count)
    }
  }

  /// Reserves memory for the buffers through which the bytes pass. They are full only after as many bytes have arrived.
  private func growForStreaming(_ count: Int64) async throws(CacheError) {
    let streamed = Int64(MemoryBudget.streamed)
    try await reservation?.grow(to: min(count, streamed), most: streamed)
  }

  /// Completes the body at its destination.
  func finish() async throws(CacheError) {
    if case .file(let file) = request.destination { try await file.flush() }
    reservation?.hold(Int64(data?.count ?? 0))
    stream?.finish()
  }

  private var limit: Int64 { request.destination.isStream ? .max : request.maximumBodySize }
}

/// The bytes of a stream that are collected for the memory store. Readers of a ``SharedBody`` that lag behind read them too, so
/// there is one copy. The memory budget counts it until the last owner releases it.
final class CollectedBytes: Sendable {
  private let length: Int64?
  private let reservation: MemoryReservation
  private let state = Lock(Data())

  /// Returns `nil` if the memory budget has no room for the announced length. Bytes of a body of unknown length (`nil`) are
  /// reserved as they arrive.
  init?(length: Int64?, _ budget: MemoryBudget) {
    guard let reservation = budget.streamReservation(holding: Int(clamping: length ?? 0)) else { return nil }
    (self.length, self.reservation) = (length, reservation)
  }

  /// All bytes so far.
  var data: Data { state.withLock { $0 } }

  var count: Int { state.withLock { $0.count } }

  /// Returns a copy of some of the bytes.
  ///
  /// - Parameters:
  ///   - offset: The offset of the first byte.
  ///   - end: The end of the bytes that the reader may read.
  /// - Returns: `nil` if the first byte was not collected.
  func bytes(from offset: Int64, upTo end: Int64) -> Data? {
    state.withLock { data in
      guard offset < data.count else { return nil }
      let start = data.startIndex + Int(offset)
      // A slice would share the storage, and the next append would then copy all bytes.
      return data.subdata(in: start..<data.startIndex + Int(min(offset + Int64(MemoryBudget.streamed), end, Int64(data.count))))
    }
  }

  /// - Returns: `false` if the memory budget has no room for the bytes, which are then not collected.
  func append(_ chunk: Data) -> Bool {
    guard reservation.growStream(to: count + chunk.count) else { return false }
    state.withLock { $0.collect(chunk, of: length) }
    return true
  }

  /// Returns the memory that the complete body does not need.
  func finish() { reservation.hold(Int64(count)) }
}

extension Data {
  /// The size in bytes from which a body has its own pages.
  private static let sizeOfOwnPages = 256 << 10

  /// Appends the next bytes of a body.
  mutating func collect(_ chunk: Data, of length: Int64?) {
    guard isEmpty else { return append(chunk) }
    self = chunk
    guard let length, length > chunk.count else { return }
    // The length is the server's claim, so it must not reserve a large buffer.
    let most: Int64 = 64 << 20
    if length <= most, Self.usesOwnPages(Int(length), chunk) {
      self = Self.inOwnPages(chunk, capacity: Int(length)) ?? chunk
    } else {
      reserveCapacity(Int(Swift.min(length, most)))
    }
  }

  /// Whether a body of this length is collected in pages that the system gets back when they are released.
  ///
  /// After the first release of a large block, glibc takes further blocks of up to 32 MiB from its heap. Between longer-lived
  /// blocks, the heap then keeps twice the memory that bodies use. Other allocators return such blocks at once. A few bytes at
  /// the start would be stored in the value itself, so such a body has no own pages.
  private static func usesOwnPages(_ length: Int, _ chunk: Data) -> Bool {
    #if canImport(Glibc)
    length >= sizeOfOwnPages && length > chunk.count && chunk.count >= 64
    #else
    false
    #endif
  }

  /// Returns a copy of the bytes with room for more in own pages, or `nil` if the system refuses them.
  private static func inOwnPages(_ chunk: Data, capacity: Int) -> Data? {
    #if canImport(Glibc)
    let start = mmap(nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let start, start != MAP_FAILED else { return nil }
    chunk.withUnsafeBytes { start.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(start), byteCount: $0.count) }
    var data = Data(bytesNoCopy: start, count: capacity, deallocator: .custom { start, _ in _ = munmap(start, capacity) })
    data.count = chunk.count
    return data
    #else
    return nil
    #endif
  }
}

/// A stored body in memory, or a part of it, as a stream. It is read in pieces, so each reader copies one piece at a time.
final class StoredBytes: ResourceBody.Source {
  /// The rest of the bytes, or `nil` if the body was cancelled.
  private let rest: Lock<Data?>
  /// The part of the memory budget that the bytes use, or `nil` if they belong to the memory store.
  private let reservation: MemoryReservation?

  init(_ data: Data, _ reservation: MemoryReservation? = nil) {
    rest = Lock(data)
    self.reservation = reservation
  }

  var trailers: HTTPFields? { nil }

  func cancel() {
    rest.withLock { $0 = nil }
    reservation?.release()
  }

  func next() async throws(CacheError) -> Data? {
    let piece = rest.withLock { rest -> Data? in
      guard let left = rest else { return nil }
      let piece = Data(left.prefix(MemoryBudget.streamed))
      rest = left.count > piece.count ? left.dropFirst(piece.count) : Data()
      return piece
    }
    guard let piece else { throw .cancelled }
    if piece.isEmpty { reservation?.release() }
    return piece.isEmpty ? nil : piece
  }
}

/// The destination of a response's bytes.
enum BodyDestination: Sendable {
  /// A caller that reads the bytes as a stream. A body that is small enough is also stored in memory.
  case stream
  /// Memory, for the waiters, and every layer that may be written.
  case memory
  /// A caller's file, and the durable store. The memory store receives no bytes.
  case file(PartialFile)
  /// The durable store alone.
  case store

  /// Whether the memory store may receive the bytes.
  var includesMemory: Bool {
    switch self {
    case .stream, .memory: true
    case .file, .store: false
    }
  }

  var isMemory: Bool { if case .memory = self { true } else { false } }

  var isStore: Bool { if case .store = self { true } else { false } }

  var isStream: Bool { if case .stream = self { true } else { false } }
}

/// A body that consists of several bodies, one after the other. Each is opened when its first byte is read.
final class ConcatenatedBody: ResourceBody.Source {
  /// Opens a body. Returns `nil` if it is not available, which ends the whole with an error.
  typealias Opening = @Sendable () async throws(CacheError) -> ResourceBody?

  private struct State {
    var rest: ArraySlice<Opening>
    var current: ResourceBody?
  }

  private let state: Lock<State>

  init(_ bodies: [Opening]) { state = Lock(State(rest: bodies[...])) }

  func next() async throws(CacheError) -> Data? {
    while true {
      if let current = state.withLock({ $0.current }) {
        if let chunk = try await current.source.next() { return chunk }
        state.withLock { $0.current = nil }
      }
      guard let open = state.withLock({ $0.rest.popFirst() }) else { return nil }
      guard let body = try await open() else {
        throw CacheError(.bodyInterrupted, reason: "a part of the body is no longer stored")
      }
      state.withLock { $0.current = body }
    }
  }

  func cancel() {
    let current = state.withLock { state in
      state.rest = []
      return state.current.take()
    }
    current?.source.cancel()
  }

  var trailers: HTTPFields? { nil }
}

/// A body whose first bytes were read in advance.
final class ContinuedBody: ResourceBody.Source {
  private let first: Lock<Data?>
  private let base: any ResourceBody.Source

  init(_ first: Data?, _ base: any ResourceBody.Source) {
    self.first = Lock(first)
    self.base = base
  }

  var trailers: HTTPFields? { base.trailers }

  func next() async throws(CacheError) -> Data? {
    if let first = first.withLock({ $0.take() }) { return first }
    return try await base.next()
  }

  func cancel() {
    first.withLock { $0 = nil }
    base.cancel()
  }
}

/// A response body that reports its end, exactly once: the end of its transfer, or of the response for an HTTP caller. It is used
/// only for loads with an observer.
final class ObservedBody: ResourceBody.Source {
  private struct State {
    var count: Int64 = 0
    /// Called with the error of the body, or with `nil` after its last byte. `nil` after the call.
    var end: (@Sendable (CacheError?) -> Void)?
  }

  private let base: ResourceBody
  private let state: Lock<State>

  init(_ base: ResourceBody, end: @escaping @Sendable (CacheError?) -> Void) {
    self.base = base
    state = Lock(State(end: end))
  }

  /// Counts a released body as complete if all announced bytes were read.
  deinit { finish() }

  var trailers: HTTPFields? { base.source.trailers }

  func next() async throws(CacheError) -> Data? {
    do throws(CacheError) {
      let chunk = try await base.source.next()
      guard let chunk else {
        finish(nil)
        return nil
      }
      let count = state.withLock { state in
        state.count += Int64(chunk.count)
        return state.count
      }
      // The reader of a stream stores the body before it reads the end.
      if count == base.length { finish(nil) }
      return chunk
    } catch {
      // A second task read at the same time. The first one continues.
      if error.code != .misuse { finish(error) }
      throw error
    }
  }

  func cancel() {
    base.source.cancel()
    finish()
  }

  private func finish() { finish(state.withLock { $0.count } == base.length ? nil : .cancelled) }

  private func finish(_ error: CacheError?) {
    let end = state.withLock { state in
      defer { state.end = nil }
      return state.end
    }
    end?(error)
  }
}
