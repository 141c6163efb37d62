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

@Suite("Retries before the head")
struct RetryTests {
  private let clock = ImmediateClock()
  private let recorder = RetryRecorder()

  private func policy(_ maximumAttempts: Int = 4) -> RetryPolicy {
    var policy = RetryPolicy.exact(maximumAttempts)
    policy.onRetry = Delegate { [recorder] in recorder.record($0) }
    return policy
  }

  /// Runs a download to its end without real delays.
  private func outcome(
    of downloader: some Downloader, _ request: DownloadRequest
  ) async -> Result<DownloadResponse, CacheError> {
    do throws(CacheError) { return .success(try await downloader.download(request)) } catch { return .failure(error) }
  }

  @Test("an immediate response needs one request and no delay")
  func nothingToDo() async throws {
    let probe = RequestProbe { _, _ in .scripted(200, [:], pattern(10)) }
    let response = try await probe.retrying(policy(), clock: clock).download(request())
    #expect(try await response.body.collect() == pattern(10))
    #expect(probe.count == 1)
    #expect(response.metrics().attempts == 1)
    #expect(recorder.failures.isEmpty)
  }

  @Test("a failed request is sent again with the next number until it succeeds")
  func success() async throws {
    let probe = RequestProbe { number, _ throws(CacheError) in
      if number < 3 { throw lost }
      return .scripted(200, [:], pattern(2_500))
    }
    let response = try await outcome(of: probe.retrying(policy(), clock: clock), request()).get()
    #expect(try await response.body.collect() == pattern(2_500))
    #expect(probe.received.map(\.attempt) == [1, 2, 3])
    #expect(recorder.delays == [.seconds(1), .seconds(2)])
    #expect(recorder.failures.map(\.attempt) == [1, 2])
    #expect(recorder.failures.allSatisfy { $0.error?.code == .connectionLost && $0.receivedBytes == 0 })
    let metrics = response.metrics()
    #expect(metrics.attempts == 3)
    #expect(metrics.timeToHead == .milliseconds(7))
    #expect(metrics.total == .seconds(3))
    #expect(metrics.bytesDecoded == 2_500)
  }

  @Test("the last error is thrown with the number of requests and the history")
  func lastError() async throws {
    let codes: [CacheError.Code] = [.connectionLost, .timedOut, .connectionRefused, .hostNotFound]
    let probe = RequestProbe { number, _ throws(CacheError) in
      throw CacheError(codes[(number - 1) % 4], reason: "failure \(number)")
    }
    let result = await outcome(of: probe.retrying(policy(), clock: clock), request())
    let error = try #require(throws: CacheError.self) { try result.get() }
    #expect(error.code == .hostNotFound)
    #expect(error.reason == "failure 4")
    #expect(error.attempt == 4)
    let history = try #require(error.underlying as? FailureHistory)
    #expect(history.failures.map(\.code) == codes)
    #expect(probe.count == 4)
  }

  @Test("a single failure keeps its underlying error")
  func singleError() async throws {
    let probe = RequestProbe { _, _ throws(CacheError) in
      throw CacheError(.tlsFailure, reason: "no", underlying: CacheError(.other, reason: "the engine's"))
    }
    let result = await outcome(of: probe.retrying(policy(), clock: clock), request())
    let error = try #require(throws: CacheError.self) { try result.get() }
    #expect(error.attempt == 1)
    #expect((error.underlying as? CacheError)?.reason == "the engine's")
    #expect(probe.count == 1)
  }

  @Test("an error that is not retried ends the retries of an earlier one")
  func turn() async throws {
    let probe = RequestProbe { number, _ throws(CacheError) in
      throw number == 1 ? lost : CacheError(.tlsFailure, reason: "no")
    }
    let result = await outcome(of: probe.retrying(policy(), clock: clock), request())
    let error = try #require(throws: CacheError.self) { try result.get() }
    #expect(error.code == .tlsFailure)
    #expect(error.attempt == 2)
  }

  @Test("the last response is returned, regardless of its status")
  func lastResponse() async throws {
    let probe = RequestProbe { number, _ in .scripted(503, [:], Data("busy \(number)".utf8)) }
    let response = try await outcome(of: probe.retrying(policy(3), clock: clock), request()).get()
    #expect(response.head.status.code == 503)
    #expect(try await response.body.collect() == Data("busy 3".utf8))
    #expect(probe.count == 3)
    #expect(recorder.failures.compactMap(\.status) == [503, 503])
    #expect(response.metrics().attempts == 3)
  }

