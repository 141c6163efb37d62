#if Origin
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import CacheNetworking

@Suite("Exact time limits", .timeLimit(.minutes(30))) struct DeadlineTests {
  /// Starts a download in a separate task that returns its error.
  private func outcome(_ fixture: Fixture, _ request: DownloadRequest) -> Task<CacheError?, Never> {
    Task { await fixture.failure(of: request) }
  }

  /// Waits until the timer sleeps again. Fails at once if the download ends before.
  private func timerSleeps(_ clock: ManualClock, beforeEndOf task: Task<CacheError?, Never>) async throws {
    let hasEnded = Lock(false)
    let watcher = Task {
      _ = await task.value
      hasEnded.withLock { $0 = true }
    }
    try await Polling.until { hasEnded.withLock { $0 } || clock.pendingSleeps > 0 }
    #expect(!hasEnded.withLock { $0 })
    watcher.cancel()
  }

  @Test("silence before the head fails exactly at the idle timeout")
  func idleBeforeHead() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: .fault(.stallBeforeHead)))
      let task = outcome(fixture, try fixture.request("/a", idleTimeout: .milliseconds(250)))
      await fixture.origin.waitForRequests(path: "/a", count: 1)
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(249))
      try await timerSleeps(clock, beforeEndOf: task)

      clock.advance(by: .milliseconds(1))

      let error = await task.value
      #expect(error?.code == .timedOut)
      #expect(error?.reason.contains("0.25") == true)
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("silence in the body fails at the idle timeout")
  func idleInBody() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: .fault(.stall(afterBodyBytes: 10))))
      let request = try fixture.request("/a", idleTimeout: .milliseconds(250))
      let one = try await fixture.downloader.download(request)
      let other = try await fixture.downloader.download(request)
      // Bytes that arrive after the clock was advanced would be activity at that time.
      for body in [one.body, other.body] {
        var iterator = body.makeAsyncIterator()
        _ = try await read(10, from: &iterator)
      }
      await clock.sleepers(1)

      clock.advance(by: .milliseconds(250))

      for body in [one.body, other.body] {
        let error = await #expect(throws: CacheError.self) { try await body.collect() }
        #expect(error?.code == .timedOut)
      }
    }
  }

  @Test("received bytes postpone the idle timeout")
  func activity() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 10)))
      let handle = DownloadTask()
      let request = try fixture.request("/a", idleTimeout: .seconds(1))
      let response = try await fixture.downloader.download(request, as: handle)
      let transfer = try #require(handle.sessionTask)
      var iterator = response.body.makeAsyncIterator()
      _ = try await read(10, from: &iterator)

      clock.advance(by: .milliseconds(900))
      transfer.noteActivity(at: clock.uptime)
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(900))
      // 1.8 seconds after the start, 0.9 seconds after the last received bytes.
      #expect(transfer.checkIdleness(at: clock.uptime) == .milliseconds(1_900))
      #expect(!transfer.hasEnded)
      gate.open()
      _ = try await read(90, from: &iterator)
    }
  }

  @Test("the time during which the process did not run is not idle time")
  func suspended() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: .fault(.stallBeforeHead)))
      let task = outcome(fixture, try fixture.request("/a", idleTimeout: .seconds(60)))
      await fixture.origin.waitForRequests(path: "/a", count: 1)
      await clock.sleepers(1)

      clock.advance(by: .seconds(3_600))

      // The check that was due after 15 seconds comes an hour late. The transfer continues for three quarters of the limit.
      for _ in 0..<3 {
        try await timerSleeps(clock, beforeEndOf: task)
        clock.advance(by: .seconds(15))
      }
      #expect(await task.value?.code == .timedOut)
    }
  }

  @Test("the platform's own time-out is one only if the transfer was idle without a suspension")
  func platformTimeout() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 10)))
      let handle = DownloadTask()
      let response = try await fixture.downloader.download(try fixture.request("/a", idleTimeout: .seconds(60)), as: handle)
      let transfer = try #require(handle.sessionTask)
      var iterator = response.body.makeAsyncIterator()
      _ = try await read(10, from: &iterator)
      /// Returns the error of the transfer if the platform ended it now.
      func error(after pause: Duration) -> CacheError.Code? {
        let events = transfer.receiveEnd(URLError(.timedOut), response: nil, at: clock.uptime + pause)
        guard case .end(let error)? = events.last else { return nil }
        return error?.code
      }

      #expect(error(after: .seconds(3_600)) == .connectionLost, "no check for an hour")
      transfer.pauseIdleness()
      #expect(error(after: .seconds(3_600)) == .timedOut, "the platform waits for a network")
      transfer.noteActivity(at: clock.uptime - .seconds(60))
      #expect(error(after: .zero) == .timedOut, "idle for the whole limit")
      transfer.noteActivity(at: clock.uptime)
      gate.open()
      _ = try await read(90, from: &iterator)
    }
  }

  @Test("the delay of a check does not count as idle time if it is longer than that of a busy machine")
  func lateChecks() {
    var idleness = Idleness(limit: .seconds(60), at: .zero)
    #expect(idleness.check(at: .seconds(16)) == .seconds(31), "a second late")
    #expect(idleness.check(at: .seconds(131)) == .seconds(146), "100 seconds late")
    #expect(idleness.check(at: .seconds(146)) == .seconds(160), "without the 100 seconds, the limit is at 160")
    #expect(idleness.check(at: .seconds(160)) == nil)
    idleness.lastActivity = nil
    #expect(idleness.check(at: .seconds(999)) == .seconds(1_014), "the platform waits for a network")
    idleness.lastActivity = .seconds(1_100)
    #expect(idleness.check(at: .seconds(1_101)) == .seconds(1_116), "activity after a delay")
  }

  @Test("the total limit covers head and body, regardless of the received bytes")
  func whole() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: OriginDelivery(bodyGate: Gate(), bodyGateOffset: 10)))
      let request = try fixture.request("/a", timeout: .milliseconds(1500))
      let response = try await fixture.downloader.download(request)
      await clock.sleepers(1)

      clock.advance(by: .milliseconds(1500))

      let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
      #expect(error?.code == .timedOut)
      #expect(error?.reason.contains("1.5") == true)
      await #expect(throws: CacheError.self, "an error is final") { try await response.body.source.next() }
    }
  }

  @Test("a limit applies to its own request only, and an equal request without one completes")
  func ownLimit() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: .gated(by: gate)))
      let patient = Task { try await fixture.get("/a").body.collect() }
      await gate.arrived()
      let handle = DownloadTask()
      let request = try fixture.request("/a", timeout: .seconds(1))
      let hasty = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(request, as: handle)
          return nil
        } catch { return error }
      }
      #expect(await handle.started)
      await clock.sleepers(1)

      clock.advance(by: .seconds(1))

      #expect(await hasty.value?.code == .timedOut)
      gate.open()
      #expect(try await patient.value == pattern(100))
    }
  }

  @Test("bytes received in time may be read later")
  func readLater() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let response = try await fixture.downloader.download(fixture.request("/a", timeout: .seconds(1)))
      await fixture.transferEnds.wait(for: 1)

      clock.advance(by: .seconds(5))

      #expect(try await response.body.collect() == pattern(100))
      #expect(response.metrics().total == .zero, "by the downloader's clock")
    }
  }

  @Test("the limit covers the collection of the request body before the request is sent")
  func beforeTheRequest() async throws {
    let clock = ManualClock()
    try await Fixture.run(clock: clock) { fixture async throws in
      let body = HeldBody()
      let hooks = RecordingHooks()
      fixture.downloader.hooks = hooks.hooks
      let request = try fixture.request(
        "/a", method: .put, body: ResourceBody(length: nil, source: body), timeout: .seconds(2))
      let task = outcome(fixture, request)
      await body.gate.arrived()
      await clock.sleepers(1)

      clock.advance(by: .seconds(2))

      #expect(await task.value?.code == .timedOut)
      #expect(hooks.calls.values.last == "failed timedOut")
      #expect(fixture.origin.requests.isEmpty)
    }
  }
}

