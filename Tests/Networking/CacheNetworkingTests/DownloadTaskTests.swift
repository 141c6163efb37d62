import CacheCore
import CacheNetworking
import HTTPTypes
import Testing

@Suite("Download handles", .timeLimit(.minutes(30))) struct DownloadTaskTests {
  @Test("a handle that is cancelled before its use never starts")
  func cancelledUnused() async {
    let handle = DownloadTask()
    #expect(!handle.isCancelled)

    handle.cancel()
    handle.cancel()

    #expect(handle.isCancelled)
    #expect(await handle.started == false)
    #expect(handle.sessionTask == nil)
  }

  @Test("a task that waits for the start is resumed by a cancellation")
  func cancelledWhileWaiting() async {
    let handle = DownloadTask()
    let waiting = Recorder<Void>()
    async let first = handle.started
    async let second: Bool = {
      waiting.record(())
      return await handle.started
    }()
    await waiting.wait(for: 1)

    handle.cancel()

    #expect(await first == false)
    #expect(await second == false)
  }

  @Test("a cancelled task stops waiting for the start, and the handle is not affected")
  func waiterCancelled() async {
    let handle = DownloadTask()
    let waiter = Task { await handle.started }

    waiter.cancel()

    #expect(await waiter.value == false)
    #expect(!handle.isCancelled)
  }

  @Test("a download that cannot be made never starts")
  func failed() async {
    let downloader = SessionDownloader()
    downloader.close()
    let handle = DownloadTask()
    let request = DownloadRequest(head: .init(method: .get, scheme: "http", authority: "127.0.0.1:9", path: "/"))

    await #expect(throws: CacheError.self) { try await downloader.download(request, as: handle) }

    #expect(await handle.started == false)
  }
}
