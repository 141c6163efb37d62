import CacheCore
import CacheTesting
import CacheTransport
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Discarded responses")
struct DiscardTests {
  private let clock = ManualClock()

  /// A body without bytes that ends only when it is cancelled.
  private final class SilentBody: ResourceBody.Source {
    private let state = WatchedState(false)

    var isCancelled: Bool { state.read { $0 } }
    var trailers: HTTPFields? { nil }

    func cancel() { state.update { $0 = true } }

    func next() async throws(CacheError) -> Data? {
      await state.wait { $0 }
      throw .cancelled
    }
  }

  private func makeResponse(_ status: HTTPResponse.Status, _ source: any ResourceBody.Source, length: Int64) -> DownloadResponse {
    DownloadResponse(
      head: HTTPResponse(status: status, headerFields: [.contentLength: "\(length)"]),
      body: ResourceBody(length: length, source: source))
  }

  @Test(
    "a short discarded body is read before the next request, and a long one is cancelled",
    arguments: [(0, false), (16_384, false), (16_385, true)])
  func read(_ size: Int, _ isCancelled: Bool) async throws {
    let refused = BreakingBody(pattern(size))
    let probe = RequestProbe { number, _ in
      number == 1 ? .scripted(503, [:], refused, length: Int64(size)) : .scripted(200, [:], pattern(10))
    }
    let downloader = probe.retrying(.exact(), clock: clock)
    let load = Task { try await downloader.download(request()) }
    await clock.sleepers(1)
    if isCancelled {
      #expect(refused.isCancelled && refused.pulls == 0)
    } else {
      await refused.delivered(size)
    }
    clock.advance(by: .seconds(1))
    let response = try await load.value
    #expect(response.head.status == .ok)
    #expect(try await response.body.collect() == pattern(10))
  }

  @Test("a slow discarded body does not occupy the slot that the next request needs", arguments: [false, true])
  func slot(isRest: Bool) async throws {
    let silent = SilentBody()
    let whole = pattern(100)
    let probe = RequestProbe { [silent] number, _ in
      switch (number, isRest) {
      case (1, true): .scripted(200, [.eTag: "\"1\""], whole, chunk: 40, cut: 40)
      case (1, false), (2, true): makeResponse(.serviceUnavailable, silent, length: 40)
      case (_, true):
        .scripted(
          206, [.eTag: "\"1\"", .contentRange: "bytes 40-99/100"], whole.dropFirst(40).reduce(into: Data()) { $0.append($1) })
      default: .scripted(200, [:], whole)
      }
    }
    let limited = probe.limitingConcurrency(TransferLimits(perHost: 1))
    let policy = RetryPolicy.exact()
    let downloader: any Downloader = isRest ? limited.resuming(policy, clock: clock) : limited.retrying(policy, clock: clock)
    let load = Task { try await downloader.download(request()).body.collect() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(8))
    do {
      try await Polling.until { probe.count == (isRest ? 3 : 2) }
    } catch {
      load.cancel()
      throw error
    }
    #expect(silent.isCancelled)
    #expect(try await load.value == whole)
  }

  @Test("a discarded body is not read further when the load is cancelled")
  func cancelled() async throws {
    let silent = SilentBody()
    let probe = RequestProbe { [silent] _, _ in makeResponse(.serviceUnavailable, silent, length: 40) }
    let downloader = probe.retrying(.exact(), clock: clock)
    let load = Task { await failure { _ = try await downloader.download(request()) } }
    await clock.sleepers(1)
    #expect(!silent.isCancelled)
    load.cancel()
    #expect(await load.value?.isCancellation == true)
    #expect(silent.isCancelled)
  }
}
