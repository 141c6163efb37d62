import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Pauses that servers ask for")
struct RetryAfterTests {
  private let clock = ManualClock()
  private let network: ScriptedDownloader

  init() { network = ScriptedDownloader(clock: clock) }

  private func polite(upTo maximum: Duration = .seconds(3_600)) -> RetryAfterDownloader {
    RetryAfterDownloader(network, maximum: maximum, clock: clock)
  }

  private func serve(_ text: String, _ responses: ScriptedResponse...) throws {
    let url = try TestRequest.url(text)
    network.serve(url) { _ in .ok("bytes") }
    for response in responses { network.respond(to: url, with: response) }
  }

  private func refusal(_ status: HTTPResponse.Status, _ delay: String?) -> ScriptedResponse {
    var fields = HTTPFields()
    fields[.retryAfter] = delay
    return .response(status, fields: fields)
  }

  private func outcome(_ downloader: some Downloader, _ text: String) async throws -> String {
    let request = try TestRequest.request(text)
    do throws(CacheError) {
      return "\(try await downloader.download(request).head.status.code)"
    } catch {
      return "\(error.code) \(error.retryAfter.map { "\($0 / .seconds(1))" } ?? "-")"
    }
  }

  @Test(
    "after a response that asks for a pause, requests to its host fail at once until the pause is over",
    arguments: [HTTPResponse.Status.tooManyRequests, .serviceUnavailable])
  func pause(_ status: HTTPResponse.Status) async throws {
    try serve("https://e.com/a", refusal(status, "120"))
    try serve("https://e.com/b")
    let downloader = polite()
    #expect(try await outcome(downloader, "https://e.com/a") == "\(status.code)")
    #expect(try await outcome(downloader, "https://e.com/b") == "retryLater 120.0")
    clock.advance(by: .milliseconds(119_500))
    #expect(try await outcome(downloader, "https://e.com/a") == "retryLater 0.5")
    #expect(network.requests.count == 1)
    clock.advance(by: .milliseconds(500))
    #expect(try await outcome(downloader, "https://e.com/b") == "200")
    #expect(downloader.pausedHosts == 0)
  }

