#if Tool
import CacheTelemetry
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import EtagereTool

@Suite("Session page")
struct ReportTests {
  private func url(_ text: String) throws -> LoadURL { LoadURL(try #require(URL(string: text))) }

  private func record(
    _ text: String = "https://example.com/a.png", duration: Duration = .milliseconds(100), source: ResourceSource? = .network,
    fallbackReason: CacheError? = nil, error: CacheError? = nil, phases: [LoadRecord.Phase] = []
  ) throws -> LoadRecord {
    LoadRecord(
      load: LoadID(), url: try url(text), startedAt: Timestamp(seconds: 0), duration: duration, source: source,
      fallbackReason: fallbackReason, error: error, phases: phases)
  }

  private func transfer(_ metrics: TransferMetrics, start: Duration, duration: Duration) throws -> LoadRecord.Phase {
    let transfer = LoadRecord.Transfer(
      url: try url("https://example.com/a.png"), isConditional: false, status: 200, metrics: metrics)
    return LoadRecord.Phase(start: start, duration: duration, work: .transfer(transfer))
  }

  private func text(_ timeline: LoadTimeline) -> [String] {
    timeline.bars.map { "\($0.part.title) \($0.start / .milliseconds(1)) to \($0.end / .milliseconds(1))" }
  }

  // MARK: Timelines

  @Test("a transfer has a bar for each measured part, without gaps")
  func parts() throws {
    let metrics = TransferMetrics(
      queued: .milliseconds(10), nameLookup: .milliseconds(5), connect: .milliseconds(20), tls: .milliseconds(15),
      timeToHead: .milliseconds(40), bytesOnWire: 10)
    let timeline = LoadTimeline(
      try record(phases: [
        transfer(metrics, start: .milliseconds(2), duration: .milliseconds(70)),
        .init(start: .milliseconds(72), duration: .milliseconds(3), work: .store(bytes: 10)),
        .init(start: .milliseconds(72), duration: .milliseconds(28), work: .transform(.transformed)),
      ]))
    #expect(
      text(timeline) == [
        "queue 0.0 to 2.0", "queue 2.0 to 12.0", "DNS 12.0 to 17.0", "connect 17.0 to 22.0", "TLS 22.0 to 37.0",
        "first byte 37.0 to 52.0", "body 52.0 to 72.0", "store 72.0 to 75.0", "decode 72.0 to 100.0",
      ])
    #expect(timeline.total(.queue) == .milliseconds(12))
    #expect(timeline.end == .milliseconds(100))
  }

  @Test("a transfer without metrics has one bar, and no bar extends beyond its transfer")
  func oddMetrics() throws {
    let plain = LoadTimeline(try record(phases: [transfer(TransferMetrics(), start: .zero, duration: .milliseconds(70))]))
    #expect(text(plain) == ["body 0.0 to 70.0"])
    let wild = TransferMetrics(queued: .seconds(9), connect: .seconds(9), tls: .seconds(10), timeToHead: .seconds(9))
    let timeline = LoadTimeline(try record(phases: [transfer(wild, start: .zero, duration: .milliseconds(70))]))
    #expect(text(timeline) == ["queue 0.0 to 70.0"])
  }

  @Test("a transfer that ends after its load extends the timeline, and a hit has no bars")
  func ends() throws {
    let late = LoadTimeline(try record(phases: [transfer(TransferMetrics(), start: .zero, duration: .milliseconds(300))]))
    #expect(late.end == .milliseconds(300))
    #expect(LoadTimeline(try record(source: .memory)).bars.isEmpty)
  }

  // MARK: The histogram

  @Test("a histogram has bins from the shortest load to the longest, in steps of 1, 2 and 5")
  func histogram() throws {
    let loads = try [
      record(duration: .microseconds(3), source: .memory), record(duration: .microseconds(1), source: .memory),
      record(duration: .microseconds(12)), record(duration: .microseconds(20)),
    ]
    let bins = DurationHistogram(loads).bins
    #expect(bins.map(\.bound) == [2, 5, 10, 20, 50])
    #expect(bins.map(\.count) == [1, 1, 0, 1, 1])
    #expect(bins.first?.counts == [.memory: 1])
    #expect(DurationHistogram([]).bins.isEmpty)
    #expect(DurationHistogram([try record(duration: .seconds(1_000))]).bins.map(\.bound) == [100_000_000])
    #expect([20, 5_000, 2_000_000].map(DurationHistogram.text) == ["20 µs", "5 ms", "2 s"])
  }

  // MARK: The page

  @Test("a page is one file, escapes markup, and shows no query or credential of a URL")
  func page() throws {
    let hostile = try record("https://user:hunter2@example.com/%3Cb%3E'x&y.png?token=secret#part")
    let page = SessionPage("<script>alert(1)</script>", [.init(name: "a \"group\" <i>", loads: [hostile])]).html
    #expect(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
    #expect(page.contains("a &quot;group&quot; &lt;i&gt;"))
    for text in ["<script", "secret", "hunter2", " src=", "<link", "@import", "url("] { #expect(!page.contains(text), "\(text)") }
    #expect(page.contains("https://example.com/%3Cb%3E'x&amp;y.png"))
  }

  @Test("a color tells stale, failed and cancelled loads apart, and a cancelled one is not counted as failed")
  func colors() throws {
    let failure = CacheError(.timedOut, reason: "x")
    let loads = [
      try record(), try record(source: .disk, fallbackReason: failure), try record(source: nil, error: failure),
      try record(source: nil, error: .cancelled),
    ]
    #expect(loads.map { LoadColor($0) } == [.network, .stale, .failed, .cancelled])
    let page = SessionPage("kinds", [.init(name: "all", loads: loads)]).html
    #expect(page.contains("4 loads · 1 failed"))
    for text in ["stale: timed-out", "failed: timed-out", ">cancelled<"] { #expect(page.contains(text), "\(text)") }
  }

  @Test("a page states the number of loads, and the number that are not shown")
  func sizes() throws {
    #expect(SessionPage("nothing", []).html.contains("0 loads"))
    let many = try (0..<SessionPage.rowLimit + 3).map { _ in try record() }
    let page = SessionPage("many", [.init(name: "all", loads: many)]).html
    #expect(page.contains("3 more loads are not shown."))
    #expect(page.components(separatedBy: "<li class=\"row").count - 1 == SessionPage.rowLimit)
  }

  // MARK: The tool

  @Test("get --trace writes a page with each load, also with a failed one")
  func get() async throws {
    let fixture = try ToolFixture()
    let file = try fixture.write("text", "a.txt")
    let run = try await fixture.etagere("get", "file://\(file)", "file:///no/such/file", "--trace", "\(fixture.path)/trace.html")
    #expect(run.status == 66)
    let page = String(decoding: try fixture.read("trace.html"), as: UTF8.self)
    #expect(page.contains("2 loads · 1 failed"))
    #expect(page.contains("a.txt") && page.contains("failed: file-system"))
  }

  @Test("a page that cannot be written is reported with its path")
  func unwritable() async throws {
    let fixture = try ToolFixture()
    let file = try fixture.write("text", "a.txt")
    let run = try await fixture.etagere("get", "file://\(file)", "--trace", "/no/such/folder/trace.html")
    #expect(run.status == 73)
    #expect(run.errors.contains { $0.contains("cannot write '/no/such/folder/trace.html': No such file or directory") })
  }
}
#endif
