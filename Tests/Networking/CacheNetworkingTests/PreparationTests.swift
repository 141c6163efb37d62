#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Preparation of a transfer", .timeLimit(.minutes(30))) struct PreparationTests {
  /// A body of `count` chunks of 100 bytes, which counts the chunks that are read.
  private final class CountedBody: ResourceBody.Source {
    private let count: Int
    private let gate: Gate?
    private let state = Lock((taken: 0, isCancelled: false))

    init(_ count: Int, gate: Gate? = nil) { (self.count, self.gate) = (count, gate) }

    var taken: Int { state.withLock { $0.taken } }
    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    var trailers: HTTPFields? { nil }

    func cancel() { state.withLock { $0.isCancelled = true } }

    func next() async throws(CacheError) -> Data? {
      await gate?.pass()
      let (isCancelled, isTaken) = state.withLock { state in
        if state.taken < count { state.taken += 1 } else { return (state.isCancelled, false) }
        return (state.isCancelled, true)
      }
      if isCancelled { throw .cancelled }
      return isTaken ? pattern(100) : nil
    }
  }

  /// A system whose caller also uses the downloader.
  private final class BusySystem: BackgroundTime {
    let log = Recorder<String>()
    private let downloader = Lock<SessionDownloader?>(nil)

    func serve(_ downloader: SessionDownloader?) { self.downloader.withLock { $0 = downloader } }

    func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      log.record("begin")
      downloader.withLock { $0 }?.cancelAll()
      return { [log] in log.record("end") }
    }
  }

  @Test("a download in preparation uses the old session after a replacement, and the session ends after it")
  func replaced() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.userAgent = "Old/1"
    try await Fixture.run(configuration) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(10)))
      let gate = Gate()
      let body = ResourceBody(length: nil, source: CountedBody(3, gate: gate))
      let request = try fixture.request("/a", method: .post, body: body)
      let load = Task { try await fixture.downloader.download(request).body.collect() }
      await gate.arrived()

      configuration.userAgent = "New/1"
      fixture.downloader.configuration = configuration
      #expect(fixture.sessionEnds.values.isEmpty)
      gate.open()

      #expect(try await load.value == pattern(10))
      #expect(fixture.origin.requests.map { $0.fields[.userAgent] } == ["Old/1"])
      #expect(await fixture.transferEnds.wait(for: 1).map(\.error) == [nil])
      #expect(await fixture.sessionEnds.wait(for: 1) == [true])
    }
  }

  @Test("a download in preparation sends nothing if the downloader is closed")
  func closed() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let request = try fixture.request("/a", method: .post, body: ResourceBody(length: nil, source: CountedBody(1, gate: gate)))
      let load = Task { await fixture.failure(of: request) }
      await gate.arrived()
      fixture.downloader.replaceSession()
      fixture.downloader.close()
      gate.open()
      #expect(await load.value?.code == .closed)
      #expect(fixture.origin.requests.isEmpty)
    }
  }

  @Test("background time is requested where the system may call the downloader")
  func reentrant() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(pattern(10)))
    let system = BusySystem()
    let downloader = SessionDownloader(backgroundTime: system)
    system.serve(downloader)
    let request = DownloadRequest(head: try HTTPRequest(resource: origin.url("/a")))
    #expect(try await downloader.download(request).body.collect() == pattern(10))
    #expect(await system.log.wait(for: 2) == ["begin", "end"])
    system.serve(nil)
    downloader.close()
    await origin.stop()
  }

  @Test("background time is held exactly while transfers run")
  func whileRunning() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    origin.setRoute("/a", Route(pattern(10), delivery: .gated(by: gate)))
    let system = BusySystem()
    let downloader = SessionDownloader(backgroundTime: system)
    let request = DownloadRequest(head: try HTTPRequest(resource: origin.url("/a")))
    let first = Task { try await downloader.download(request).body.collect() }
    await gate.arrived()
    let handle = DownloadTask()
    let second = Task { try await downloader.download(request, as: handle).body.collect() }
    #expect(await handle.started)
    #expect(system.log.values == ["begin"])
    gate.open()
    #expect(try await first.value == pattern(10))
    #expect(try await second.value == pattern(10))
    #expect(await system.log.wait(for: 2) == ["begin", "end"])
    downloader.close()
    await origin.stop()
  }

  private struct InvalidNumber: Sendable {
    let setting: String
    let value: String
    let change: @Sendable (inout SessionDownloader.Configuration) -> Void

    init(_ setting: String, _ value: String, _ change: @escaping @Sendable (inout SessionDownloader.Configuration) -> Void) {
      (self.setting, self.value, self.change) = (setting, value, change)
    }
  }

  private static let invalidNumbers = [
    InvalidNumber("connectionsPerHost", "0") { $0.connectionsPerHost = 0 },
    InvalidNumber("connectionsPerHost", "-1") { $0.connectionsPerHost = -1 },
    InvalidNumber("idleTimeout", "0.0 seconds") { $0.idleTimeout = .zero },
    InvalidNumber("bufferLimit", "0") { $0.bufferLimit = 0 },
    InvalidNumber("uploadMemoryLimit", "-1") { $0.uploadMemoryLimit = -1 },
    InvalidNumber("proxy.http.port", "0") { $0.proxy = .settings(ProxySettings(http: .init(host: "p", port: 0))) },
    InvalidNumber("proxy.https.port", "65536") { $0.proxy = .settings(ProxySettings(https: .init(host: "p", port: 65_536))) },
  ]

  @Test("with a number out of range, each download fails", arguments: invalidNumbers.indices)
  func invalidNumber(_ index: Int) async throws {
    let number = Self.invalidNumbers[index]
    var configuration = SessionDownloader.Configuration()
    number.change(&configuration)
    try await Fixture.run(configuration) { fixture async throws in
      for _ in 0..<2 {
        let error = await fixture.failure(of: try fixture.request("/a"))
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.reason.contains("'\(number.setting)'") == true && error?.reason.hasSuffix("not \(number.value)") == true)
      }
      #expect(fixture.origin.requests.isEmpty)
    }
  }

  @Test("a GET with a body is refused before the body is collected", arguments: [(nil, 1), (5_000, 0)] as [(Int64?, Int)])
  func refused(_ length: Int64?, _ taken: Int) async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.uploadMemoryLimit = 10
    configuration.uploadFolder = URL(fileURLWithPath: "/nowhere/at/all")
    try await Fixture.run(configuration) { fixture async throws in
      let source = CountedBody(50)
      let error = await fixture.failure(of: try fixture.request("/a", body: ResourceBody(length: length, source: source)))
      #expect(error?.code == .invalidConfiguration)
      #expect(source.taken == taken && source.isCancelled)
      #expect(fixture.origin.requests.isEmpty)
    }
  }

  @Test("a GET with an empty body is sent", arguments: [nil, 0] as [Int64?])
  func empty(_ length: Int64?) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(10)))
      let request = try fixture.request("/a", body: ResourceBody(length: length, source: CountedBody(0)))
      #expect(await fixture.failure(of: request) == nil)
      #expect(fixture.origin.requests.count == 1)
    }
  }
}
#endif
