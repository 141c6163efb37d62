internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body that is stored while any number of readers read it. Each reader gets all bytes from the first one on, at its own pace.
///
/// Any reader that runs out of data pulls the next chunk for all readers. The first reader pulls chunks itself until a second
/// reader joins. From then on a task of the body pulls the chunks. It suspends while no reader wants bytes.
///
/// A slow reader neither stalls the other readers nor costs memory that is not counted. It reads what it lags behind from the one
/// copy that is collected for the memory store, or else from the durable store's spool. When the last reader leaves, the transfer
/// ends.
///
/// A body of unknown length without a spool may outgrow memory. Readers therefore join it only once all of it has arrived. Then
/// no reader can fall behind more than memory holds.
final class SharedBody: Sendable {
  /// A running pull. ``end`` is sent when the pull has obtained a chunk, the end or an error.
  struct Pull: Sendable {
    let end = OneShotBroadcast<Void>()
    /// Whether the pull outlives the reader that began it.
    let isShielded: Bool
    /// The reader that began the pull, which has read all earlier bytes or needs none of them.
    let reader: Int
  }

  /// The next step of a reader.
  enum Step {
    case bytes(Data)
    /// The bytes that the reader has not read are in the spool.
    case spooled
    case end
    case failed(CacheError)
    case wait(Pull)
    case pull(Pull)
  }

  private struct State {
    /// The first bytes, or `nil` if readers that lag behind read from the spool, or if no reader lags behind.
    var collected: CollectedBytes?
    /// The last chunk, which most readers need next.
    var latest = Data()
    var bytes: Int64 = 0
    var ending: Result<Void, CacheError>?
    var readers: Set<Int> = [0]
    var lastReader = 0
    /// Whether a reader has ever joined the first one.
    var isFollowed = false
    var pull: Pull?
    var hasPump = false
    /// The suspended pump, while no reader wants bytes.
    var idle: CheckedContinuation<Pull?, Never>?

    /// Whether bytes have arrived that are not collected.
    var isOutgrown: Bool { collected.map { $0.count < bytes } ?? true }

    /// Stops collecting a body that is not collected as a whole. The result is released outside the lock, because it may have
    /// megabytes and returns them to the memory budget.
    mutating func takeIfOutgrown() -> CollectedBytes? { isOutgrown ? collected.take() : nil }

    /// Whether all bytes have arrived, judged by the announced length.
    func isWhole(_ length: Int64?) -> Bool {
      if case .success = ending { return true }
      return bytes == length
    }

    /// Returns the running pull, or begins one.
    mutating func joinPull(_ reader: Int) -> Step {
      if let pull { return .wait(pull) }
      let pull = Pull(isShielded: isFollowed, reader: reader)
      self.pull = pull
      return .pull(pull)
    }
  }

  /// The longest time that a request waits for all bytes of a body of unknown length.
  private static let longestWait = Duration.milliseconds(500)

  /// The announced length in bytes.
  let length: Int64?
  /// Whether a reader joins only once all bytes have arrived.
  let isSharedWhole: Bool
  private let base: RecordingBody
  private let writer: (any EntryWriter)?
  private let executor: (any TaskExecutor)?
  private let state: Lock<State>

  /// Creates a shared body. Returns `nil` if neither memory nor a writer can hold the bytes until all readers have read them.
  ///
  /// - Parameters:
  ///   - base: The bytes, which are stored as they are read.
  ///   - writer: The writer that stores the bytes durably.
  ///   - executor: The executor of the pump, whose pulls outlive the readers that began them.
  init?(_ base: RecordingBody, writer: (any EntryWriter)?, on executor: (any TaskExecutor)?) {
    let collected = base.fitsInMemory || writer == nil ? base.collected : nil
    guard collected != nil || writer != nil else { return nil }
    self.base = base
    self.writer = writer
    self.executor = executor
    length = base.length
    isSharedWhole = base.length == nil && writer == nil
    state = Lock(State(collected: collected))
  }

  var trailers: HTTPFields? { base.trailers }

  /// The body for the first reader, which is already counted.
  var first: ResourceBody { ResourceBody(length: length, source: SharedBodyReader(self, 0)) }