  @Test("the server's delay is respected, and one beyond the limit makes the response final")
  func retryAfter() async throws {
    let probe = RequestProbe { number, _ in
      .scripted([503, 429, 503][min(number, 3) - 1], [.retryAfter: number == 3 ? "3600" : "7"])
    }
    let response = try await outcome(of: probe.retrying(policy(9), clock: clock), request()).get()
    #expect(response.head.status.code == 503)
    #expect(response.head.headerFields[.retryAfter] == "3600")
    #expect(recorder.delays == [.seconds(7), .seconds(7)])
    #expect(probe.count == 3)
  }

  @Test("a cancellation during a delay ends it at once without another request")
  func cancelWhileWaiting() async throws {
    let clock = ManualClock()
    let probe = RequestProbe { _, _ throws(CacheError) in throw lost }
    let downloader = probe.retrying(policy(), clock: clock)
    let task = Task { await failure { _ = try await downloader.download(request()) } }
    await clock.sleepers(1)
    task.cancel()
    #expect(await task.value?.isCancellation == true)
    #expect(probe.count == 1)
    #expect(clock.pendingSleeps == 0)
  }

  @Test("a cancellation during the second request is not reported as the first error")
  func cancelDuringRetry() async throws {
    let gate = Gate()
    let probe = RequestProbe { number, _ throws(CacheError) in
      if number == 2 {
        await gate.pass()
        // An engine may report a cancellation as any error.
        throw number == 2 && Task.isCancelled ? lost : CacheError(.other, reason: "not cancelled")
      }
      throw lost
    }
    let downloader = probe.retrying(.eager(9))
    let task = Task { await failure { _ = try await downloader.download(request()) } }
    await gate.arrived()
    task.cancel()
    #expect(await task.value?.isCancellation == true)
    #expect(probe.count == 2)
  }

  @Test("a cancellation from the engine is never retried")
  func cancelledBelow() async {
    let probe = RequestProbe { _, _ throws(CacheError) in throw .cancelled }
    var policy = RetryPolicy.eager()
    policy.errors.insert(.cancelled)
    let error = await failure { _ = try await probe.retrying(policy).download(request()) }
    #expect(error?.isCancellation == true)
    #expect(probe.count == 1)
  }

  @Test("every retry repeats the URL, fields, priority and network access of the request")
  func sameRequest() async throws {
    let probe = RequestProbe { number, _ throws(CacheError) in
      if number < 3 { throw lost }
      return .scripted()
    }
    var asked = request("/mirror/2", fields: [.accept: "image/png"])
    asked.idleTimeout = .seconds(3)
    asked.networkAccess = [.cellular]
    _ = try await probe.retrying(.eager()).download(asked)
    for sent in probe.received {
      #expect(sent.head == asked.head)
      #expect(sent.priority === asked.priority)
      #expect(sent.idleTimeout == .seconds(3) && sent.networkAccess == [.cellular])
    }
  }

  @Test("the attempts continue from the request's own number")
  func countingOn() async throws {
    let probe = RequestProbe { _, _ throws(CacheError) in throw lost }
    let error = await failure { _ = try await probe.retrying(.eager(4)).download(request(attempt: 3)) }
    #expect(probe.received.map(\.attempt) == [3, 4])
    #expect(error?.attempt == 4)
  }

  @Test("two nested policies count the same requests")
  func nested() async throws {
    let probe = RequestProbe { _, _ throws(CacheError) in throw lost }
    let error = await failure { _ = try await probe.retrying(.eager(3)).retrying(.eager(5)).download(request()) }
    #expect(probe.received.map(\.attempt) == [1, 2, 3, 4, 5])
    #expect(error?.attempt == 5)
    #expect((error?.underlying as? FailureHistory)?.failures.count == 5)
  }

  @Test("all retries share the request's timeout")
  func timeout() async throws {
    let probe = RequestProbe { [clock] _, _ throws(CacheError) in
      clock.advance(by: .seconds(2))
      throw CacheError(.timedOut, reason: "slow")
    }
    let result = await outcome(of: probe.retrying(policy(9), clock: clock), request(timeout: .seconds(10)))
    let error = try #require(throws: CacheError.self) { try result.get() }
    #expect(error.code == .timedOut)
    #expect(error.attempt == 3)
    // Each request takes 2 s, and the delays are 1 s and 2 s. The next delay of 4 s would end after the time limit.
    #expect(probe.received.map(\.timeout) == [.seconds(10), .seconds(7), .seconds(3)])
  }
}

