#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("A session's task and its callbacks", .timeLimit(.minutes(30))) struct SessionDataTaskTests {
  /// An event in short, to compare by.
  private enum Seen: Hashable {
    case head(Int)
    case data(Data)
    case end(CacheError.Code?)

    init(_ event: SessionDataTask.Event) {
      switch event {
      case .head(let head): self = .head(head.status.code)
      case .data(let data): self = .data(data)
      case .end(let error): self = .end(error?.code)
      }
    }
  }

  /// A transfer that stands at the gate, after `offset` bytes of the body.
  private func running(
    _ fixture: Fixture, _ gate: Gate, offset: Int = 1000
  ) async throws -> (task: SessionDataTask, handle: DownloadTask, response: DownloadResponse) {
    fixture.origin.setRoute(
      "/a", Route(pattern(3000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: offset)))
    let handle = DownloadTask()
    let response = try await fixture.downloader.download(fixture.request("/a"), as: handle)
    return (try #require(handle.sessionTask), handle, response)
  }

  private func bytes(_ seen: [Seen]) -> Data {
    seen.reduce(into: Data()) { if case .data(let data) = $1 { $0 += data } }
  }

  @Test("a callback gets head, data and end in order, also when it joins late")
  func order() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate)
      var iterator = response.body.makeAsyncIterator()
      _ = try await read(1000, from: &iterator)
      let (seen, ended) = (Recorder<Seen>(), Recorder<Void>())

      let token = task.addCallback { event in
        seen.record(Seen(event))
        if case .end = event { ended.record(()) }
      }
      #expect(token != nil)
      #expect(seen.values.first == .head(200), "what has come already is told at once")
      #expect(bytes(seen.values) == pattern(3000).prefix(1000))
      gate.open()
      await ended.wait(for: 1)

      #expect(seen.values.last == .end(nil))
      #expect(seen.values.filter { $0 == .head(200) || $0 == .end(nil) }.count == 2)
      #expect(bytes(seen.values) == pattern(3000))
    }
  }

  @Test("a cancelled callback ends at once and alone, and its token is told")
  func cancelOne() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate, offset: 0)
      let (seen, cancelled) = (Recorder<Seen>(), Recorder<SessionDataTask.CancelToken>())
      task.onCallbackCancelled.delegate(on: cancelled) { (cancelled, token) in cancelled.record(token) }
      let token = try #require(task.addCallback { seen.record(Seen($0)) })
      #expect(task.sharers == 2)

      task.cancel(token: token)
      task.cancel(token: token)

      #expect(seen.values.last == .end(.cancelled))
      #expect(cancelled.values == [token])
      #expect(task.sharers == 1)
      gate.open()
      #expect(try await response.body.collect() == pattern(3000))
      #expect(seen.values.last == .end(.cancelled))
    }
  }

  @Test("one task's token cancels and removes nothing of another's")
  func foreignToken() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate)
      fixture.origin.setRoute("/b", Route(pattern(3000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1000)))
      let otherHandle = DownloadTask()
      let otherResponse = try await fixture.downloader.download(fixture.request("/b"), as: otherHandle)
      let other = try #require(otherHandle.sessionTask)
      let seen = Recorder<Seen>()
      let token = try #require(task.addCallback { seen.record(Seen($0)) })
      let otherToken = try #require(other.addCallback { _ in })

      other.cancel(token: token)
      #expect(!other.removeCallback(token))
      task.cancel(token: otherToken)

      #expect(token != otherToken)
      #expect(task.sharers == 2)
      #expect(other.sharers == 2)
      gate.open()
      #expect(try await response.body.collect() == pattern(3000))
      #expect(try await otherResponse.body.collect() == pattern(3000))
      #expect(!seen.values.contains(.end(.cancelled)))
    }
  }

  @Test("a callback may cancel itself from inside")
  func cancelInside() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate, offset: 0)
      let seen = Recorder<Seen>()
      let own = Lock<SessionDataTask.CancelToken?>(nil)
      let token = task.addCallback { event in
        seen.record(Seen(event))
        if case .data = event, let token = own.withLock({ $0 }) { task.cancel(token: token) }
      }
      own.withLock { $0 = token }

      gate.open()
      _ = try await response.body.collect()
      await seen.wait(for: 3)

      #expect(seen.values.last == .end(.cancelled))
      #expect(seen.values.filter { $0 == .end(.cancelled) }.count == 1)
    }
  }

  @Test("a callback that is taken out hears nothing more, and the transfer goes on")
  func remove() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate, offset: 0)
      let seen = Recorder<Seen>()
      let token = try #require(task.addCallback { seen.record(Seen($0)) })
      let before = seen.values

      #expect(task.removeCallback(token))
      #expect(!task.removeCallback(token))
      gate.open()

      #expect(try await response.body.collect() == pattern(3000))
      #expect(seen.values.count == before.count)
    }
  }

  @Test("the last cancel is an event, and stops the transfer")
  func lastCancelled() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, handle, response) = try await running(fixture, gate)
      let last = Recorder<Void>()
      task.onLastCancelled.delegate(on: last) { (last, _) in last.record(()) }
      let token = try #require(task.addCallback { _ in })

      handle.cancel()
      #expect(last.values.isEmpty, "the callback still waits")
      task.cancel(token: token)

      #expect(last.values.count == 1)
      #expect(task.hasEnded)
      #expect(task.addCallback { _ in } == nil)
      await #expect(throws: CacheError.self) { try await response.body.collect() }
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("a forced cancel ends everybody")
  func forceCancel() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let (task, _, response) = try await running(fixture, gate, offset: 0)
      let seen = Recorder<Seen>()
      _ = task.addCallback { seen.record(Seen($0)) }

      task.forceCancel()
      task.forceCancel()

      #expect(seen.values.last == .end(.cancelled))
      let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
      #expect(error?.isCancellation == true)
    }
  }

  @Test("resuming again changes nothing")
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

  @Test("a body that two tasks read at once tells so, and goes on for the first")
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

      #expect(await codes.wait(for: 1) == [.misuse], "one of the two waits, the other learns that")
      gate.open()
      #expect(await codes.wait(for: 2) == [.misuse, nil])
    }
  }
}
#endif
