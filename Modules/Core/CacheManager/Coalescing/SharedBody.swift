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
/// A slow reader neither stalls the other readers nor costs more memory than ``HeldBytes/limit`` for the whole body. It reads
/// what it lags behind from the one copy that is collected for the memory store, from memory, or else from a temporary file. When
/// the last reader leaves, the transfer ends.
///
/// A single reader that has read more than the limit needs no earlier bytes, so the body drops them and no other reader can join.
/// If another request then wants the same response, it is sent itself, and its body keeps all bytes for further requests.
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
    /// The next bytes, this many, are in the file.
    case filed(TemporaryFile, count: Int)
    case end
    case failed(CacheError)
    case wait(Pull)
    case pull(Pull)
  }

  private struct State {
    var held: HeldBytes
    /// The leader that lets requests join. Weak, because its request owns this body.
    weak var leader: CoalescingLeader?
    /// The request that others follow. Weak, because its outcome refers to this body.
    weak var request: PendingRequest?
    var ending: Result<Void, CacheError>?
    var readers: Set<Int> = [0]
    var lastReader = 0
    /// Whether a reader has ever joined the first one.
    var isFollowed = false
    var pull: Pull?
    var hasPump = false
    /// The suspended pump, while no reader wants bytes.
    var idle: Resumption<Pull?>?

    /// Whether a reader, which has read all bytes, is the only one.
    func isAlone(_ reader: Int) -> Bool { readers.count == 1 && readers.contains(reader) }

    /// Whether all bytes have arrived, judged by the announced length.
    func isWhole(_ length: Int64?) -> Bool {
      if case .success = ending { return true }
      return held.count == length
    }

    /// Returns the running pull, or begins one.
    mutating func joinPull(_ reader: Int) -> Step {
      if let pull { return .wait(pull) }
      let pull = Pull(isShielded: isFollowed, reader: reader)
      self.pull = pull
      return .pull(pull)
    }
  }

  /// The announced length in bytes.
  let length: Int64?
  private let base: RecordingBody
  private let space: TemporarySpace
  private let executor: (any TaskExecutor)?
  private let state: Lock<State>

  /// Creates a shared body.
  ///
  /// - Parameters:
  ///   - base: The bytes, which are stored as they are read.
  ///   - leader: The leader that lets other requests join.
  ///   - space: The space for the bytes of readers that lag behind.
  ///   - executor: The executor of the pump, whose pulls outlive the readers that began them.
  init(_ base: RecordingBody, _ leader: CoalescingLeader, _ space: TemporarySpace, on executor: (any TaskExecutor)?) {
    self.base = base
    self.space = space
    self.executor = executor
    length = base.length
    state = Lock(State(held: HeldBytes(base.collected), leader: leader, request: leader.request))
  }

  var trailers: HTTPFields? { base.trailers }

  /// The body for the first reader, which is already counted.
  var first: ResourceBody { ResourceBody(length: length, source: SharedBodyReader(self, 0)) }

  /// Adds a reader. Returns `nil` if all readers have left an incomplete body, if the body has failed, if its first bytes are no
  /// longer held, or if the reader would have to wait longer than `limit`.
  ///
  /// - Parameters:
  ///   - limit: The time to wait for a pull that may end with the reader that began it.
  ///   - clock: The clock that measures `limit`.
  func follow(within limit: Duration, by clock: any CacheClock) async -> ResourceBody? {
    let joined = state.withLock { state -> (id: Int, pull: Pull?)? in
      if case .failure = state.ending { return nil }
      guard !state.readers.isEmpty || state.isWhole(length), state.held.loss == nil else { return nil }
      state.isFollowed = true
      state.lastReader += 1
      state.readers.insert(state.lastReader)
      return (state.lastReader, state.pull)
    }
    guard let joined else { return nil }
    let reader = SharedBodyReader(self, joined.id)
    if let pull = joined.pull, !pull.isShielded {
      guard await pull.end.value(within: limit, by: clock) != nil else { return nil }
      if case .failure = state.withLock({ $0.ending }) { return nil }
    }
    return ResourceBody(length: length, source: reader)
  }

  func leave(_ reader: Int) {
    // The references are released outside the lock.
    let (pull, isLast, idle, _, _, _) = state.withLock { state in
      let isLast = state.readers.remove(reader) != nil && state.readers.isEmpty
      // After the last reader has left, a reader can join only a whole body, until it is stored. Requests that know of the body
      // can join it even then.
      let (leader, request) = (state.leader, state.request)
      let isAwaited = leader != nil || request?.expectsFollowers == true
      let isJoinable = state.isWhole(length) && isAwaited
      let dropped = isLast && !isJoinable ? state.held.drop() : nil
      return (state.pull, isLast, isLast ? state.idle.take() : nil, dropped, leader, request)
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
  func step(of reader: Int, after bytes: Int64) -> Step {
    let (step, place, end) = state.withLock { state -> (Step?, HeldBytes.Place?, Int64) in
      guard state.readers.contains(reader) else { return (.failed(.cancelled), nil, 0) }
      if bytes < state.held.count { return (nil, state.held.place(of: bytes), state.held.count) }
      // Only the first reader waits for the end after the last byte. Once it has left, the body may be cancelled, and a pull
      // would fail.
      if reader != 0, state.isWhole(length) { return (.end, nil, 0) }
      switch state.ending {
      case .success?: return (.end, nil, 0)
      case .failure(let error)?: return (.failed(error), nil, 0)
      case nil: return (state.joinPull(reader), nil, 0)
      }
    }
    if let step { return step }
    // The bytes are copied outside the lock.
    switch place {
    case .chunk(let chunk): return .bytes(chunk)
    case .piece(let piece): return .bytes(Data(piece))
    case .collected(let collected): return collected.bytes(from: bytes, upTo: end).map { .bytes($0) } ?? .failed(.cancelled)
    case .file(let file, let count): return .filed(file, count: count)
    case .lost(let error): return .failed(error)
    case nil: return .end
    }
  }

  /// Pulls the next chunk. The pump runs a shielded pull, so a reader that leaves does not interrupt a pull that other readers
  /// need.
  func run(_ pull: Pull) async {
    guard pull.isShielded else { return await perform(pull) }
    let (pump, next, isNew) = state.withLock { state -> (Resumption<Pull?>?, Pull?, Bool) in
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
    await withResumption { continuation in
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
    let (isOverfull, _) = state.withLock { state -> (Bool, CollectedBytes?) in
      switch result {
      case .success(let chunk?):
        let outgrown = state.held.append(chunk)
        return (state.held.isOverfull, outgrown)
      case .success(nil): state.ending = .success(())
      case .failure(let error): state.ending = .failure(error)
      }
      return (false, nil)
    }
    // The pump makes room after the pull, so that the readers of this chunk do not wait for the disk. Another pull could
    // overtake that of a single reader, which thus ends only after it.
    if isOverfull, !pull.isShielded { await makeRoom(for: pull.reader) }
    state.withLock { $0.pull = nil }
    pull.end.make(())
    if isOverfull, pull.isShielded { await makeRoom(for: pull.reader) }
  }

  /// Drops the held bytes if no reader can need them, or else moves them into the temporary file.
  private func makeRoom(for puller: Int) async {
    let (isAlone, leader, request) = state.withLock { ($0.isAlone(puller), $0.leader, $0.request) }
    if isAlone, leader?.closeIfUnawaited() ?? (request?.expectsFollowers != true), drop(for: puller) { return }
    let (known, chunks, offset) = state.withLock { $0.held.unwritten }
    do throws(CacheError) {
      let file: TemporaryFile
      if let known { file = known } else { file = try await TemporaryFile.create(in: space) }
      try await file.write(chunks, at: offset)
      state.withLock { $0.held.wrote(chunks, to: file) }
    } catch {
      leader?.close()
      if !drop(for: puller) { state.withLock { $0.held.fail(error) } }
    }
  }

  /// Drops the held bytes, unless another reader has joined.
  private func drop(for reader: Int) -> Bool {
    let dropped = state.withLock { $0.isAlone(reader) ? $0.held.drop() : nil }
    return dropped != nil
  }
}

/// One reader of a ``SharedBody``.
final class SharedBodyReader: ResourceBody.Source {
  private let shared: SharedBody
  private let id: Int
  /// The number of bytes that the reader has read.
  private let bytes = Lock<Int64>(0)

  init(_ shared: SharedBody, _ id: Int) {
    self.shared = shared
    self.id = id
  }

  deinit { shared.leave(id) }

  func cancel() { shared.leave(id) }

  var trailers: HTTPFields? { shared.trailers }

  func next() async throws(CacheError) -> Data? {
    while true {
      let bytes = bytes.withLock { $0 }
      switch shared.step(of: id, after: bytes) {
      case .bytes(let chunk): return advance(by: chunk)
      case .filed(let file, let count): return advance(by: try await file.read(count, at: bytes))
      case .end: return nil
      case .failed(let error): throw error
      case .wait(let pull): try await wait(for: pull)
      case .pull(let pull):
        await shared.run(pull)
        try await wait(for: pull)
      }
    }
  }

  private func advance(by chunk: Data) -> Data {
    bytes.withLock { $0 += Int64(chunk.count) }
    return chunk
  }

  private func wait(for pull: SharedBody.Pull) async throws(CacheError) {
    if await pull.end.value(for: id) == nil { throw .cancelled }
  }
}

/// A value that is sent once to any number of waiters.
final class OneShotBroadcast<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: [Int: Resumption<Value?>] = [:]
    /// The waiters that were released, including those that have not begun to wait yet.
    var released: Set<Int> = []
    /// The identifier of the latest waiter that has no number of its own. These identifiers are negative.
    var lastUnnumbered = 0
  }

  private let state = Lock(State())

  /// The value, or `nil` if it has not been sent.
  var value: Value? { state.withLock { $0.value } }

  /// Sends the value to all waiters. Only the first value counts.
  func make(_ value: Value) {
    let waiting = state.withLock { state in
      guard state.value == nil else { return [Resumption<Value?>]() }
      state.value = value
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for waiter in waiting { waiter.resume(returning: value) }
  }

  /// Waits for the value. Returns `nil` if the waiter is released or its task is cancelled.
  ///
  /// - Parameter id: The number of the waiter. Each waiter waits once.
  func value(for id: Int) async -> Value? {
    await withTaskCancellationHandler {
      await withResumption { continuation in
        let (isReady, value): (Bool, Value?) = state.withLock { state in
          if let value = state.value { return (true, value) }
          if state.released.contains(id) { return (true, nil) }
          state.waiting[id] = continuation
          return (false, nil)
        }
        if isReady { continuation.resume(returning: value) }
      }
    } onCancel: {
      release(id)
    }
  }

  private func unnumbered() -> Int {
    state.withLock { state in
      state.lastUnnumbered -= 1
      return state.lastUnnumbered
    }
  }

  /// Waits for the value. Returns `nil` if the waiting task is cancelled.
  func value() async -> Value? { await value(for: unnumbered()) }

  /// Waits for the value, at most for `limit`. Returns `nil` if the time is over or the waiting task is cancelled.
  func value(within limit: Duration, by clock: any CacheClock) async -> Value? {
    let id = unnumbered()
    let timer = Task { [weak self] in
      guard (try? await clock.sleep(for: limit)) != nil else { return }
      self?.release(id)
    }
    defer { timer.cancel() }
    return await value(for: id)
  }

  /// Releases a waiter without the value.
  func release(_ id: Int) {
    let waiter = state.withLock { state in
      state.released.insert(id)
      return state.waiting.removeValue(forKey: id)
    }
    waiter?.resume(returning: nil)
  }
}