@Suite("Retries of requests with bodies")
struct RetryBodyTests {
  @Test("a body in memory is sent again")
  func atHand() async throws {
    let probe = RequestProbe { number, request throws(CacheError) in
      let sent = try await request.body?.collect()
      if number < 3 { throw lost }
      return .scripted(200, [:], sent ?? Data())
    }
    let response = try await probe.retrying(.eager()).download(request(method: .put, body: ResourceBody(pattern(99))))
    #expect(try await response.body.collect() == pattern(99))
    #expect(probe.count == 3)
  }

  @Test("a streamed body is not sent again, because it can be read only once", arguments: [false, true])
  func stream(_ hasResponse: Bool) async throws {
    let probe = RequestProbe { _, _ throws(CacheError) in
      if hasResponse { return .scripted(503) }
      throw lost
    }
    let body = ResourceBody(length: 99, source: BreakingBody(pattern(99)))
    let put = request(method: .put, body: body)
    if hasResponse {
      #expect(try await probe.retrying(.eager()).download(put).head.status.code == 503)
    } else {
      #expect(await failure { _ = try await probe.retrying(.eager()).download(put) }?.code == .connectionLost)
    }
    #expect(probe.count == 1)
  }

  @Test("a streamed body is sent again if the policy can create another one")
  func remade() async throws {
    let probe = RequestProbe { number, request throws(CacheError) in
      let sent = try await request.body?.collect()
      if number < 3 { throw lost }
      return .scripted(200, [:], sent ?? Data())
    }
    var policy = RetryPolicy.eager()
    policy.reopenBody = AsyncDelegate { _ in ResourceBody(length: 99, source: BreakingBody(pattern(99))) }
    let body = ResourceBody(length: 99, source: BreakingBody(pattern(99)))
    let response = try await probe.retrying(policy).download(request(method: .put, body: body))
    #expect(try await response.body.collect() == pattern(99))
    policy.reopenBody = AsyncDelegate { _ in nil }
    let other = RequestProbe { _, _ throws(CacheError) in throw lost }
    _ = await failure { _ = try await other.retrying(policy).download(request(method: .put, body: body)) }
    #expect(other.count == 1)
  }
}

@Suite("Retries that wait for a network")
struct RetryNetworkTests {
  private let clock = ManualClock()
  private let network = SwitchedNetwork()

  private var policy: RetryPolicy {
    var policy = RetryPolicy.exact(2)
    policy.network = network
    return policy
  }

  @Test("a retry uses no attempt without a network and continues at once when it is back")
  func back() async throws {
    let network = network
    network.set(false)
    let probe = RequestProbe { _, _ throws(CacheError) in
      if network.isReachable { return .scripted(200, [:], pattern(10)) }
      throw CacheError(.offline, reason: "no network is available")
    }
    let downloader = probe.retrying(policy, clock: clock)
    let task = Task { try await downloader.download(request()).body.collect() }
    await network.waits.arrived()
    #expect(probe.count == 1)
    network.set(true)
    #expect(try await task.value == pattern(10))
    #expect(probe.count == 2)
    #expect(clock.uptime == .zero)
  }

  @Test("a retry ends with the original error if no network becomes available in time")
  func limit() async throws {
    network.set(false)
    let probe = RequestProbe { _, _ throws(CacheError) in throw CacheError(.offline, reason: "no network is available") }
    let downloader = probe.retrying(policy, clock: clock)
    let task = Task { await failure { _ = try await downloader.download(request()) } }
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    let error = await task.value
    #expect(error?.code == .offline)
    #expect(error?.attempt == 1)
    #expect(probe.count == 1)
  }

  @Test("a cancelled retry ends at once")
  func cancelled() async throws {
    network.set(false)
    let probe = RequestProbe { _, _ throws(CacheError) in throw CacheError(.offline, reason: "no network is available") }
    let downloader = probe.retrying(policy, clock: clock)
    let task = Task { await failure { _ = try await downloader.download(request()) } }
    await network.waits.arrived()
    task.cancel()
    #expect(await task.value?.isCancellation == true)
    #expect(probe.count == 1)
    #expect(clock.pendingSleeps == 0)
  }

  @Test("a retry waits for its delay if the network is available")
  func reachable() async throws {
    let probe = RequestProbe { number, _ throws(CacheError) in
      if number == 1 { throw lost }
      return .scripted(200, [:], pattern(10))
    }
    let downloader = probe.retrying(policy, clock: clock)
    let task = Task { try await downloader.download(request()).body.collect() }
    await clock.sleepers(1)
    #expect(network.waits.arrivals == 0)
    clock.advance(by: .seconds(1))
    #expect(try await task.value == pattern(10))
  }
}