  @Test("a pause is for one scheme, name and port")
  func hosts() async throws {
    try serve("https://e.com/", refusal(.tooManyRequests, "120"))
    let (others, same) = (["http://e.com/", "https://e.com:8443/", "https://f.com/"], ["https://e.com:443/", "https://E.com/"])
    for text in others + same { try serve(text) }
    let downloader = polite()
    _ = try await outcome(downloader, "https://e.com/")
    for text in others { #expect(try await outcome(downloader, text) == "200", "\(text)") }
    for text in same { #expect(try await outcome(downloader, text) == "retryLater 120.0", "\(text)") }
  }

  @Test(
    "other responses cause no pause",
    arguments: [
      (429, nil), (429, "soon"), (429, "0"), (503, "-5"), (503, "Wed, 31 Dec 2014 23:59:00 GMT"), (500, "120"), (301, "120"),
      (200, "120"), (404, "120"),
    ] as [(Int, String?)])
  func none(_ status: Int, _ delay: String?) async throws {
    try serve("https://e.com/", refusal(.init(code: status), delay))
    let downloader = polite()
    #expect(try await outcome(downloader, "https://e.com/") == "\(status)")
    #expect(try await outcome(downloader, "https://e.com/") == "200")
    #expect(downloader.pausedHosts == 0)
  }

  @Test("a pause may be a date, and is not longer than the maximum")
  func maximum() async throws {
    let date = HTTPDate(Timestamp(seconds: clock.now.seconds) + .seconds(86_400)).description
    for delay in [date, "86400", "99999999999999999999"] {
      try serve("https://e.com/", refusal(.serviceUnavailable, delay))
      let downloader = polite(upTo: .seconds(60))
      _ = try await outcome(downloader, "https://e.com/")
      #expect(try await outcome(downloader, "https://e.com/") == "retryLater 60.0")
    }
  }

  @Test("with a maximum of zero there are no pauses, and a negative one is refused before a request is sent")
  func invalid() async throws {
    try serve("https://e.com/", refusal(.serviceUnavailable, "120"))
    #expect(try await outcome(polite(upTo: .seconds(-1)), "https://e.com/") == "invalidConfiguration -")
    #expect(network.requests.isEmpty)
    let downloader = polite(upTo: .zero)
    #expect(try await outcome(downloader, "https://e.com/") == "503")
    #expect(try await outcome(downloader, "https://e.com/") == "200")
  }

  @Test("pauses that are over are forgotten, also those of hosts that get no further request")
  func forgotten() async throws {
    try serve("https://e.com/", refusal(.tooManyRequests, "120"))
    try serve("https://f.com/", refusal(.tooManyRequests, "60"))
    try serve("https://g.com/")
    let downloader = polite()
    for host in ["e", "f"] { _ = try await outcome(downloader, "https://\(host).com/") }
    #expect(downloader.pausedHosts == 2)
    clock.advance(by: .seconds(120))
    #expect(try await outcome(downloader, "https://g.com/") == "200")
    #expect(downloader.pausedHosts == 0)
  }

  @Test("of the pauses that simultaneous responses ask for, the one that ends last applies")
  func simultaneous() async throws {
    let gate = Gate()
    try serve("https://e.com/a", refusal(.tooManyRequests, "120"))
    try serve("https://e.com/b", refusal(.tooManyRequests, "5").held(by: gate))
    let downloader = polite()
    async let slow = outcome(downloader, "https://e.com/b")
    await gate.arrived()
    _ = try await outcome(downloader, "https://e.com/a")
    gate.open()
    #expect(try await slow == "429")
    #expect(try await outcome(downloader, "https://e.com/a") == "retryLater 120.0")
  }

  @Test("a response that a downloader below refuses causes a pause too")
  func refused() async throws {
    let refusing = HandlerDownloader { _ throws(CacheError) in
      throw CacheError(
        .unacceptableStatus, reason: "refused",
        response: HTTPResponse(status: .tooManyRequests, headerFields: [.retryAfter: "9"]))
    }
    let downloader = refusing.respectingRetryAfter(clock: clock)
    #expect(try await outcome(downloader, "https://e.com/") == "unacceptableStatus 9.0")
    #expect(try await outcome(downloader, "https://e.com/") == "retryLater 9.0")
  }

  @Test("the number of remembered hosts is limited, and the pause that ends first is forgotten")
  func bound() {
    let table = PauseTable()
    for index in 0..<PauseTable.limit { table.add(.init(status: 429, end: .seconds(100 + index)), of: "\(index)", at: .zero) }
    table.add(.init(status: 429, end: .seconds(9_999)), of: "new", at: .zero)
    #expect(table.count == PauseTable.limit)
    #expect(table.pause(of: "0", at: .zero) == nil && table.pause(of: "1", at: .zero) != nil)
    // Pauses that are over make room first.
    table.add(.init(status: 429, end: .seconds(9_999)), of: "newer", at: .seconds(200))
    #expect(table.count == PauseTable.limit - 99 && table.pause(of: "new", at: .seconds(200)) != nil)
  }

  @Test("a cancelled request is a cancellation, also during a pause")
  func cancelled() async throws {
    try serve("https://e.com/", refusal(.tooManyRequests, "120"))
    let downloader = polite()
    _ = try await outcome(downloader, "https://e.com/")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await outcome(downloader, "https://e.com/")
    }
    #expect(try await task.value == "cancelled -")
  }

  @Test("retries outside wait for a short pause, and do not repeat a request during a long one")
  func retries() async throws {
    let clock = ImmediateClock()
    let network = RequestProbe { number, _ throws(CacheError) in
      .scripted(number == 2 ? 200 : 429, [.retryAfter: number == 1 ? "30" : "600"])
    }
    let downloader = network.respectingRetryAfter(clock: clock).retrying(.standard, clock: clock)
    let request = try TestRequest.request("https://e.com/")
    #expect(try await downloader.download(request).head.status.code == 200)
    #expect(network.count == 2)
    #expect(try await downloader.download(request).head.status.code == 429)
    let error = await #expect(throws: CacheError.self) { try await downloader.download(request) }
    #expect(error?.code == .retryLater && network.count == 3)
  }
}