/// A body whose first chunk is delayed until it is cancelled.
private final class HeldBody: ResourceBody.Source {
  let gate = Gate()

  var trailers: HTTPFields? { nil }

  func next() async throws(CacheError) -> Data? {
    await gate.pass()
    return nil
  }

  func cancel() { gate.open() }
}

@Suite("Deadline timer", .timeLimit(.minutes(30))) struct DeadlineWatchTests {
  @Test("the timer calls each action when it is due, in one task, and again at the returned time")
  func calls() async {
    let clock = ManualClock()
    let watch = DeadlineTimer(clock: clock)
    let called = Recorder<String>()
    let late = watch.add(due: .seconds(5)) { _ in
      called.record("late")
      return nil
    }
    let early = watch.add(due: .seconds(2)) { now in
      called.record("early")
      return now < .seconds(4) ? now + .seconds(2) : nil
    }
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    #expect(await called.wait(for: 1) == ["early"])
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    #expect(await called.wait(for: 2) == ["early", "early"])
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(await called.wait(for: 3) == ["early", "early", "late"])
    withExtendedLifetime((late, early)) {}
  }

  @Test("a released deadline is not retained")
  func removed() async {
    let clock = ManualClock()
    let watch = DeadlineTimer(clock: clock)
    let called = Recorder<Int>()
    var first: DeadlineTimer.ScheduledDeadline? = watch.add(due: .seconds(1)) { _ in
      called.record(1)
      return nil
    }
    let second = watch.add(due: .seconds(1)) { _ in
      called.record(2)
      return nil
    }
    await clock.sleepers(1)
    withExtendedLifetime(first) {}
    first = nil
    clock.advance(by: .seconds(1))
    #expect(await called.wait(for: 1) == [2])
    withExtendedLifetime(second) {}
  }

  @Test("a released timer stops sleeping")
  func released() async throws {
    let clock = ManualClock()
    var watch: DeadlineTimer? = DeadlineTimer(clock: clock)
    _ = watch?.add(due: .seconds(60)) { _ in nil }
    await clock.sleepers(1)
    watch = nil
    try await Polling.until { clock.pendingSleeps == 0 }
  }
}
#endif
