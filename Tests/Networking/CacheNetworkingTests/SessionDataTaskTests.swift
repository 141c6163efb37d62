#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("Session data tasks", .timeLimit(.minutes(30))) struct SessionDataTaskTests {
  /// Starts a transfer that waits at the gate after `offset` bytes of the body.
  private func running(
    _ fixture: Fixture, _ gate: Gate, offset: Int = 1000
  ) async throws -> (task: SessionDataTask, handle: DownloadTask, response: DownloadResponse) {
    fixture.origin.setRoute(
      "/a", Route(pattern(3000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: offset)))
    let handle = DownloadTask()
    let response = try await fixture.downloader.download(fixture.request("/a"), as: handle)
    return (try #require(handle.sessionTask), handle, response)
  }

  @Test("a cancellation ends the reader at once and stops the transfer")
  func cancel() async throws {
    try await Fixture.run { fixture async throws in
      let (task, _, response) = try await running(fixture, Gate(), offset: 0)

      task.cancel()
      task.cancel()

      #expect(task.hasEnded)
      let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
      #expect(error?.isCancellation == true)
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("a second resume does nothing")
  func resume() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate)
      #expect(task.isStarted)

      task.resume()
      task.resume()
      gate.open()

      #expect(try await response.body.collect() == pattern(3000))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("a body that two tasks read reports misuse to the second and continues for the first")
  func twoReaders() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (_, _, response) = try await running(fixture, gate, offset: 0)
      let source = response.body.source
      let codes = Recorder<CacheError.Code?>()
      for _ in 0..<2 {
        Task {
          do throws(CacheError) {
            _ = try await source.next()
            codes.record(nil)
          } catch { codes.record(error.code) }
        }
      }

      #expect(await codes.wait(for: 1) == [.misuse], "one task waits, and the other gets the error")
      gate.open()
      #expect(await codes.wait(for: 2) == [.misuse, nil])
    }
  }
}
#endif
