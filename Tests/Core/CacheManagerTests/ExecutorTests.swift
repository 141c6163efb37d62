import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

/// Runs jobs on its own queue, and detects whether the current code runs there.
private final class QueueExecutor: TaskExecutor {
  private static let key = DispatchSpecificKey<ObjectIdentifier>()
  private let queue = DispatchQueue(label: "etagere.test.engine")

  init() { queue.setSpecific(key: Self.key, value: ObjectIdentifier(self)) }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// An engine that responds on its own thread, and records whether its body is read there.
private final class ThreadedDownloader: Downloader {
  private final class Bytes: ResourceBody.Source {
    let read: @Sendable () -> Bool
    init(_ read: @escaping @Sendable () -> Bool) { self.read = read }
    var trailers: HTTPFields? { nil }
    func cancel() {}
    func next() async throws(CacheError) -> Data? { read() ? nil : Data("a".utf8) }
  }

  let id = ComponentID.unique(ThreadedDownloader.self)
  let executor = QueueExecutor()
  let readsAtHome = Lock<[Bool]>([])

  var preferredExecutor: (any TaskExecutor)? { executor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    // A wait that ends before it begins changes no thread, but this many waits cannot all do so.
    for _ in 0..<10_000 where !executor.isCurrent {
      await withCheckedContinuation { continuation in DispatchQueue.global().async { continuation.resume() } }
    }
    let source = Bytes { [self] in
      readsAtHome.withLock { reads in
        reads.append(executor.isCurrent)
        return reads.count.isMultiple(of: 2)
      }
    }
    return DownloadResponse(
      head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]), body: ResourceBody(length: nil, source: source))
  }
}

@Suite("The executor of a load")
struct ExecutorTests {
  @Test("the engine's executor reads the bytes, and another executor makes the value")
  func engineExecutor() async throws {
    let engine = ThreadedDownloader()
    let fixture = try ManagerFixture { $0.downloader = engine }
    let isMadeAtHome = Lock<Bool?>(nil)
    let transform = ResourceTransform<Int>(id: "length", cost: { _ in 1 }) { (body, _) throws(CacheError) in
      isMadeAtHome.withLock { $0 = engine.executor.isCurrent }
      return try await body.collect().count
    }
    #expect(try await fixture.manager.load(ResourceRequest(fixture.url), as: transform).value == 1)
    #expect(engine.readsAtHome.withLock { $0 } == [true, true])
    #expect(isMadeAtHome.withLock { $0 } == false)
  }

  @Test("hooks around an engine do not change its executor")
  func hooked() {
    let engine = ThreadedDownloader()
    let executor = engine.hooked(by: DownloaderHooks()).preferredExecutor
    #expect(executor.map { ObjectIdentifier($0) } == ObjectIdentifier(engine.executor))
  }
}
