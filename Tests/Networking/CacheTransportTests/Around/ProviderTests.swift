import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Closures as downloaders")
struct ProviderTests {
  struct Broken: Error {}

  private func manager(_ change: (inout ResourceManager.Configuration) -> Void) -> ResourceManager {
    var configuration = ResourceManager.Configuration()
    configuration.memory = MemoryCache()
    configuration.validator = ETagValidator()
    configuration.clock = ManualClock()
    change(&configuration)
    return ResourceManager(configuration)
  }

  @Test("a closure downloader responds with the bytes of its closure")
  func data() async throws {
    let provider = ClosureDownloader(contentType: "text/plain") { _ in Data("bytes".utf8) }
    let response = try await provider.download(TestRequest.request("any:thing"))
    #expect(response.head.status == .ok)
    #expect(response.head.headerFields[.contentType] == "text/plain")
    #expect(response.head.headerFields[.contentLength] == "5")
    #expect(response.head.headerFields[.cacheControl] == "no-store")
    #expect(response.body.data == Data("bytes".utf8))
    #expect(response.metrics().bytesDecoded == 5)
    let head = try await provider.download(TestRequest.request("any:thing", method: .head))
    #expect(try await head.body.collect().isEmpty)
    #expect(head.head.headerFields[.contentLength] == "5")
    #expect(try await provider.download(TestRequest.request("any:thing", method: .post)).head.status == .methodNotAllowed)
  }