  /// Adds a reader. Returns `nil` if all readers have left an incomplete body, if the body has failed or outgrown memory, or if
  /// the reader would have to wait longer than `limit`.
  ///
  /// - Parameters:
  ///   - limit: The time to wait for a pull that may end with the reader that began it, or for the whole body.
  ///   - clock: The clock that measures `limit`.
  func follow(within limit: Duration, by clock: any CacheClock) async -> ResourceBody? {
    let joined = state.withLock { state -> (id: Int, pull: Pull?)? in
      if case .failure = state.ending { return nil }
      guard !state.readers.isEmpty || state.isWhole(length), !isSharedWhole || !state.isOutgrown else { return nil }
      state.isFollowed = true
      state.lastReader += 1
      state.readers.insert(state.lastReader)
      return (state.lastReader, state.pull)
    }
    guard let joined else { return nil }
    let reader = SharedBodyReader(self, joined.id)
    if isSharedWhole {
      guard await isCollected(for: joined.id, within: min(limit, Self.longestWait), by: clock) else { return nil }
    } else if let pull = joined.pull, !pull.isShielded {
      guard await pull.end.value(for: joined.id, within: limit, by: clock) != nil else { return nil }
      if case .failure = state.withLock({ $0.ending }) { return nil }
    }
    return ResourceBody(length: length, source: reader)
  }

  /// Pulls until all bytes are in memory, whatever the pace of the other readers.
  ///
  /// - Returns: `false` if that does not happen within `limit`.
  private func isCollected(for reader: Int, within limit: Duration, by clock: any CacheClock) async -> Bool {
    // One timer for all pulls. A reader that has left ends its wait for a pull.
    let timer = Task { [weak self] in
      guard (try? await clock.sleep(for: limit)) != nil else { return }
      self?.leave(reader)
    }
    defer { timer.cancel() }
    while true {
      let step: Step = state.withLock { state in
        guard state.readers.contains(reader), !state.isOutgrown else { return .failed(.cancelled) }
        switch state.ending {
        case .success?: return .end
        case .failure(let error)?: return .failed(error)
        case nil: return state.joinPull(reader)
        }
      }
      switch step {
      case .end: return true
      case .bytes, .spooled, .failed: return false
      case .pull(let pull):
        await run(pull)
        guard await pull.end.value(for: reader) != nil else { return false }
      case .wait(let pull):
        guard await pull.end.value(for: reader) != nil else { return false }
      }
    }
  }

  func leave(_ reader: Int) {
    let (pull, isLast, idle, _) = state.withLock { state in
      let isLast = state.readers.remove(reader) != nil && state.readers.isEmpty
      // Only readers of a whole body can join after the last one has left.
      let collected = isLast && !state.isWhole(length) ? state.collected.take() : nil
      return (state.pull, isLast, isLast ? state.idle.take() : nil, collected)
    }
    pull?.end.release(reader)
    if isLast { base.cancel() }
    idle?.resume(returning: nil)
  }

  // MARK: Reading

  /// Returns the next step of a reader.
  ///
  /// - Parameters:
  ///   - reader: The reader.
  ///   - bytes: The number of bytes that the reader has read.
  ///   - isSpooled: Whether the reader reads from the spool.
  func step(of reader: Int, after bytes: Int64, isSpooled: Bool) -> Step {
    let (step, end, collected) = state.withLock { state -> (Step?, Int64, CollectedBytes?) in
      guard state.readers.contains(reader) else { return (.failed(.cancelled), 0, nil) }
      if bytes < state.bytes {
        if !isSpooled, bytes == state.bytes - Int64(state.latest.count) { return (.bytes(state.latest), 0, nil) }
        return (nil, state.bytes, state.collected)
      }
      // Such a body has one reader, which has all bytes that were collected.
      let outgrown = state.takeIfOutgrown()
      // Only the first reader waits for the end after the last byte. Once it has left, the body may be cancelled, and a pull
      // would fail.
      if reader != 0, state.isWhole(length) { return (.end, 0, outgrown) }
      switch state.ending {
      case .success?: return (.end, 0, outgrown)
      case .failure(let error)?: return (.failed(error), 0, outgrown)
      case nil: return (state.joinPull(reader), 0, outgrown)
      }
    }
    // The bytes are copied outside the lock.
    return step ?? collected?.bytes(from: bytes, upTo: end).map { .bytes($0) } ?? .spooled
  }

