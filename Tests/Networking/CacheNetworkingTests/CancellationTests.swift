#if Origin
import CacheCore
@testable import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("Cancellation", .timeLimit(.minutes(30))) struct CancellationTests {
  /// Starts a download in a task that returns its result.
  private func start(
    _ fixture: Fixture, _ path: String = "/a", as handle: DownloadTask
  ) async throws -> Task<Result<Data, CacheError>, Never> {
    let request = try fixture.request(path)
    let task = Task { () -> Result<Data, CacheError> in
      do throws(CacheError) {
        return .success(try await fixture.downloader.download(request, as: handle).body.collect())
      } catch {
        return .failure(error)
      }
    }
    #expect(await handle.started)
    return task
  }

  private func isCancelled(_ result: Result<Data, CacheError>) -> Bool {
    if case .failure(let error) = result { return error.isCancellation }
    return false
  }

  @Test("cancelling one of several equal downloads does not affect the others")
  func oneOfSeveral() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: .gated(by: gate)))
      let handles = (0..<3).map { _ in DownloadTask() }
      var tasks: [Task<Result<Data, CacheError>, Never>] = []
      for handle in handles { tasks.append(try await start(fixture, as: handle)) }
      await gate.arrived(3)

      handles[1].cancel()
      handles[1].cancel()

      #expect(isCancelled(await tasks[1].value))
      gate.open()
      #expect(try await tasks[0].value.get() == pattern(5000))
      #expect(try await tasks[2].value.get() == pattern(5000))
      #expect(handles.map(\.isCancelled) == [false, true, false])
    }
  }

  @Test("a cancellation stops the transfer, and a new request starts a new one")
  func lastOneStops() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: .gated(by: gate)))
      let handles = [DownloadTask(), DownloadTask()]
      let first = try await start(fixture, as: handles[0])
      let second = try await start(fixture, as: handles[1])
      await gate.arrived(2)

      for handle in handles { handle.cancel() }
      #expect(isCancelled(await first.value))
      #expect(isCancelled(await second.value))
      await fixture.origin.waitForOpenConnections(atMost: 0)

      gate.open()
      #expect(try await fixture.get("/a").body.collect() == pattern(5000))
      #expect(fixture.origin.counters(for: "/a").requests == 3)
    }
  }

  @Test("an equal request right after a cancellation is not cancelled")
  func restartAtOnce() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: .gated(by: gate)))
      for round in 1...20 {
        let handle = DownloadTask()
        let old = try await start(fixture, as: handle)
        await gate.arrived(round * 2 - 1)
        handle.cancel()
        let next = DownloadTask()
        let new = try await start(fixture, as: next)
        await gate.arrived(round * 2)
        gate.letThrough(2)
        #expect(isCancelled(await old.value))
        #expect(try await new.value.get() == pattern(5000))
        gate.close()
      }
    }
  }

  @Test("a cancelled task stops waiting for the head")
  func taskCancelled() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: .gated(by: gate)))
      let task = try await start(fixture, as: DownloadTask())
      await gate.arrived()

      task.cancel()

      #expect(isCancelled(await task.value))
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("a cancelled task stops waiting for the body, and its error is final")
  func bodyCancelled() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 100)))
      let response = try await fixture.get("/a")
      let read = Recorder<Int>()
      let reader = Task { () -> Result<Void, any Error> in
        do {
          for try await chunk in response.body { read.record(chunk.count) }
          return .success(())
        } catch {
          return .failure(error)
        }
      }
      await read.wait(for: 1)

      reader.cancel()

      await #expect(throws: CacheError.self) { try await reader.value.get() }
      await #expect(throws: CacheError.self) { try await response.body.source.next() }
      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("releasing a body stops the transfer")
  func bodyDropped() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: OriginDelivery(bodyGate: gate)))

      #expect(try await fixture.get("/a").head.status == .ok)

      await fixture.origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("cancelling an unread body stops only its own transfer")
  func bodyRejected() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5000), delivery: OriginDelivery(bodyGate: gate)))
      let rejected = try await fixture.get("/a")
      let kept = try await fixture.get("/a")

      rejected.body.source.cancel()
      gate.open()

      #expect(try await kept.body.collect() == pattern(5000))
      await #expect(throws: CacheError.self) { try await rejected.body.collect() }
    }
  }

  @Test("a cancellation before the start sends no request")
  func beforeStart() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      fixture.origin.setRoute("/b", Route(pattern(5)))
      let handle = DownloadTask()
      handle.cancel()

      await #expect(throws: CacheError.self) { try await fixture.downloader.download(fixture.request("/a"), as: handle) }
      _ = try await fixture.get("/b").body.collect()

      #expect(await handle.started == false)
      #expect(handle.sessionTask == nil)
      #expect(fixture.origin.requests.map(\.path) == ["/b"])
    }
  }

  #if os(Linux)
  // In a separate process, because Foundation traps if the delegate decides on the redirect.
  @Test("a redirect that arrives after the cancellation ends nothing but its own transfer")
  func redirectAfterCancellation() async {
    await #expect(processExitsWith: .success) {
      let gate = Gate()
      let origin = try await OriginServer.start()
      var redirect = OriginResponse.redirect(to: "/b")
      redirect.delivery = .gated(by: gate)
      origin.setRoute("/a", Route(redirect))
      origin.setRoute("/b", Route(pattern(5)))
      let downloader = SessionDownloader()
      let handle = DownloadTask()
      let request = DownloadRequest(head: try HTTPRequest(resource: origin.url("/a")))
      let task = Task { try await downloader.download(request, as: handle) }
      await gate.arrived()
      guard let queue = handle.sessionTask?.queue else { throw CacheError(.other, reason: "no transfer") }

      // Hold the session's queue until the cancellation and then the redirect wait in it.
      let hold = DispatchSemaphore(value: 0)
      queue.addOperation { hold.wait() }
      handle.cancel()
      gate.open()
      try await Polling.until { queue.operationCount >= 3 }
      hold.signal()

      guard case .failure(let error as CacheError) = await task.result, error.isCancellation else {
        throw CacheError(.other, reason: "not cancelled")
      }
      let next = DownloadRequest(head: try HTTPRequest(resource: origin.url("/b")))
      guard try await downloader.download(next).body.collect() == pattern(5) else { throw CacheError(.other, reason: "no body") }
      await origin.stop()
    }
  }
  #endif

  @Test("a task that is already cancelled sends no request")
  func cancelledTask() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let request = try fixture.request("/a")
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return await fixture.failure(of: request)
      }

      #expect(await task.value?.isCancellation == true)
      _ = try await fixture.get("/b").body.collect()
      #expect(fixture.origin.counters(for: "/a").requests == 0)
    }
  }

  @Test("a cancellation during the collection of a request body cancels that body")
  func whileCollecting() async throws {
    final class Endless: ResourceBody.Source {
      let asked = Recorder<Void>()
      private let continuation = Lock<(CheckedContinuation<Void, Never>?, Bool)>((nil, false))
      var trailers: HTTPFields? { nil }
      func next() async throws(CacheError) -> Data? {
        asked.record(())
        await withCheckedContinuation { new in
          let isCancelled = continuation.withLock { state in
            if !state.1 { state.0 = new }
            return state.1
          }
          if isCancelled { new.resume() }
        }
        throw CacheError(.connectionLost, reason: "the source was stopped")
      }
      func cancel() {
        let waiting = continuation.withLock { state in
          defer { state = (nil, true) }
          return state.0
        }
        waiting?.resume()
      }
    }
    try await Fixture.run { fixture async throws in
      let source = Endless()
      let handle = DownloadTask()
      let request = try fixture.request("/a", method: .put, body: ResourceBody(length: nil, source: source))
      let task = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(request, as: handle)
          return nil
        } catch { return error }
      }
      await source.asked.wait(for: 1)

      handle.cancel()

      #expect(await task.value?.isCancellation == true)
      #expect(fixture.origin.counters.requests == 0)
    }
  }

  @Test("a handle serves one download only")
  func handleTwice() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5)))
      let handle = DownloadTask()
      _ = try await fixture.downloader.download(fixture.request("/a"), as: handle).body.collect()

      let error = await #expect(throws: CacheError.self) {
        try await fixture.downloader.download(fixture.request("/a"), as: handle)
      }
      #expect(error?.code == .misuse)
    }
  }

  @Test("cancelling by URL does not affect other URLs")
  func byURL() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      for path in ["/a", "/b"] { fixture.origin.setRoute(path, Route(pattern(50), delivery: .gated(by: gate))) }
      let a = try await start(fixture, "/a", as: DownloadTask())
      let b = try await start(fixture, "/b", as: DownloadTask())
      await gate.arrived(2)

      #expect(fixture.downloader.cancel(url: fixture.origin.url("/a")) == 1)
      #expect(fixture.downloader.cancel(url: fixture.origin.url("/c")) == 0)

      #expect(isCancelled(await a.value))
      gate.open()
      #expect(try await b.value.get() == pattern(50))
    }
  }

  @Test("a downloader is usable after all its downloads were cancelled")
  func all() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      for path in ["/a", "/b"] { fixture.origin.setRoute(path, Route(pattern(50), delivery: .gated(by: gate))) }
      let a = try await start(fixture, "/a", as: DownloadTask())
      let b = try await start(fixture, "/b", as: DownloadTask())
      await gate.arrived(2)

      #expect(fixture.downloader.cancelAll() == 2)
      #expect(isCancelled(await a.value))
      #expect(isCancelled(await b.value))

      gate.open()
      #expect(try await fixture.get("/a").body.collect() == pattern(50))
    }
  }

  @Test("each of 300 downloads that are cancelled at different times ends once")
  func storm() async throws {
    // Foundation on Linux sometimes stops watching a socket. Such a download ends with its idle timeout.
    var configuration = SessionDownloader.Configuration()
    configuration.idleTimeout = .seconds(90)
    try await Fixture.run(configuration) { fixture async throws in
      for number in 0..<10 { fixture.origin.setRoute("/\(number)", Route(pattern(40_000))) }
      var (ended, lost) = (0, 0)
      try await withThrowingTaskGroup(of: Result<Data, CacheError>?.self) { group in
        for number in 0..<300 {
          let request = try fixture.request("/\(number % 10)")
          let handle = DownloadTask()
          group.addTask {
            do throws(CacheError) {
              return .success(try await fixture.downloader.download(request, as: handle).body.collect())
            } catch {
              return .failure(error)
            }
          }
          if number % 3 == 0 {
            group.addTask {
              handle.cancel()
              return nil
            }
          }
        }
        for try await result in group {
          ended += 1
          switch result {
          case .success(let body)?: #expect(body == pattern(40_000))
          case .failure(let error)? where error.code == .timedOut: lost += 1
          case .failure(let error)?: #expect(error.isCancellation)
          case nil: break
          }
        }
      }
      #expect(ended == 400 && lost < 10)
    }
  }
}
#endif
