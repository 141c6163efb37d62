#if Origin
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import CacheNetworking

@Suite("Unread bodies", .timeLimit(.minutes(30))) struct BufferLimitTests {
  @Test("a reader that exceeds the buffer limit fails, and an equal request with a fast reader completes")
  func tooFarBehind() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = 100_000
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 50_000)
      fixture.origin.setRoute("/a", Route(pattern(120_000), delivery: delivery))
      let lazy = try await fixture.get("/a")
      let busy = try await fixture.get("/a")
      var iterator = busy.body.makeAsyncIterator()
      var bytes = try await read(50_000, from: &iterator)
      gate.open()
      while let chunk = try await iterator.next() { bytes.append(chunk) }

      #expect(bytes == pattern(120_000))
      // The origin serves each body at its own pace, so the second one may end later.
      try await Polling.until { lazy.metrics().bytesOnWire > 100_000 }
      let error = await #expect(throws: CacheError.self) { try await lazy.body.collect() }
      #expect(error?.code == .readerTooSlow)
      #expect(error?.reason.contains("100000") == true)
    }
  }

  @Test("a reader that exceeds the buffer limit stops the transfer")
  func stopped() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = 50_000
    try await Fixture.run(configuration) { fixture async throws in
      // The body is sent after its reader has received the head, so that only the body stays unread.
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5_000_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1)))
      let lazy = try await fixture.get("/a")
      gate.open()

      #expect(await fixture.transferEnds.wait(for: 1).map(\.error) == [.cancelled])

      let error = await #expect(throws: CacheError.self) { try await lazy.body.collect() }
      #expect(error?.code == .readerTooSlow)
      fixture.origin.setRoute("/b", Route(pattern(10)))
      #expect(try await fixture.get("/b").body.collect() == pattern(10))
    }
  }

  @Test("a waiting reader receives a chunk of any size")
  func largeChunk() async {
    let assembler = ResponseAssembler(method: .get, startedAt: .zero)
    let state = Lock(SessionDataTask.State(assembler: assembler, idleness: Idleness(limit: .seconds(60), at: .zero)))
    state.withLock { state in
      state.buffer.receive(head: HTTPResponse(status: .ok))
      _ = state.buffer.next()
    }
    let event = await withResumption { continuation in
      let delivery = state.withLock { state in
        _ = state.buffer.wait(continuation)
        return state.deliver(Data(count: 5_000), limit: 1_000)
      }
      #expect(!delivery.stops)
      delivery.wakeUp?()
    }
    guard case .data(let data) = event, data.count == 5_000 else {
      Issue.record("\(event)")
      return
    }
    // No reader waits for the next chunk.
    #expect(state.withLock { $0.deliver(Data(count: 5_000), limit: 1_000) }.stops)
    guard case .end(let error?)? = state.withLock({ $0.buffer.next() }), error.code == .readerTooSlow else {
      Issue.record("the reader received no end")
      return
    }
  }

  @Test("without a limit, all bytes are buffered")
  func unlimited() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = nil
    try await Fixture.run(configuration) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(3_000_000)))
      let lazy = try await fixture.get("/a")
      #expect(await fixture.transferEnds.wait(for: 1).map(\.error) == [nil])
      #expect(try await lazy.body.collect() == pattern(3_000_000))
    }
  }
}
#endif
