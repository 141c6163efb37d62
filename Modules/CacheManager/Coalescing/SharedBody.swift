internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body that is being stored, for as many readers as come: each gets all of it from the first byte on, at its own pace.
///
/// Whoever needs bytes that have not come yet has them pulled for all: itself while it is alone, else by a task of the body's,
/// which waits while nobody wants any. What has come is held in memory where it fits there; of a larger body it lies in the
/// durable store's spool, so a slow reader neither stalls the others nor costs memory. When the last reader leaves, the transfer
/// ends.
final class SharedBody: Sendable {
  /// A pull under way: it ends with a word.
  struct Pull: Sendable {
    let end = OneShotBroadcast<Void>()
    /// Whether it outlives the reader who began it.
    let isShielded: Bool
  }

  /// What a reader does next.
  enum Step {
    case bytes(Data)
    /// What it has not read lies in the spool.
    case spooled
    case end
    case failed(CacheError)
    case wait(Pull)
    case pull(Pull)
  }

  private struct State {
    /// All chunks; nil: they lie in the spool.
    var kept: [Data]?
    var latest = Data()
    var chunks = 0
    var bytes: Int64 = 0
    var ending: Result<Void, CacheError>?
    var readers: Set<Int> = [0]
    var lastReader = 0
    /// Whether anybody has come after the first.
    var isFollowed = false
    var pull: Pull?
    var hasPump = false
    /// The pump, while nobody wants bytes.
    var idle: CheckedContinuation<Pull?, Never>?

    /// Whether all of it is there, as far as the announced length tells.
    func isWhole(_ length: Int64?) -> Bool {
      if case .success = ending { return true }
      return bytes == length
    }
  }

  /// The length that was announced.
  let length: Int64?
  private let base: RecordingBody
  private let writer: (any EntryWriter)?
  private let executor: (any TaskExecutor)?
  private let state: Lock<State>

  /// Nil: there is no place for what has come and not been read by all.
  ///
  /// - Parameters:
  ///   - base: the bytes, stored as they are read.
  ///   - writer: who stores them durably.
  ///   - executor: where the pump runs, whose pulls outlive who asked for them.
  init?(_ base: RecordingBody, writer: (any EntryWriter)?, on executor: (any TaskExecutor)?) {
    guard base.fitsInMemory || writer != nil else { return nil }
    self.base = base
    self.writer = writer
    self.executor = executor
    length = base.length
    state = Lock(State(kept: base.fitsInMemory ? [] : nil))
  }

  var trailers: HTTPFields? { base.trailers }

  /// For the first reader, who is counted already.
  var first: ResourceBody { ResourceBody(length: length, source: SharedBodyReader(self, 0)) }

  /// One reader more. Nil: those who read have left, or it has failed.
  ///
  /// - Parameters:
  ///   - limit: how long to wait for a pull that may end with the reader who began it.
  ///   - clock: time.
  func follow(within limit: Duration, by clock: any CacheClock) async -> ResourceBody? {
    let joined = state.withLock { state -> (id: Int, pull: Pull?)? in
      if case .failure = state.ending { return nil }
      guard !state.readers.isEmpty || state.isWhole(length) else { return nil }
      state.isFollowed = true
      state.lastReader += 1
      state.readers.insert(state.lastReader)
      return (state.lastReader, state.pull)
    }
    guard let joined else { return nil }
    let reader = SharedBodyReader(self, joined.id)
    if let pull = joined.pull, !pull.isShielded {
      guard await pull.end.value(for: joined.id, within: limit, by: clock) != nil else { return nil }
      if case .failure = state.withLock({ $0.ending }) { return nil }
    }
    return ResourceBody(length: length, source: reader)
  }

  func leave(_ reader: Int) {
    let (pull, isLast, idle) = state.withLock { state in
      let isLast = state.readers.remove(reader) != nil && state.readers.isEmpty
      defer { if isLast { state.idle = nil } }
      return (state.pull, isLast, isLast ? state.idle : nil)
    }
    pull?.end.release(reader)
    if isLast { base.cancel() }
    idle?.resume(returning: nil)
  }

  // MARK: Reading

  /// - Parameters:
  ///   - reader: who asks.
  ///   - chunks: how many it has taken.
  ///   - bytes: how many it has read.
  ///   - isSpooled: whether it reads from the spool.
  func step(of reader: Int, after chunks: Int, _ bytes: Int64, isSpooled: Bool) -> Step {
    state.withLock { state in
      guard state.readers.contains(reader) else { return .failed(.cancelled) }
      if let kept = state.kept {
        if chunks < kept.count { return .bytes(kept[chunks]) }
      } else if bytes < state.bytes {
        return !isSpooled && chunks == state.chunks - 1 ? .bytes(state.latest) : .spooled
      }
      // The first reader asks for what follows the last byte; when it has left, nobody can.
      if reader != 0, state.isWhole(length) { return .end }
      switch state.ending {
      case .success?: return .end
      case .failure(let error)?: return .failed(error)
      case nil: break
      }
      if let pull = state.pull { return .wait(pull) }
      let pull = Pull(isShielded: state.isFollowed)
      state.pull = pull
      return .pull(pull)
    }
  }

  /// Pulls the next chunk. One that others need as well is the pump's: a reader who leaves does not break it off.
  func run(_ pull: Pull) async {
    guard pull.isShielded else { return await perform(pull) }
    let (pump, next, isNew) = state.withLock { state -> (CheckedContinuation<Pull?, Never>?, Pull?, Bool) in
      // The pump may have found it by itself.
      guard let next = state.pull else { return (nil, nil, false) }
      defer { (state.idle, state.hasPump) = (nil, true) }
      return (state.idle, next, !state.hasPump)
    }
    pump?.resume(returning: next)
    if isNew { Task.detached(executorPreference: executor) { await self.pump() } }
  }

  /// Pulls whenever somebody wants bytes, until all have come or nobody reads any more.
  private func pump() async {
    while let pull = await demand() { await perform(pull) }
  }

  /// The next pull, as soon as somebody wants it. Nil: nobody will.
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
    state.withLock { state in
      state.pull = nil
      switch result {
      case .success(let chunk?):
        state.kept?.append(chunk)
        state.latest = chunk
        state.chunks += 1
        state.bytes += Int64(chunk.count)
      case .success(nil): state.ending = .success(())
      case .failure(let error): state.ending = .failure(error)
      }
    }
    pull.end.make(())
  }

  /// The bytes from the first one on, as they are stored.
  func spool() throws(CacheError) -> ResourceBody {
    guard let writer else { throw CacheError(.truncatedBody, reason: "what was stored of the body is gone") }
    return try writer.reader()
  }
}
