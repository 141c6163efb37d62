#if Origin
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

@Suite("Start and stop", .timeLimit(.minutes(30)))
struct LifecycleTests {
  @Test("a stopped origin has closed its connections and refuses new ones, and a second stop does nothing")
  func stop() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(Data("x".utf8)))
    let (idle, used) = (try await origin.connect(), try await origin.connect())
    #expect(try await used.get("/a").text == "x")
    #expect(try await idle.get("/a").text == "x")

    await origin.stop()

    #expect(origin.counters.openConnections == 0 && origin.counters.requests == 2)
    #expect(try await idle.rest().bytes.isEmpty)
    #expect(try await used.rest().bytes.isEmpty)
    await #expect(throws: RawClient.Failure.self) { try await RawClient(port: origin.port) }
    await origin.stop()
    await #expect(throws: RawClient.Failure.self) { try await RawClient(port: origin.port) }
  }

  #if os(Linux)
  @Test("the port of a stopped origin stays reserved")
  func reserved() async throws {
    let origin = try await OriginServer.start()
    await origin.stop()
    #expect(!RawClient.canBind(origin.port))
  }
  #endif

  @Test("concurrent stops all return and end waiting responses")
  func concurrentStops() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    origin.setRoute("/a", Route(Data("x".utf8), delivery: .gated(by: gate)))
    let client = try await origin.connect()
    try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
    await gate.arrived()

    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { await origin.stop() } }
    }

    await gate.emptied()
    #expect(gate.held == 0 && origin.counters.openConnections == 0)
    gate.open()
    #expect(try await client.rest().bytes.isEmpty)
  }

  @Test("an origin can start on the port of a stopped one, even after connections ended there")
  func restart() async throws {
    let first = try await OriginServer.start()
    let client = try await first.connect()
    _ = try await client.get("/a")
    await first.stop()

    let second = try await OriginServer.start(port: first.port)

    #expect(second.port == first.port && second.baseURL == first.baseURL)
    second.setRoute("/a", Route(Data("again".utf8)))
    #expect(try await second.connect().get("/a").text == "again")
    await second.stop()
  }

  @Test("an occupied port is an error with the port")
  func taken() async throws {
    try await withOrigin { origin in
      let error = await #expect(throws: OriginError.self) { try await OriginServer.start(port: origin.port) }
      #expect(error?.port == origin.port)
      #expect(error?.description.contains("127.0.0.1, port \(origin.port)") == true)
    }
  }

  @Test("an origin that is released without a stop closes by itself")
  func dropped() async throws {
    // Reserved beyond the end of the origin: otherwise another test's origin could get the port.
    let reserved = try ReservedPort()
    let port = reserved.number
    var origin: OriginServer? = try await OriginServer.start(port: port)
    let client = try await RawClient(port: port)
    #expect(try await client.get("/a").status == 404)
    #expect(origin?.port == port)

    origin = nil

    #expect(try await client.rest().bytes.isEmpty)
    // The connection is closed after the listening socket, on the same thread.
    await #expect(throws: RawClient.Failure.self) { try await RawClient(port: port) }
    withExtendedLifetime(reserved) {}
  }

  @Test("a route that retains its origin is released when the origin stops")
  func noCycle() async throws {
    final class Witness: Sendable {
      let released: Gate
      init(_ released: Gate) { self.released = released }
      deinit { released.open() }
    }
    let released = Gate()
    do {
      let origin = try await OriginServer.start()
      let witness = Witness(released)
      origin.setRoute(
        "/a", Route { [origin, witness] _ in OriginResponse(text: "\(origin.counters.requests) \(witness.released.held)") })
      #expect(try await origin.connect().get("/a").text == "1 0")
      await origin.stop()
    }
    // If the closure were retained, this would wait until the time limit.
    await released.pass()
    #expect(released.arrivals == 1)
  }
}
#endif
