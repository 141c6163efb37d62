import ExampleBrowser
import Foundation
import HTTPTypes
import Testing

@testable import Gallery

@Suite("The gallery's page in a browser", .enabled(if: WebDriver.shared != nil), .timeLimit(.minutes(20)))
struct GalleryPageTests {
  /// The page in a new browser, after its first run.
  private struct Page {
    let browser: BrowserSession
    let gallery: GalleryFixture

    /// Clicks a button, and returns when all images are loaded.
    func click(_ name: String) async throws {
      let runs: Int = try await browser.evaluate("return Number(document.body.dataset.runs)")
      try await browser.click("button[value=\(name)]")
      try await wait(runs: runs + 1)
    }

    func wait(runs: Int) async throws { try await browser.wait(until: "Number(document.body.dataset.runs) >= \(runs)") }

    var summary: String {
      get async throws { try await browser.text(of: ".summary") }
    }

    var sources: [String] {
      get async throws { try await browser.texts(of: ".tile .source") }
    }

    /// The cells of the latest run in the table.
    var latest: [String] {
      get async throws { try await browser.texts(of: "tbody:first-of-type tr:first-child :is(th, td)") }
    }

    /// The number of images that are shown, by their decoded size.
    var shown: Set<Int> {
      get async throws {
        Set(
          try await browser.evaluate(
            """
            return [...document.querySelectorAll(".tile img")].flatMap((image, index) =>
              image.checkVisibility() && image.complete && image.naturalWidth === 400 ? [index] : [])
            """, as: [Int].self))
      }
    }

    /// The pixels of each image, at a small size.
    var pixels: [String] {
      get async throws {
        try await browser.evaluate(
          """
          const canvas = new OffscreenCanvas(16, 12);
          const context = canvas.getContext("2d", { willReadFrequently: true });
          return [...document.querySelectorAll(".tile img")].map(image => {
            context.clearRect(0, 0, 16, 12);
            context.drawImage(image, 0, 0, 16, 12);
            return context.getImageData(0, 0, 16, 12).data.join(" ");
          })
          """)
      }
    }

    /// Writes a screenshot into the folder that `ETAGERE_SCREENSHOTS` names, for inspection.
    func keep(_ image: Data, as name: String) throws {
      guard let folder = ProcessInfo.processInfo.environment["ETAGERE_SCREENSHOTS"] else { return }
      try image.write(to: URL(filePath: folder).appending(path: "\(name).png"))
    }
  }

  private static let all = Set(0..<GalleryImage.count)

  private static func run(_ options: BrowserOptions = BrowserOptions(), _ body: (Page) async throws -> Void) async throws {
    try await GalleryFixture.run { gallery in
      try await WebDriver.withSession(options) { browser in
        try await browser.open(try gallery.url)
        let page = Page(browser: browser, gallery: gallery)
        try await page.wait(runs: 1)
        try await body(page)
      }
    }
  }