  @Test("a manager uses a closure downloader by scheme or for one load, and caches its responses if allowed")
  func throughManager() async throws {
    let calls = Lock(0)
    let provider = { (lifetime: Duration?) in
      ClosureDownloader(freshFor: lifetime) { _ in
        calls.withLock { $0 += 1 }
        return Data("made".utf8)
      }
    }
    let manager = manager { configuration in
      configuration.schemeHandlers["photo"] = provider(nil)
      configuration.schemeHandlers["kept"] = provider(.seconds(60))
    }
    for (text, expected) in [("photo:1", 2), ("kept:1", 3)] {
      for _ in 0..<2 { #expect(try await manager.load(TestRequest.url(text)).data == Data("made".utf8)) }
      #expect(calls.withLock { $0 } == expected, "\(text)")
    }
    #expect(try await manager.load(TestRequest.url("kept:1")).source == .memory)

    let options = RequestOptions { $0.downloader = .use(ClosureDownloader { _ in Data("one".utf8) }) }
    #expect(try await manager.load(TestRequest.url("https://e.com/a"), options: options).data == Data("one".utf8))
  }

  @Test("a closure downloader sets the freshness lifetime unless the response has one")
  func caching() async throws {
    let url = try TestRequest.request("any:thing")
    let fresh = ClosureDownloader(freshFor: .milliseconds(2_500)) { _ in Data() }
    #expect(try await fresh.download(url).head.headerFields[.cacheControl] == "max-age=2")
    let own = ClosureDownloader(
      freshFor: .seconds(9),
      handler: { _ in
        DownloadResponse(head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=1"]), body: ResourceBody(Data()))
      })
    #expect(try await own.download(url).head.headerFields[.cacheControl] == "max-age=1")
  }

  @Test(
    "only a success is fresh",
    arguments: [(200, "max-age=9"), (206, "max-age=9"), (304, nil), (404, nil), (503, nil)] as [(Int, String?)])
  func freshStatus(_ status: Int, _ field: String?) async throws {
    let handler: ClosureDownloader.Handler = { _ in
      DownloadResponse(head: HTTPResponse(status: .init(code: status)), body: ResourceBody(Data()))
    }
    let fresh = ClosureDownloader(freshFor: .seconds(9), handler: handler)
    #expect(try await fresh.download(TestRequest.request("any:thing")).head.headerFields[.cacheControl] == field)
    let never = ClosureDownloader(handler: handler)
    #expect(try await never.download(TestRequest.request("any:thing")).head.headerFields[.cacheControl] == "no-store")
  }

  @Test("an error of the closure ends the download")
  func errors() async throws {
    for (thrown, code) in [
      (Broken() as any Error, CacheError.Code.other), (CacheError(.offline, reason: "no"), .offline),
      (CancellationError(), .cancelled),
    ] {
      let provider = ClosureDownloader { _ in throw thrown }
      let manager = manager { $0.schemeHandlers["photo"] = provider }
      let error = await failure { _ = try await manager.load(TestRequest.url("photo:1")) }
      #expect(error?.code == code)
      #expect(code != .other || error?.underlying is Broken)
    }
  }

  @Test("cancelling a load cancels its closure")
  func cancelled() async throws {
    let gate = Gate()
    let provider = ClosureDownloader { _ in
      await gate.pass()
      return Data("late".utf8)
    }
    let manager = manager { $0.schemeHandlers["photo"] = provider }
    let task = Task { try await manager.load(TestRequest.url("photo:1")) }
    await gate.arrived()
    task.cancel()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
    await gate.emptied()
  }

  @Test("downloaders with equal names are equal")
  func identity() {
    let same = { ClosureDownloader(named: "a") { _ in Data() }.id }
    #expect(same() == same())
    #expect(ClosureDownloader(named: "a") { _ in Data() }.id != ClosureDownloader(named: "b") { _ in Data() }.id)
    #expect(ClosureDownloader(named: "a", contentType: "x/y") { _ in Data() }.id != same())
    #expect(ClosureDownloader { _ in Data() }.id != ClosureDownloader { _ in Data() }.id)
  }

  // MARK: Streams

  /// A body of the given number of chunks that counts its calls.
  private final class Stream: Sendable {
    let state = Lock((next: 0, cancels: 0))
    var made: Int { state.withLock { $0.next } }
    var cancels: Int { state.withLock { $0.cancels } }

    func body(_ chunks: Int, length: Int64? = nil) -> ResourceBody {
      ResourceBody(length: length, onCancel: { self.state.withLock { $0.cancels += 1 } }) {
        let number = self.state.withLock { state in
          defer { state.next += 1 }
          return state.next
        }
        return number < chunks ? Data(repeating: UInt8(number), count: number % 2 == 0 ? 10 : 0) : nil
      }
    }
  }

  @Test("a streamed body produces a chunk after the previous one was read")
  func pulled() async throws {
    let stream = Stream()
    let provider = ClosureDownloader(handler: { _ in
      DownloadResponse(head: HTTPResponse(status: .ok), body: stream.body(6, length: 30))
    })
    let response = try await provider.download(TestRequest.request("any:thing"))
    #expect(stream.made == 0)
    var chunks = response.body.makeAsyncIterator()
    #expect(try await chunks.next() == Data(repeating: 0, count: 10))
    #expect(stream.made == 1)
    #expect(try await response.body.collect().count == 20)
    #expect(try await chunks.next() == nil)
    #expect(stream.cancels == 0)
  }

  @Test(
    "a streamed body that is shorter or longer than announced fails",
    arguments: [(Int64(31), CacheError.Code.truncatedBody), (29, .malformedResponse)])
  func wrongLength(_ length: Int64, _ code: CacheError.Code) async {
    let stream = Stream()
    let body = stream.body(6, length: length)
    for _ in 0..<2 {
      #expect(await failure { _ = try await body.collect(limit: .max) }?.code == code)
    }
    // Only a closure that was stopped before its end is notified.
    #expect(stream.cancels == (code == .malformedResponse ? 1 : 0))
  }

  @Test("a closure is notified once when its body is not read any more")
  func cancelledBody() async throws {
    let stream = Stream()
    let body = stream.body(6)
    _ = try await body.source.next()
    body.source.cancel()
    body.source.cancel()
    #expect(await failure { _ = try await body.source.next() }?.isCancellation == true)
    #expect(stream.cancels == 1)

    let dropped = Stream()
    do { _ = try await dropped.body(6).source.next() }
    #expect(dropped.cancels == 1)
  }

  @Test("a streamed body fails with the closure's error, repeatedly")
  func streamError() async {
    let body = ResourceBody { throw Broken() }
    for _ in 0..<2 { #expect(await failure { _ = try await body.collect() }?.underlying is Broken) }
  }

  // MARK: Sequences

  @Test("a body of a sequence has its chunks, without the empty ones")
  func sequence() async throws {
    let chunks = AsyncStream<Data> { continuation in
      for chunk in ["ab", "", "c"] { continuation.yield(Data(chunk.utf8)) }
      continuation.finish()
    }
    var read: [String] = []
    for try await chunk in ResourceBody(chunks, length: 3) { read.append(String(decoding: chunk, as: UTF8.self)) }
    #expect(read == ["ab", "c"])
    // A sequence may throw, and may be mapped from other elements.
    let numbers = AsyncThrowingStream<UInt8, any Error> { continuation in
      for number in UInt8(0)..<200 { continuation.yield(number) }
      continuation.finish()
    }
    #expect(try await ResourceBody(numbers.map { Data([$0]) }).collect() == Data(0..<200))
  }

  @Test("the error and the length of a sequence are those of a body", arguments: [nil, Int64(1), 3])
  func failingSequence(_ length: Int64?) async {
    let chunks = AsyncThrowingStream<Data, any Error> { continuation in
      continuation.yield(Data("ab".utf8))
      continuation.finish(throwing: length == nil ? Broken() : nil)
    }
    let body = ResourceBody(chunks, length: length)
    for _ in 0..<2 {
      let error = await failure { _ = try await body.collect(limit: .max) }
      switch length {
      case nil: #expect(error?.code == .connectionLost && error?.underlying is Broken)
      case 1: #expect(error?.code == .malformedResponse)
      default: #expect(error?.code == .truncatedBody)
      }
    }
  }

  enum End: CaseIterable { case body, reader, release }

  /// Returns a body with one chunk and no end.
  ///
  /// - Parameter onEnd: Called when the sequence of its chunks was cancelled or released. Only the body refers to the sequence.
  private func endlessBody(_ onEnd: @escaping @Sendable () -> Void) -> ResourceBody {
    let (chunks, continuation) = AsyncStream<Data>.makeStream()
    continuation.onTermination = { _ in onEnd() }
    continuation.yield(Data("a".utf8))
    return ResourceBody(chunks)
  }

  @Test("a sequence that waits is cancelled with its body, its reader, or the last reference", arguments: End.allCases)
  func cancelledSequence(_ end: End) async throws {
    let (ended, onEnd) = AsyncStream<Void>.makeStream()
    let (isWaiting, waits) = AsyncStream<Void>.makeStream()
    do {
      let body = endlessBody { onEnd.finish() }
      #expect(try await body.source.next() == Data("a".utf8))
      if end != .release {
        let reader = Task {
          waits.finish()
          return try await body.collect()
        }
        for await _ in isWaiting {}
        if end == .body { body.source.cancel() } else { reader.cancel() }
        #expect(await failure { _ = try await reader.value }?.isCancellation == true)
        #expect(await failure { _ = try await body.source.next() }?.isCancellation == true)
      }
    }
    for await _ in ended {}
  }

  // MARK: Large files

  @Test("a file of more than 2 GB is streamed in small chunks")
  func largeFile() async throws {
    let folder = try TemporaryFolder()
    let size: Int64 = 2 << 30 + 5
    try folder.put(Data("begin".utf8), "large")
    // A sparse file, which occupies no space. The test checks its end.
    let handle = try FileHandle(forWritingTo: folder.url("large"))
    try handle.seek(toOffset: UInt64(size) - 3)
    try handle.write(contentsOf: Data("end".utf8))
    try handle.close()
    let response = try await FileDownloader().download(DownloadRequest(head: HTTPRequest(resource: folder.url("large"))))
    #expect(response.head.headerFields[.contentLength] == String(size))
    var received: Int64 = 0
    var largest = 0
    var last = Data()
    for try await chunk in response.body {
      received += Int64(chunk.count)
      largest = max(largest, chunk.count)
      last = chunk
    }
    #expect(received == size)
    #expect(largest <= 256 << 10)
    #expect(last.suffix(3) == Data("end".utf8))
  }
}