  /// Pulls the next chunk. The pump runs a shielded pull, so a reader that leaves does not interrupt a pull that other readers
  /// need.
  func run(_ pull: Pull) async {
    guard pull.isShielded else { return await perform(pull) }
    let (pump, next, isNew) = state.withLock { state -> (CheckedContinuation<Pull?, Never>?, Pull?, Bool) in
      // The pump may already have performed the pull.
      guard let next = state.pull else { return (nil, nil, false) }
      defer { (state.idle, state.hasPump) = (nil, true) }
      return (state.idle, next, !state.hasPump)
    }
    pump?.resume(returning: next)
    if isNew { Task.detached(executorPreference: executor) { await self.pump() } }
  }

  /// Pulls whenever a reader wants bytes, until all bytes have arrived or no reader is left.
  private func pump() async {
    while let pull = await demand() { await perform(pull) }
  }

  /// Waits until a reader wants a pull, and returns the pull. Returns `nil` if no reader will want one.
  private func demand() async -> Pull? {
    await withCheckedContinuation { continuation in
      let (isKnown, pull) = state.withLock { state -> (Bool, Pull?) in
        if state.pull != nil || state.ending != nil || state.readers.isEmpty { return (true, state.pull) }
        state.idle = continuation
        return (false, nil)
      }
      if isKnown { continuation.resume(returning: pull) }
    }
  }

  private func perform(_ pull: Pull) async {
    let result: Result<Data?, CacheError>
    do throws(CacheError) {
      result = .success(try await base.next())
    } catch {
      result = .failure(error)
    }
    _ = state.withLock { state -> CollectedBytes? in
      state.pull = nil
      switch result {
      case .success(let chunk?):
        state.latest = chunk
        state.bytes += Int64(chunk.count)
        if state.readers.count == 1, state.readers.contains(pull.reader) { return state.takeIfOutgrown() }
      case .success(nil): state.ending = .success(())
      case .failure(let error): state.ending = .failure(error)
      }
      return nil
    }
    pull.end.make(())
  }

  /// Returns all bytes from the first one on, as they are stored.
  func spool() throws(CacheError) -> ResourceBody {
    guard let writer else { throw CacheError(.truncatedBody, reason: "the stored part of the body is no longer available") }
    return try writer.reader()
  }
}

/// One reader of a ``SharedBody``.
final class SharedBodyReader: ResourceBody.Source {
  private struct State {
    var bytes: Int64 = 0
    var spool: ResourceBody?
  }

  private let shared: SharedBody
  private let id: Int
  private let state = Lock(State())

  init(_ shared: SharedBody, _ id: Int) {
    self.shared = shared
    self.id = id
  }

  deinit { shared.leave(id) }

  func cancel() {
    shared.leave(id)
    state.withLock { $0.spool }?.source.cancel()
  }

  var trailers: HTTPFields? { shared.trailers }

  func next() async throws(CacheError) -> Data? {
    while true {
      let (bytes, spool) = state.withLock { ($0.bytes, $0.spool) }
      switch shared.step(of: id, after: bytes, isSpooled: spool != nil) {
      case .bytes(let chunk):
        state.withLock { $0.bytes += Int64(chunk.count) }
        return chunk
      case .spooled: return try await read(from: spool, after: bytes)
      case .end: return nil
      case .failed(let error): throw error
      case .wait(let pull): try await wait(for: pull)
      case .pull(let pull):
        await shared.run(pull)
        try await wait(for: pull)
      }
    }
  }

  private func wait(for pull: SharedBody.Pull) async throws(CacheError) {
    if await pull.end.value(for: id) == nil { throw .cancelled }
  }

  private func read(from known: ResourceBody?, after bytes: Int64) async throws(CacheError) -> Data {
    var chunk: Data?
    if let known {
      chunk = try await known.source.next()
    } else {
      let spool = try shared.spool()
      state.withLock { $0.spool = spool }
      chunk = try await skip(bytes, of: spool)
    }
    guard let chunk else { throw CacheError(.truncatedBody, reason: "the stored part of the body ended before the body") }
    state.withLock { $0.bytes += Int64(chunk.count) }
    return chunk
  }

  /// Returns the spooled bytes after those that the reader read before it changed to the spool.
  private func skip(_ bytes: Int64, of spool: ResourceBody) async throws(CacheError) -> Data? {
    var left = bytes
    while let chunk = try await spool.source.next() {
      if Int64(chunk.count) > left { return left == 0 ? chunk : Data(chunk.dropFirst(Int(left))) }
      left -= Int64(chunk.count)
    }
    return nil
  }
}
