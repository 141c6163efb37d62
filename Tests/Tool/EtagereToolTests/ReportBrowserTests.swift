#if Tool && AsyncHTTP
import Browser
import CacheTelemetry
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@testable import EtagereTool

@Suite("Session page in a browser", .enabled(if: WebDriver.shared != nil), .timeLimit(.minutes(30)))
struct ReportBrowserTests {
  /// Two groups of loads with every color and every part.
  private static func groups() throws -> [SessionRecorder.Group] {
    let url = LoadURL(try #require(URL(string: "https://example.com/images/lighthouse.jpg?token=secret")))
    let metrics = TransferMetrics(
      queued: .milliseconds(10), nameLookup: .milliseconds(5), connect: .milliseconds(30), tls: .milliseconds(20),
      timeToHead: .milliseconds(60), bytesOnWire: 120_000)
    let transfer = LoadRecord.Phase(
      start: .milliseconds(2), duration: .milliseconds(150),
      work: .transfer(.init(url: url, isConditional: false, status: 200, metrics: metrics)))
    let value = LoadRecord.Phase(start: .milliseconds(152), duration: .milliseconds(30), work: .transform(.transformed))
    let commit = LoadRecord.Phase(start: .milliseconds(182), duration: .milliseconds(5), work: .store(bytes: 120_000))
    let timeout = CacheError(.timedOut, reason: "x")
    let kinds: [(ResourceSource?, CacheError?, Duration)] = [
      (.network, nil, .milliseconds(190)), (.revalidated, nil, .milliseconds(190)),
      (.disk, nil, .milliseconds(2)), (.memory, nil, .microseconds(7)),
      (nil, timeout, .milliseconds(190)), (.schemeHandler, nil, .milliseconds(1)), (.disk, timeout, .milliseconds(2)),
      (nil, .cancelled, .milliseconds(1)),
    ]
    let loads = kinds.enumerated().map { index, kind in
      let (source, error, duration) = kind
      let hasTransfer = duration >= .milliseconds(100)
      return LoadRecord(
        load: LoadID(), url: url, startedAt: Timestamp(seconds: 0) + .milliseconds(20 * index), duration: duration,
        source: source, fallbackReason: source == nil ? nil : error, error: source == nil ? error : nil, isHit: !hasTransfer,
        phases: hasTransfer ? [transfer, value, commit] : [])
    }
    return [.init(name: "first", loads: loads), .init(name: "second", loads: loads)]
  }

  private static func show(
    _ options: BrowserOptions, _ body: (BrowserSession) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    let page = SessionPage("A session", try groups())
    origin.setRoute("/", Route(Data(page.html.utf8), contentType: "text/html; charset=utf-8"))
    origin.setRoute("/favicon.ico", Route(Data(), contentType: "image/x-icon"))
    do {
      try await WebDriver.withSession(options) { browser in
        try await browser.open(origin.url("/"))
        #expect(try await browser.consoleErrors().isEmpty)
        // The page loads no other resource.
        let requests = try await browser.evaluate(
          "return performance.getEntriesByType('resource').filter(entry => !entry.name.endsWith('favicon.ico')).length",
          as: Int.self)
        #expect(requests == 0)
        try await body(browser)
      }
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  /// A script that returns the smallest contrast between text and its background.
  private static let contrast = """
    const channels = color => { const c = color.match(/[\\d.]+/g).map(Number); return [c[0], c[1], c[2]]; };
    const luminance = color => {
      const [r, g, b] = channels(color).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
      return .2126 * r + .7152 * g + .0722 * b;
    };
    const back = luminance(getComputedStyle(document.body).backgroundColor);
    return Math.min(...[...document.querySelectorAll('h1, h2, p, th, td, summary, .label, .time, small, li')].map(element => {
      const text = luminance(getComputedStyle(element).color);
      return (Math.max(text, back) + .05) / (Math.min(text, back) + .05);
    }));
    """

  @Test("every load has a row, and every part has a bar inside the axis")
  func waterfall() async throws {
    try await Self.show(BrowserOptions()) { browser in
      #expect(try await browser.count(".waterfall .row") == 16)
      #expect(try await browser.texts(of: "#group-0 .waterfall .time").first == "190.0 ms")
      for part in LoadTimeline.Part.allCases {
        #expect(try await browser.count("#group-0 .track .\(part.rawValue)") >= 3, "\(part)")
      }
      for color in LoadColor.allCases { #expect(try await browser.count("#group-0 .row.\(color.rawValue)") == 1, "\(color)") }
      let outside = try await browser.evaluate(
        """
        return [...document.querySelectorAll('.track')].flatMap(track => [...track.querySelectorAll('i')].filter(bar => {
          const [outer, inner] = [track.getBoundingClientRect(), bar.getBoundingClientRect()];
          return inner.width < 1 || inner.left < outer.left - 1 || inner.right > outer.right + 3;
        })).length
        """, as: Int.self)
      #expect(outside == 0)
      #expect(try await browser.count(".overview tbody tr") == 2)
      #expect(try await browser.count(".histogram li") > 3)
      #expect(try await browser.evaluate("return document.body.innerText.includes('secret')", as: Bool.self) == false)
    }
  }

  @Test("the table of a group opens, and names the source of each load")
  func table() async throws {
    try await Self.show(BrowserOptions()) { browser in
      try await browser.click("#group-1 summary")
      #expect(
        try await browser.texts(of: "#group-1 .loads td:nth-child(3)") == [
          "network", "revalidated (304)", "disk", "memory", "failed: timed-out", "no network", "stale: timed-out",
          "cancelled",
        ])
    }
  }

  @Test("text has enough contrast in light, dark and print", arguments: ["light", "dark", "print"])
  func contrast(_ look: String) async throws {
    let options = BrowserOptions {
      $0.colorScheme = look == "dark" ? .dark : .light
      $0.media = look == "print" ? .print : .screen
    }
    try await Self.show(options) { browser in
      let contrast = try await browser.evaluate(Self.contrast, as: Double.self)
      // WCAG 2.2, 1.4.3.
      #expect(contrast >= 4.5)
    }
  }

  @Test("a phone shows the page without horizontal scrolling")
  func phone() async throws {
    try await Self.show(.phone) { browser in
      let overflow = try await browser.evaluate(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth", as: Int.self)
      #expect(overflow <= 0)
      #expect(try await browser.evaluate("return document.querySelector('.track').clientWidth", as: Int.self) > 200)
    }
  }
}
#endif
