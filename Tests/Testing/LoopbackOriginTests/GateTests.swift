#if Origin
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

@Suite("Gates and delays", .timeLimit(.minutes(30)))
struct GateTests {
  @Test("a response waits at a gate until the gate opens")
  func gate() async throws {
    try await withOrigin { origin in
      // Given
      let gate = Gate()
      origin.setRoute("/a", Route(Data("late".utf8), delivery: .gated(by: gate)))
      let client = try await origin.connect()

      // When
      async let response = client.get("/a")
      await gate.arrived()

      // Then
      #expect(gate.held == 1 && origin.counters.bytesSent == 0)
      gate.open()
      #expect(try await response.text == "late")
      #expect(try await client.get("/a").text == "late", "an open gate blocks no response")
      #expect(gate.arrivals == 2 && gate.held == 0)
    }
  }

  @Test("a gate admits the given number of responses, also in advance, and can be closed again")
  func turnstile() async throws {
    try await withOrigin { origin in
      let gate = Gate()
      origin.setRoute("/a", Route(Data("x".utf8), delivery: .gated(by: gate)))
      let (first, second) = (try await origin.connect(), try await origin.connect())
      async let one = first.get("/a")
      await gate.arrived(1)
      async let two = second.get("/a")
      await gate.arrived(2)

      gate.letThrough(1)
      #expect(try await one.text == "x")
      #expect(gate.held == 1)

      gate.letThrough(2)
      #expect(try await two.text == "x")
      #expect(try await first.get("/a").text == "x", "the second admission was left over")

      gate.letThrough(3)
      gate.close()
      async let held = first.get("/a")
      await gate.arrived(4)
      #expect(gate.held == 1, "closing revokes unused admissions")
      gate.open()
      #expect(try await held.status == 200)
    }
  }

  @Test(
    "a gate in the body lets the head and the first bytes pass",
    arguments: [
      (0, OriginFraming.contentLength), (300, .contentLength), (1000, .contentLength), (300, .chunked(of: 200)),
      (1000, .chunked(of: 200)),
    ])
  func bodyGate(offset: Int, framing: OriginFraming) async throws {
    try await withOrigin { origin in
      // Given
      let gate = Gate()
      origin.setRoute("/a", Route(pattern(1000), delivery: .init(bodyGate: gate, bodyGateOffset: offset, framing: framing)))
      let client = try await origin.connect()

      // When
      async let response = client.get("/a")
      await gate.arrived()

      // Then
      #expect(origin.counters(for: "/a").bodyBytesSent == offset)
      gate.open()
      #expect(try await Data(response.body) == pattern(1000))
    }
  }

  @Test("a closure can wait at a gate, and is cancelled when its client disconnects")
  func closures() async throws {
    try await withOrigin { origin in
      let (gate, cancelled) = (Gate(), Gate())
      origin.setRoute(
        "/a",
        Route { _ in
          await gate.pass()
          if Task.isCancelled { cancelled.open() }
          return OriginResponse(text: "passed")
        })
      let (patient, impatient) = (try await origin.connect(), try await origin.connect())
      async let response = patient.get("/a")
      await gate.arrived(1)
      try await impatient.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      await gate.arrived(2)

      await impatient.close()
      await cancelled.pass()
      #expect(gate.held == 1, "the abandoned closure has ended")

      gate.open()
      #expect(try await response.text == "passed")
    }
  }

  @Test("waiting for arrivals ends when the task is cancelled, before or during the wait", arguments: [true, false])
  func cancelledWait(before: Bool) async throws {
    let gate = Gate()
    let (started, go) = AsyncStream<Void>.makeStream()
    let task = Task {
      if before { try await Polling.until { Task.isCancelled } }
      go.finish()
      await gate.arrived(1)
      await gate.pass()
    }
    if !before { for await _ in started {} }
    task.cancel()

    try await task.value

    #expect(gate.arrivals == 1 && gate.held == 0)
  }

  @Test("delays postpone head and body by at least the given time")
  func delays() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("x".utf8), delivery: .init(headDelay: .milliseconds(30), bodyDelay: .milliseconds(40))))
      let client = try await origin.connect()
      let clock = ContinuousClock()

      let start = clock.now
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await client.head()
      let head = clock.now
      #expect(try await client.take(count: 1) == [120])
      let body = clock.now

      #expect(head - start >= .milliseconds(30))
      #expect(body - start >= .milliseconds(70))
    }
  }
}
#endif