  @Test("each button gives the sources, the summary and the row that its scenario prescribes, and the console stays empty")
  func buttons() async throws {
    try await Self.run { page in
      let (browser, count) = (page.browser, GalleryImage.count)
      let hits = GalleryImage.all.map { $0.isLarge ? "disk hit" : "memory hit" }
      let large = hits.count { $0 == "disk hit" }
      let changed = GalleryImage.all.map { $0.number % 3 == 0 ? "network" : "304 revalidated" }
      func found(_ freshness: String) -> String { "\(count - large) \(freshness) in memory and \(large) \(freshness) on disk" }
      let cases: [(button: String, found: String, sources: [String], requests: Int, summary: String)] = [
        ("cold", "none of them", Array(repeating: "network", count: count), count, "(\(count) from the network)"),
        ("warm", found("fresh"), hits, 0, "(\(count - large) from memory, \(large) from disk)"),
        ("stale", found("stale"), Array(repeating: "304 revalidated", count: count), count, "(\(count) revalidated with a 304)"),
        ("changed", found("stale"), changed, count, "(\(count * 2 / 3) revalidated with a 304, \(count / 3) from the network)"),
        ("offline", found("stale"), Array(repeating: "stale, offline", count: count), 0, "(\(count) stale)"),
        ("warm", found("stale"), Array(repeating: "304 revalidated", count: count), count, "(\(count) revalidated with a 304)"),
        ("warm", found("fresh"), hits, 0, "(\(count - large) from memory, \(large) from disk)"),
      ]
      #expect(try await page.summary.hasPrefix("Opened: \(count) loads (\(count) from the network) in "))
      for (index, expected) in cases.enumerated() {
        try await page.click(expected.button)
        #expect(try await page.sources == expected.sources)
        #expect(try await page.shown == Self.all)

        let report = try await page.gallery.report()
        #expect(report.requests == expected.requests)
        let facts = try await browser.texts(of: ".tile .facts")
        for (image, text) in zip(GalleryImage.all, facts) {
          #expect(text.contains(/^[\d.,]+ m?s · [\d.]+ k?B( · age \d+ s)?$/), "\(text)")
          let bytes = try #require(report.images[image.path]).bytes
          if bytes < 1000 { #expect(text.contains(" · \(bytes) B")) } else { #expect(text.contains(" kB")) }
        }

        let summary = try await page.summary
        let name = expected.button.capitalized
        #expect(summary.hasPrefix("\(name): \(count) loads \(expected.summary) in "))
        #expect(!summary.contains("browser's own cache"))
        #expect(summary.contains(" on average. Before, the cache had \(expected.found)."))
        if expected.button == "offline" {
          #expect(summary.hasSuffix("The origin resets connections. \(count) stale images are shown in its place."))
        } else {
          #expect(summary.contains("The origin got \(expected.requests) requests and sent "))
        }
        let latest = try await page.latest
        #expect(latest.first == "\(index + 2) \(name)")
        #expect(latest.dropFirst(3).first == "\(expected.requests)")
      }
      let rows = try await browser.texts(of: "tbody tr:first-child th")
      #expect(rows == ["8 Warm", "7 Warm", "6 Offline", "5 Changed", "4 Stale", "3 Warm", "2 Cold", "1 Opened"])
      #expect(try await browser.consoleMessages().isEmpty)
    }
  }

  @Test("changed shows the new images and keeps the others, and offline shows the same images")
  func changed() async throws {
    try await Self.run { page in
      let before = try await page.pixels
      #expect(Set(before).count == GalleryImage.count)
      try await page.click("changed")
      let after = try await page.pixels
      for image in GalleryImage.all {
        #expect((after[image.number] != before[image.number]) == (image.number % 3 == 0), "\(image.path)")
      }
      let versions = try await page.browser.texts(of: ".tile .version")
      #expect(versions == GalleryImage.all.map { $0.number % 3 == 0 ? "v2" : "" })
      let alternative = try await page.browser.evaluate("return document.querySelector('.tile img').alt", as: String.self)
      #expect(alternative == "\(GalleryImage.all[0].landscape.motif.rawValue), version 2")
      try await page.click("offline")
      #expect(try await page.shown == Self.all)
      #expect(try await page.pixels == after)
    }
  }

  @Test("the page shows that an image without a cached response cannot be loaded offline")
  func missing() async throws {
    try await Self.run { page in
      _ = try await page.gallery.request(try #require(HTTPRequest.Method("PURGE")), "/images/2.svg")
      try await page.click("offline")
      #expect(try await page.sources[1] == "no response")
      #expect(try await page.shown == Self.all.subtracting([1]))
      #expect(try await page.summary.contains("(\(GalleryImage.count - 1) stale, 1 without a response)"))
      let errors = try await page.browser.consoleErrors()
      #expect(errors.count == 1)
      #expect(errors.first?.message.contains("/images/2.svg") == true)
      try await page.click("warm")
      #expect(try await page.sources[1] == "network")
      #expect(try await page.shown == Self.all)
    }
  }

  @Test("a page that is loaded again gets the images from the gateway, and not from the browser's own cache")
  func reload() async throws {
    try await Self.run { page in
      try await page.browser.reload()
      try await page.wait(runs: 1)
      #expect(try await page.sources == GalleryImage.all.map { $0.isLarge ? "disk hit" : "memory hit" })
      let sizes: [Int] = try await page.browser.evaluate(
        "return performance.getEntriesByType('resource').filter(entry => entry.name.endsWith('.svg')).map(entry => entry.transferSize)"
      )
      #expect(sizes.count == GalleryImage.count)
      #expect(sizes.allSatisfy { $0 > 1000 })
      #expect(try await page.summary.contains("The origin got 0 requests and sent 0 B."))
    }
  }

  @Test("a click during a run is ignored, and a run that cannot be prepared is an error on the page")
  func trouble() async throws {
    try await Self.run { page in
      let browser = page.browser
      // Both clicks are in one script, because the run may end before a second script.
      let disabled: String = try await browser.evaluate(
        "for (const button of document.querySelectorAll('button')) button.click(); return document.querySelector('button').ariaDisabled"
      )
      #expect(disabled == "true")
      try await page.wait(runs: 2)
      #expect(try await page.summary.hasPrefix("Cold: "))
      #expect(try await browser.evaluate("return document.querySelector('button').ariaDisabled") == "false")

      try await browser.run("window.fetch = async () => new Response('cannot prepare', { status: 500 })")
      try await browser.click("button[value=warm]")
      try await browser.wait(until: "document.querySelector('.summary').textContent === 'The run failed: cannot prepare'")
      #expect(try await page.shown == Self.all)
    }
  }

  @Test("buttons, the live region, the table and the images have roles and names for assistive technologies")
  func accessibility() async throws {
    try await Self.run { page in
      let browser = page.browser
      for name in ["cold", "warm", "stale", "changed", "offline"] {
        let button = try await browser.accessibility(of: "button[value=\(name)]")
        #expect(button.role == "button")
        #expect(button.name == name.capitalized)
      }
      #expect(try await browser.accessibility(of: ".summary").role == "status")
      #expect(try await browser.accessibility(of: ".wall").name == "Images")
      #expect(try await browser.accessibility(of: ".bar").name == "\(GalleryImage.count) from the network")
      let image = try await browser.accessibility(of: ".tile img")
      #expect(["image", "img"].contains(image.role))
      #expect(image.name == "Mountain ridges, version 1")
      try await page.click("warm")
      #expect(try await browser.evaluate("return document.querySelector('button[aria-pressed=true]').value") == "warm")
      #expect(try await browser.evaluate("return document.activeElement.value") == "warm")
    }
  }

  @Test("text has a contrast of at least 4.5 in light and in dark mode")
  func colors() async throws {
    try await Self.run { page in
      for name in ["warm", "stale", "changed"] { try await page.click(name) }
      for scheme in [BrowserOptions.ColorScheme.light, .dark] {
        try await page.browser.emulate(BrowserOptions { $0.colorScheme = scheme })
        try page.keep(try await page.browser.screenshot(), as: "gallery-\(scheme.rawValue)")
        let low = try await page.browser.lowContrasts(of: "h1, header p, button, .summary, .legend li, th, td, .tile p, .version")
        #expect(low.isEmpty, "\(scheme.rawValue)")
      }
    }
  }

  @Test("on a phone the page does not scroll sideways, and its buttons are large enough to touch")
  func phone() async throws {
    try await Self.run(.phone) { page in
      try await page.click("warm")
      try await page.click("stale")
      #expect(try await page.browser.evaluate("return document.documentElement.scrollWidth <= innerWidth") == true)
      let heights: [Double] = try await page.browser.evaluate(
        "return [...document.querySelectorAll('button')].map(button => button.getBoundingClientRect().height)")
      #expect(heights.allSatisfy { $0 >= 44 })
      let table: [Int] = try await page.browser.evaluate(
        "const scroll = document.querySelector('.scroll'); return [scroll.scrollWidth, scroll.clientWidth]")
      #expect(table[0] <= table[1])
      try page.keep(try await page.browser.screenshot(), as: "gallery-phone")
    }
  }
}
