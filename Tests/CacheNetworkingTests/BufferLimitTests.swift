#if Origin
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import CacheNetworking

@Suite("Bodies that nobody reads", .timeLimit(.minutes(30))) struct BufferLimitTests {
  @Test("who is too far behind is given up, and who keeps up gets everything")
  func shed() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = 100_000
    configuration.joinLimit = 1000
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 50_000)
      fixture.origin.setRoute("/a", Route(pattern(120_000), delivery: delivery))
      let lazy = try await fixture.get("/a")
      let handle = DownloadTask()
      let busy = try await fixture.downloader.download(fixture.request("/a"), as: handle)
      var iterator = busy.body.makeAsyncIterator()
      var bytes = try await read(50_000, from: &iterator)
      gate.open()
      while let chunk = try await iterator.next() { bytes.append(chunk) }

      #expect(bytes == pattern(120_000))
      let error = await #expect(throws: CacheError.self) { try await lazy.body.collect() }
      #expect(error?.code == .readerTooSlow)
      #expect(error?.reason.contains("100000") == true)
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("the last one that is given up stops the transfer")
  func stopped() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = 50_000
    configuration.joinLimit = 0
    try await Fixture.run(configuration) { fixture async throws in
      let ends = Recorder<CacheError.Code?>()
      fixture.downloader.delegate.onCompletion.delegate(on: ends) { (ends, end) in ends.record(end.error?.code) }
      // The body waits for its reader to have the head: it is the body that nobody reads.
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(5_000_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1)))
      let lazy = try await fixture.get("/a")
      gate.open()

      #expect(await ends.wait(for: 1) == [.cancelled])

      let error = await #expect(throws: CacheError.self) { try await lazy.body.collect() }
      #expect(error?.code == .readerTooSlow)
      fixture.origin.setRoute("/b", Route(pattern(10)))
      #expect(try await fixture.get("/b").body.collect() == pattern(10))
    }
  }

  @Test("a chunk that is larger than the limit is no reason to give up who waits for it")
  func largeChunk() {
    var log = TransferLog(joinLimit: 0)
    let told = Recorder<Int>()
    let waiting = log.join(
      .push(
        { (event) in
          if case .data(let data) = event { told.record(data.count) }
        }, isDraining: false))
    let lazy = log.join(.pull(nil))
    log.receive(head: HTTPResponse(status: .ok))
    log.receive(Data(count: 10))
    // The first takes what there is, and waits for more.
    for wakeUp in log.wakeUps() {
      if case .drain(let token, let callback) = wakeUp { while let event = log.nextInTurn(for: token) { callback(event) } }
    }
    log.receive(Data(count: 5_000))
    #expect(log.shed(beyond: 1_000) == [lazy].compactMap { $0 })
    for wakeUp in log.wakeUps() {
      if case .drain(let token, let callback) = wakeUp { while let event = log.nextInTurn(for: token) { callback(event) } }
    }
    #expect(told.values == [10, 5_000])
    #expect(waiting != nil && log.activeReaders == 1)
  }

  @Test("without a limit everything is held")
  func unlimited() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = nil
    try await Fixture.run(configuration) { fixture async throws in
      let ends = Recorder<CacheError.Code?>()
      fixture.downloader.delegate.onCompletion.delegate(on: ends) { (ends, end) in ends.record(end.error?.code) }
      fixture.origin.setRoute("/a", Route(pattern(3_000_000)))
      let lazy = try await fixture.get("/a")
      #expect(await ends.wait(for: 1) == [nil])
      #expect(try await lazy.body.collect() == pattern(3_000_000))
    }
  }
}
#endif
