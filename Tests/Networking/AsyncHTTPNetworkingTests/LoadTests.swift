#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("async-http-client under load", .timeLimit(.minutes(30)))
struct LoadTests {
  @Test("requests beyond the connection limit wait and report the time")
  func queued() async throws {
    try await Fixture.run(.init { $0.connectionsPerHost = 2 }) { fixture in
      let gate = Gate()
      fixture.origin.setRoute("/", Route(Data("x".utf8), delivery: .gated(by: gate)))
      let request = try fixture.request("/")
      // The loop runs one task after the other, so the next one finds all requests in the queue.
      let loop = try #require(fixture.downloader.preferredExecutor)
      let tasks = (0..<50).map { _ in
        Task(executorPreference: loop) {
          let response = try await fixture.downloader.download(request)
          _ = try await response.body.collect()
          return response.metrics()
        }
      }
      await gate.arrived(2)
      await Task(executorPreference: loop) {}.value
      gate.open()
      var queued = 0
      for task in tasks where try await task.value.queued != nil { queued += 1 }
      #expect(queued == 48)
      #expect(fixture.origin.counters.connectionsAccepted <= 4)
    }
  }

  @Test("a request that is cancelled in the queue uses no connection")
  func cancelledInQueue() async throws {
    try await Fixture.run(.init { $0.connectionsPerHost = 1 }) { fixture in
      let gate = Gate()
      fixture.origin.setRoute("/held", Route(Data("held".utf8), delivery: .gated(by: gate)))
      fixture.origin.setRoute("/next", Route(Data("next".utf8)))
      let (held, next) = (try fixture.request("/held"), try fixture.request("/next"))
      let first = Task { try await fixture.downloader.download(held).body.collect() }
      await gate.arrived()
      let waiting = Task { await fixture.failure(of: next) }
      waiting.cancel()
      #expect(await waiting.value?.isCancellation == true)
      gate.open()
      #expect(try await first.value == Data("held".utf8))
      #expect(await fixture.failure(of: next) == nil)
      #expect(fixture.origin.counters(for: "/next").requests == 1)
    }
  }

  @Test("a queued request fails if no other request makes progress for too long")
  func stuckQueue() async throws {
    try await Fixture.run(.init { $0.connectionsPerHost = 1 }) { fixture in
      let gate = Gate()
      fixture.origin.setRoute("/held", Route(pattern(200_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
      let unread = try await fixture.get("/held")
      let error = await fixture.failure(of: try fixture.request("/held", idleTimeout: .milliseconds(100)))
      #expect(error?.code == .timedOut)
      unread.body.source.cancel()
      gate.open()
    }
  }

  @Test("the server waits with a large body for a slow reader")
  func backPressure() async throws {
    try await Fixture.run { fixture in
      let size = 2 * SocketBuffers.limit + (40 << 20)
      fixture.origin.setRoute("/large", Route(Data(count: size)))
      let response = try await fixture.get("/large")
      var iterator = response.body.makeAsyncIterator()
      var received = 0
      var ahead = 0
      while let chunk = try await iterator.next() {
        received += chunk.count
        // The connection's buffers lie between the origin's count and the reader's.
        ahead = max(ahead, fixture.origin.counters(for: "/large").bodyBytesSent - received)
        if received < 8 << 20 { for _ in 0..<100 { await Task.yield() } }
      }
      #expect(received == size)
      #expect(ahead < SocketBuffers.limit + (12 << 20))
    }
  }

  #if os(Linux)
  // In a separate process, because descriptors are counted per process.
  @Test("5,000 requests, some of them cut, reset, refused or cancelled, leak no descriptor")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      func descriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
      // The first pass creates everything that is created once per process.
      try await ask(times: 20)
      let before = try descriptors()
      try await ask(times: 500)
      let after = try descriptors()
      guard after <= before + 16 else { throw CacheError(.other, reason: "\(before) descriptors, then \(after)") }
    }
  }
  #endif
}

#if os(Linux)
/// Sends the given number of requests from ten tasks each, with a downloader and an origin that are released afterwards.
private func ask(times: Int) async throws {
  try await Fixture.run { fixture in
    fixture.origin.setRoute("/good", Route(pattern(2_000)))
    fixture.origin.setRoute("/cut", Route(pattern(2_000), delivery: .fault(.cut(afterBodyBytes: 100))))
    fixture.origin.setRoute("/reset", .fault(.resetBeforeHead))
    fixture.origin.setRoute("/unread", Route(pattern(500_000)))
    let paths = ["/good", "/good", "/good", "/good", "/good", "/good", "/good", "/cut", "/reset", "/unread"]
    let requests = try paths.map { try fixture.request($0) }
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<10 {
        group.addTask {
          for index in 0..<times {
            let request = requests[(worker + index) % requests.count]
            guard let response = try? await fixture.downloader.download(request) else { continue }
            if request.head.path != "/unread" { _ = try? await response.body.collect() }
          }
        }
      }
    }
    await fixture.downloader.close()
    await fixture.origin.waitForOpenConnections()
    let asked = fixture.origin.counters.requests
    guard asked >= 10 * times else { throw CacheError(.other, reason: "\(asked) requests of \(10 * times) arrived") }
  }
}
#endif
#endif
