import CacheCore
import Foundation
import HTTPTypes
import Testing

@testable import CacheNetworking

@Suite("Background time") struct BackgroundHoldTests {
  /// A system that grants background time and reclaims it when the test says so.
  private final class System: BackgroundTime {
    let log = Recorder<String>()
    private let expirations = Lock<[@Sendable () -> Void]>([])
    private let expiresAtOnce: Bool

    init(expiresAtOnce: Bool = false) { self.expiresAtOnce = expiresAtOnce }

    func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      let number = expirations.withLock { all in
        all.append(expire)
        return all.count
      }
      log.record("begin \(number)")
      if expiresAtOnce { expire() }
      return { [log] in log.record("end \(number)") }
    }

    func expire(_ number: Int) { expirations.withLock { $0[number - 1] }() }
  }

  @Test("one period lasts from the start of the first transfer to the end of the last one")
  func onePiece() {
    let system = System()
    let hold = BackgroundHold(system)
    hold.enter()
    hold.enter()
    hold.leave()
    #expect(system.log.values == ["begin 1"])
    hold.leave()
    #expect(system.log.values == ["begin 1", "end 1"])
    hold.enter()
    hold.leave()
    #expect(system.log.values == ["begin 1", "end 1", "begin 2", "end 2"])
  }

  @Test("reclaimed time is returned once, and a late expiration does not affect the next period")
  func expired() {
    let system = System()
    let hold = BackgroundHold(system)
    hold.enter()
    system.expire(1)
    #expect(system.log.values == ["begin 1", "end 1"])
    hold.leave()
    hold.enter()
    system.expire(1)
    #expect(system.log.values == ["begin 1", "end 1", "begin 2"])
    hold.leave()
    #expect(system.log.values.last == "end 2")
    #expect(system.log.values.count == 4)
  }

  @Test("time that is reclaimed while it is granted is returned too")
  func expiredAtOnce() {
    let system = System(expiresAtOnce: true)
    let hold = BackgroundHold(system)
    hold.enter()
    hold.leave()
    #expect(system.log.values == ["begin 1", "end 1"])
  }

  @Test("an app in the foreground requests no time, and requests it for every running transfer when it enters the background")
  func deferred() {
    let system = System()
    let time = DeferredBackgroundTime(system)
    let none = time.begin {}
    none()
    let first = time.begin {}
    let second = time.begin {}
    #expect(system.log.values == [])
    time.enterBackground()
    time.enterBackground()
    #expect(system.log.values.sorted() == ["begin 1", "begin 2"])
    // A transfer that begins in the background.
    let third = time.begin {}
    #expect(system.log.values.last == "begin 3")
    time.enterForeground()
    third()
    #expect(system.log.values.last == "end 3")
    // The time that was granted is not requested again.
    time.enterBackground()
    #expect(system.log.values.count == 4)
    time.enterForeground()
    first()
    second()
    #expect(system.log.values.suffix(2).sorted() == ["end 1", "end 2"])
    let fourth = time.begin {}
    fourth()
    #expect(system.log.values.count == 6)
  }

  @Test("a request that expires while it is granted ends once")
  func deferredExpiration() {
    let system = System(expiresAtOnce: true)
    let time = DeferredBackgroundTime(system)
    let hold = BackgroundHold(time)
    hold.enter()
    time.enterBackground()
    #expect(system.log.values == ["begin 1", "end 1"])
    hold.leave()
    #expect(system.log.values == ["begin 1", "end 1"])
  }

  /// A system during whose reply the app leaves the background and enters it again.
  private final class Switching: BackgroundTime {
    let log = Recorder<String>()
    private let during = Lock<(@Sendable () -> Void)?>(nil)

    func whenAsked(_ work: @escaping @Sendable () -> Void) { during.withLock { $0 = work } }

    func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      log.record("begin")
      during.withLock { work in
        defer { work = nil }
        return work
      }?()
      return { [log] in log.record("end") }
    }
  }

  @Test("time that was requested twice for a transfer is returned twice")
  func requestedTwice() {
    let system = Switching()
    let time = DeferredBackgroundTime(system)
    let end = time.begin {}
    system.whenAsked { [time] in
      time.enterForeground()
      time.enterBackground()
    }
    time.enterBackground()
    #expect(system.log.values.filter { $0 == "begin" }.count == 2)
    #expect(system.log.values.filter { $0 == "end" }.count == 1)
    end()
    #expect(system.log.values.filter { $0 == "end" }.count == 2)
  }

  #if Origin
  @Test("a downloader holds background time while its transfers run")
  func downloader() async throws {
    let system = System()
    let downloader = SessionDownloader(backgroundTime: system)
    let request = DownloadRequest(head: .init(method: .get, scheme: "http", authority: "127.0.0.1:1", path: "/"))
    await #expect(throws: CacheError.self) { try await downloader.download(request) }
    #expect(await system.log.wait(for: 2) == ["begin 1", "end 1"])
    downloader.close()
  }
  #endif
}

@Suite("Platform measurements") struct TaskTimesTests {
  private let zero = Date(timeIntervalSinceReferenceDate: 1000)

  private func at(_ milliseconds: Double) -> Date { zero.addingTimeInterval(milliseconds / 1000) }

  private func milliseconds(_ duration: Duration?) -> Int? {
    duration.map { Int(($0 / .milliseconds(1)).rounded()) }
  }

  @Test("a new connection has all its steps")
  func newConnection() {
    let times = TaskTimes(
      fetchStart: at(0), nameLookupStart: at(5), nameLookupEnd: at(15), connectStart: at(15), connectEnd: at(45),
      tlsStart: at(25), tlsEnd: at(45), requestStart: at(46), responseStart: at(90), bodyBytesOnWire: 700, protocolName: "h2")
    var metrics = TransferMetrics(timeToHead: .milliseconds(91), bytesOnWire: 1000, bytesDecoded: 1000)

    times.complete(&metrics)

    #expect(milliseconds(metrics.queued) == 5)
    #expect(milliseconds(metrics.nameLookup) == 10)
    #expect(milliseconds(metrics.connect) == 30)
    #expect(milliseconds(metrics.tls) == 20)
    #expect(metrics.timeToHead == .milliseconds(91), "the value of our own clock is not replaced")
    #expect(metrics.bytesOnWire == 700)
    #expect(metrics.bytesDecoded == 1000)
    #expect(metrics.protocolName == "h2")
    #expect(metrics.isReusedConnection == false)
  }

  @Test("a reused connection has no connection steps")
  func reused() {
    let times = TaskTimes(
      fetchStart: at(0), nameLookupStart: at(-50), nameLookupEnd: at(-40), connectStart: at(-40), connectEnd: at(-10),
      requestStart: at(3), protocolName: "http/1.1", isReusedConnection: true)
    var metrics = TransferMetrics(bytesOnWire: 10)

    times.complete(&metrics)

    #expect(metrics.nameLookup == nil)
    #expect(metrics.connect == nil)
    #expect(milliseconds(metrics.queued) == 3)
    #expect(metrics.bytesOnWire == 10)
    #expect(metrics.isReusedConnection == true)
  }

  @Test("times that are missing or out of order give no duration")
  func missing() {
    var metrics = TransferMetrics()
    TaskTimes(fetchStart: at(5), connectStart: at(9), connectEnd: at(8), tlsEnd: at(1), requestStart: at(2)).complete(&metrics)
    #expect(metrics.queued == nil)
    #expect(metrics.connect == nil)
    #expect(metrics.tls == nil)
  }
}
