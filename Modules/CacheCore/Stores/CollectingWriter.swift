public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A writer that collects the body in memory, for a store that writes a whole body at once.
///
/// It implements the readers that follow the writer, the end of the entry, and the errors for misuse. The store provides a
/// closure:
///
/// ```swift
/// func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
///   CollectingWriter(metadata) { metadata, body throws(CacheError) in try await database.replace(key, metadata, body) }
/// }
/// ```
///
/// The body stays in memory until the writer and all its readers are released.
public final class CollectingWriter: EntryWriter {
  private let metadata: StoredMetadata
  private let sizeLimit: Int
  private let publish: @Sendable (StoredMetadata, Data) async throws(CacheError) -> Void
  private let collected = CollectedBody()

  /// Creates a writer for one entry.
  ///
  /// - Parameters:
  ///   - metadata: The metadata of the entry.
  ///   - sizeLimit: The largest body in bytes. The write that exceeds it throws `CacheError.Code.entryTooLarge`. A load then
  ///     continues without the store, but a prefetch and `ResourceManager.store(_:for:)` fail.
  ///   - publish: Makes the entry visible. It is called at most once, with the complete metadata and the whole body. If it
  ///     throws, the entry is aborted.
  public init(
    _ metadata: StoredMetadata, sizeLimit: Int = .max,
    publish: @escaping @Sendable (StoredMetadata, Data) async throws(CacheError) -> Void
  ) {
    self.metadata = metadata
    self.sizeLimit = sizeLimit
    self.publish = publish
  }

  deinit { abort() }

  /// The number of readers that wait for more bytes.
  var waitingReaders: Int { collected.waitingReaders }

  public func write(_ chunk: Data) async throws(CacheError) { try collected.append(chunk, upTo: sizeLimit) }

  public func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    try collected.append(chunk, upTo: sizeLimit)
    return true
  }

  public func reader() throws(CacheError) -> ResourceBody { collected.reader() }

  public func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    let body = try collected.close()
    var complete = metadata
    complete.trailers = trailers
    complete.bodyLength = Int64(body.count)
    do throws(CacheError) {
      try await publish(complete, body)
    } catch {
      collected.end(with: .failure(error))
      throw error
    }
    collected.end(with: .success(trailers))
    return complete
  }

  public func abort() {
    guard (try? collected.close()) != nil else { return }
    collected.end(with: .failure(CacheError(.truncatedBody, reason: "the writer was aborted")))
  }
}

/// The bytes of a writer and the readers that wait for more. Readers reference this object instead of the writer, so that
/// releasing the writer aborts the entry.
private final class CollectedBody: Sendable {
  private struct State {
    var bytes = Data()
    /// Whether the body accepts no more bytes.
    var isClosed = false
    /// The trailers of a committed entry, or the error that ended it.
    var result: Result<HTTPFields?, CacheError>?
    var lastReader = 0
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]

    mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
      defer { waiting = [:] }
      return Array(waiting.values)
    }
  }

  private enum Step {
    case bytes(Data)
    case end(Result<HTTPFields?, CacheError>)
    case waiting
  }

  private let state = Lock(State())

  var waitingReaders: Int { state.withLock { $0.waiting.count } }

  func append(_ chunk: Data, upTo limit: Int) throws(CacheError) {
    let waiting = try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.misuse, reason: "cannot write: the entry was committed or aborted") }
      guard chunk.count <= limit - state.bytes.count else {
        throw CacheError(.entryTooLarge, reason: "the entry exceeds the store's limit of \(limit) bytes")
      }
      state.bytes.append(chunk)
      return state.takeWaiting()
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Closes the body and returns its bytes.
  func close() throws(CacheError) -> Data {
    try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.misuse, reason: "cannot commit: the entry was committed or aborted") }
      state.isClosed = true
      return state.bytes
    }
  }

  func end(with result: Result<HTTPFields?, CacheError>) {
    let waiting = state.withLock { state in
      state.result = result
      return state.takeWaiting()
    }
    for continuation in waiting { continuation.resume() }
  }

  func reader() -> ResourceBody {
    let number = state.withLock { state in
      state.lastReader += 1
      return state.lastReader
    }
    return ResourceBody(length: nil, source: Reader(self, number))
  }

  private func step(after position: Int) -> Step {
    state.withLock { state in
      // A reader that has fallen behind does not copy all remaining bytes at once.
      let end = min(state.bytes.count, position + 65_536)
      if position < end { return .bytes(state.bytes.subdata(in: position..<end)) }
      return state.result.map { .end($0) } ?? .waiting
    }
  }

  /// Suspends until there are bytes after `position`, the entry has ended, or the reader or its task is cancelled.
  private func wait(_ reader: Reader, after position: Int) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          if position < state.bytes.count || state.result != nil || reader.isCancelled || Task.isCancelled { return true }
          state.waiting[reader.number] = continuation
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      wake(reader)
    }
  }

  private func wake(_ reader: Reader) { state.withLock { $0.waiting.removeValue(forKey: reader.number) }?.resume() }

  private final class Reader: ResourceBody.Source {
    private struct State {
      var position = 0
      var trailers: HTTPFields?
      var isCancelled = false
    }

    let number: Int
    private let body: CollectedBody
    private let state = Lock(State())

    init(_ body: CollectedBody, _ number: Int) { (self.body, self.number) = (body, number) }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    var trailers: HTTPFields? { state.withLock { $0.trailers } }

    func next() async throws(CacheError) -> Data? {
      while true {
        if isCancelled || Task.isCancelled { throw .cancelled }
        let position = state.withLock { $0.position }
        switch body.step(after: position) {
        case .bytes(let data):
          state.withLock { $0.position += data.count }
          return data
        case .end(let result):
          let trailers = try result.get()
          state.withLock { $0.trailers = trailers }
          return nil
        case .waiting: await body.wait(self, after: position)
        }
      }
    }

    func cancel() {
      state.withLock { $0.isCancelled = true }
      body.wake(self)
    }
  }
}
