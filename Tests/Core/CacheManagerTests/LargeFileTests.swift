import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Files of any size")
struct LargeFileTests {
  /// A downloader of a long generated body, which counts the pulled and the written bytes.
  private final class Flow: Downloader, Sendable {
    private struct Account {
      var pulled: Int64 = 0
      var written: Int64 = 0
      var highest: Int64 = 0
    }

    private final class Source: ResourceBody.Source {
      let flow: Flow
      init(_ flow: Flow) { self.flow = flow }

      func next() async throws(CacheError) -> Data? { flow.pull() }
      func cancel() {}
      var trailers: HTTPFields? { nil }
    }

    let id = ComponentID.unique(Flow.self)
    private let length: Int64
    private let chunk = Data(count: 1_000_000)
    private let account = Lock(Account())

    init(length: Int64) { self.length = length }

    /// The largest number of bytes that were pulled and not yet written.
    var highest: Int64 { account.withLock { $0.highest } }
    var written: Int64 { account.withLock { $0.written } }

    func write(_ count: Int, at offset: Int64) { account.withLock { $0.written = offset + Int64(count) } }

    private func pull() -> Data? {
      account.withLock { account in
        guard account.pulled < length else { return nil }
        account.pulled += Int64(chunk.count)
        account.highest = max(account.highest, account.pulled - account.written)
        return chunk
      }
    }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: length, source: Source(self)))
    }
  }

  @Test("a load of 2 GB holds at most one batch, because it pulls more bytes only after the last ones were written")
  func backPressure() async throws {
    let flow = Flow(length: 2_000_000_000)
    // A store that is too small refuses the body at the start, and not after half of it.
    let folder = try DownloadFolder()
    let disk = try DiskCache(folder: folder.url.appending(path: "cache"))
    let fixture = try ManagerFixture {
      $0.downloader = flow
      $0.store = disk
    }
    var calls = FileSystemCalls.system
    calls.write = { _, bytes, offset in
      flow.write(bytes.count, at: offset)
      return .success(bytes.count)
    }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)

    #expect(flow.written == 2_000_000_000)
    #expect(flow.highest <= 1_300_000)
    #expect(disk.counters.failedWrites == 0)
    #expect(
      fixture.observer.events.contains { if case .storeFailed(_, let error) = $0 { error.code == .entryTooLarge } else { false } }
    )
    await disk.close()
  }

  /// A body of small chunks, all but the first of which arrive while the first one is being written.
  private final class DuringWrite: Downloader, ResourceBody.Source, Sendable {
    static let chunk = Data(repeating: 7, count: 16 << 10)
    static let chunks = 7

    let id = ComponentID.unique(DuringWrite.self)
    let isWriting = Gate()
    let mayWrite = DispatchSemaphore(value: 0)
    private let pulled = Lock(0)

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: nil, source: self))
    }

    func next() async throws(CacheError) -> Data? {
      let number = pulled.withLock { pulled in
        pulled += 1
        return pulled
      }
      if number == 2 { await isWriting.pass() }
      guard number > Self.chunks else { return Self.chunk }
      mayWrite.signal()
      return nil
    }

    func cancel() {}
    var trailers: HTTPFields? { nil }
  }

  @Test("chunks that arrive during a write do not wait for it, and are written together")
  func batches() async throws {
    let body = DuringWrite()
    let folder = try DownloadFolder()
    let fixture = try ManagerFixture { $0.downloader = body }
    let sizes = Lock<[Int]>([])
    var calls = FileSystemCalls.system
    let write = calls.write
    calls.write = { descriptor, bytes, offset in
      let isFirst = sizes.withLock { sizes in
        sizes.append(bytes.count)
        return sizes.count == 1
      }
      if isFirst {
        body.isWriting.open()
        // Without a limit, a load that waits for this write would never end.
        _ = body.mayWrite.wait(timeout: .now() + 600)
      }
      return write(descriptor, bytes, offset)
    }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)

    let count = DuringWrite.chunk.count
    #expect(sizes.withLock { $0 } == [count, count * (DuringWrite.chunks - 1)])
    #expect(folder.content() == Data(repeating: 7, count: count * DuringWrite.chunks))
  }

  @Test("a cancellation while the file is put into place comes too late, and the load succeeds")
  func lateCancel() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    let cancel = Lock<(@Sendable () -> Void)?>(nil)
    var calls = FileSystemCalls.system
    let rename = calls.rename
    calls.rename = { from, to in
      cancel.withLock { $0 }?()
      return rename(from, to)
    }
    let gate = Gate()

    let load = Task { [calls] in
      await gate.pass()
      return try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)
    }
    cancel.withLock { $0 = { load.cancel() } }
    gate.open()

    #expect(try await load.value.file == folder.file())
    #expect(folder.content() == Data("bytes".utf8))
  }
}
