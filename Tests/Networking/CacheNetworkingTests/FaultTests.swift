#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

// A close in the middle of the header section is not tested here, because Foundation on Linux traps on it.
@Suite("Server and network failures", .timeLimit(.minutes(30))) struct FaultTests {
  @Test(
    "each fault has its own error",
    arguments: [
      (OriginDelivery(fault: .cut(afterBodyBytes: 400)), CacheError.Code.truncatedBody),
      (OriginDelivery(fault: .cut(afterBodyBytes: 0)), .truncatedBody),
      (OriginDelivery(framing: .chunked(of: 100), fault: .cut(afterBodyBytes: 450)), .truncatedBody),
      (OriginDelivery(framing: .claimedLength(2000)), .truncatedBody),
      (OriginDelivery(fault: .resetBeforeHead), .connectionLost),
      (OriginDelivery(fault: .closeBeforeHead), .connectionLost),
      (OriginDelivery(fault: .garbage), .malformedResponse),
    ])
  func faults(delivery: OriginDelivery, expected: CacheError.Code) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(1000), delivery: delivery))

      let error = await fixture.failure(of: try fixture.request("/a"))

      #expect(error?.code == expected)
      #expect(error?.isUnreachable == true)
    }
  }

  @Test(
    "a status below 100, and one that is not three digits, is an error", arguments: ["099", "000", "001", "99", "1000", "-1"])
  func invalidStatus(text: String) async throws {
    try await Fixture.run { fixture async throws in
      for rest in ["Content-Length: 2\r\n\r\nok", "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"] {
        fixture.origin.setRoute("/a", .fault(.raw(Data("HTTP/1.1 \(text) X\r\n\(rest)".utf8))))

        let error = await fixture.failure(of: try fixture.request("/a"))

        #expect(error?.code == .malformedResponse)
      }
    }
  }

  @Test("a truncated body reports both numbers after the received bytes")
  func truncatedNumbers() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(1000), delivery: .fault(.cut(afterBodyBytes: 400))))
      let response = try await fixture.get("/a")
      var iterator = response.body.makeAsyncIterator()

      #expect(try await read(400, from: &iterator) == pattern(1000).prefix(400))
      let error = await #expect(throws: CacheError.self) { _ = try await response.body.source.next() }

      #expect(error?.code == .truncatedBody)
      #expect(error?.reason.contains("400 of 1000") == true)
      await #expect(throws: CacheError.self, "an error is final") { _ = try await response.body.source.next() }
    }
  }

  @Test("a reset in the middle of the body is a lost connection")
  func resetInBody() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 300, fault: .reset(afterBodyBytes: 400))
      fixture.origin.setRoute("/a", Route(pattern(1000), delivery: delivery))
      let response = try await fixture.get("/a")
      var iterator = response.body.makeAsyncIterator()
      _ = try await read(300, from: &iterator)

      gate.open()
      let error = await #expect(throws: CacheError.self) { try await response.body.collect() }

      #expect(error?.code == .connectionLost)
    }
  }

  @Test("a body ends at its announced length, even if the server sends more bytes")
  func claimsLess() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(1000), delivery: OriginDelivery(framing: .claimedLength(400))))

      #expect(try await fixture.get("/a").body.collect() == pattern(1000).prefix(400))
    }
  }

  @Test("a refused connection is reported")
  func refused() async throws {
    try await Fixture.run { fixture async throws in
      // Not the port of a stopped origin, because the system may assign it to the next one.
      let request = DownloadRequest(head: try HTTPRequest(resource: try await fixture.origin.refusingURL()))

      let error = await fixture.failure(of: request)

      #expect(error?.code == .connectionRefused)
      #expect(error?.reason == "connection refused")
      #expect(error?.underlying != nil)
      #expect(error?.url == nil, "the caller knows the URL")
    }
  }

  @Test("a host name that does not resolve is reported")
  func unresolved() async throws {
    let downloader = SessionDownloader()
    defer { downloader.close() }
    let head = try HTTPRequest(resource: #require(URL(string: "http://no-such-host.invalid/")))
    // A long timeout, because a resolver may wait long for a silent name server.
    let request = DownloadRequest(head: head, idleTimeout: .seconds(600))

    let error = await #expect(throws: CacheError.self) { try await downloader.download(request) }

    #expect(error?.code == .hostNotFound)
    #expect(error?.reason == "the host name does not resolve")
  }

  @Test(
    "silence before the head or in the body times out",
    arguments: [OriginFault.stallBeforeHead, .stall(afterBodyBytes: 100)])
  func stalls(fault: OriginFault) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(1000), delivery: .fault(fault)))

      let error = await fixture.failure(of: try fixture.request("/a", idleTimeout: .seconds(1)))

      #expect(error?.code == .timedOut)
    }
  }

  @Test("a damaged content coding is an error of the response")
  func damagedCoding() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(Data("no gzip".utf8), fields: [.contentEncoding: "gzip"]))

      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .damagedContentCoding)
    }
  }

  @Test("a downloader is usable after a failure")
  func afterwards() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", .fault(.garbage))
      fixture.origin.setRoute("/b", Route(pattern(10)))
      #expect(await fixture.failure(of: try fixture.request("/a")) != nil)

      #expect(try await fixture.get("/b").body.collect() == pattern(10))
    }
  }
}
#endif
