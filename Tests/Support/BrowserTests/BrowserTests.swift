#if Origin && AsyncHTTP
import Browser
import Foundation
import LoopbackOrigin
import Testing

@Suite("Headless Chromium", .enabled(if: WebDriver.shared != nil), .timeLimit(.minutes(30)))
struct BrowserTests {
  private static let page = """
    <!doctype html>
    <html lang="en">
    <title>A page</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <link rel="icon" href="data:,">
    <style>
      body { margin: 0; background: white }
      @media (prefers-color-scheme: dark) { body { background: black } }
      @media print { p { display: none } }
    </style>
    <p>One</p><p>Two</p>
    <button type="button">Press <b>me</b></button> <output></output> <input aria-label="Name">
    <div style="height: 3000px"></div>
    <script>
      document.querySelector("button").onclick = () => {
        requestAnimationFrame(() => { document.querySelector("output").textContent = "pressed" })
      }
    </script>
    """

  /// Opens the page in a new browser.
  private static func run(
    _ options: BrowserOptions = BrowserOptions(), _ body: (BrowserSession, OriginServer) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/", Route(Data(page.utf8), contentType: "text/html; charset=utf-8"))
    do {
      try await WebDriver.withSession(options) { browser in
        try await browser.open(origin.url("/"))
        try await body(browser, origin)
      }
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  @Test("a page can be opened, read, clicked and typed into")
  func page() async throws {
    try await Self.run { browser, origin in
      #expect(try await browser.title == "A page")
      #expect(try await browser.url == origin.url("/").absoluteString)
      #expect(try await browser.texts(of: "p") == ["One", "Two"])
      #expect(try await browser.count("p") == 2)
      let button = try await browser.accessibility(of: "button")
      #expect(button.role == "button")
      #expect(button.name == "Press me")
      try await browser.click("button")
      try await browser.wait(until: "document.querySelector('output').textContent !== ''")
      #expect(try await browser.text(of: "output") == "pressed")
      try await browser.type("Ada", into: "input")
      #expect(try await browser.evaluate("return document.querySelector('input').value") == "Ada")
      try await browser.reload()
      #expect(try await browser.text(of: "output") == "")
      #expect(try await browser.consoleMessages().isEmpty)
    }
  }

  @Test("a script accepts arguments, awaits promises, returns JSON and reports errors")
  func scripts() async throws {
    try await Self.run { browser, _ in
      let sum: [Int] = try await browser.evaluate("return [await Promise.resolve(arguments[0] + arguments[1])]", [2, 3])
      #expect(sum == [5])
      #expect(try await browser.evaluate("", as: Int?.self) == nil)
      let error = await #expect(throws: BrowserError.self) { try await browser.run("nothing.at.all") }
      #expect(error?.description.contains("javascript error: nothing is not defined") == true)
    }
  }

  @Test("a missing element and a condition that stays false are errors")
  func failures() async throws {
    try await Self.run { browser, _ in
      let missing = await #expect(throws: BrowserError.self) { try await browser.click("table") }
      #expect(missing?.description.contains("no such element") == true)
      let late = await #expect(throws: BrowserError.self) { try await browser.wait(until: "false", limit: .zero) }
      #expect(late?.description.hasPrefix("'false' did not become true within 0.0 seconds on http://127.0.0.1:") == true)
    }
  }

  @Test("console messages are returned once, and exceptions and failed requests are errors")
  func console() async throws {
    try await Self.run { browser, _ in
      try await browser.run(
        """
        console.log("a note");
        await fetch("/missing");
        const thrown = new Promise(resolve => addEventListener("error", resolve, { once: true }));
        setTimeout(() => { throw new Error("uncaught") });
        await thrown;
        """)
      let messages = try await browser.consoleMessages()
      #expect(messages.contains { $0.level == "INFO" && $0.message.contains("a note") })
      #expect(messages.contains { $0.level == "SEVERE" && $0.source == "network" && $0.message.contains("404") })
      #expect(messages.contains { $0.level == "SEVERE" && $0.source == "javascript" && $0.message.contains("uncaught") })
      #expect(try await browser.consoleErrors().isEmpty)
    }
  }

  @Test("the size, color scheme and medium of the window can be set and changed")
  func emulation() async throws {
    let state = """
      return [innerWidth, innerHeight, devicePixelRatio, matchMedia('(prefers-color-scheme: dark)').matches ? 1 : 0,
        matchMedia('print').matches ? 1 : 0, matchMedia('(pointer: coarse)').matches ? 1 : 0]
      """
    try await Self.run { browser, _ in
      #expect(try await browser.evaluate(state, as: [Int].self) == [1280, 900, 1, 0, 0, 0])
      var options = BrowserOptions.phone
      options.colorScheme = .dark
      options.media = .print
      try await browser.emulate(options)
      #expect(try await browser.evaluate(state, as: [Int].self) == [390, 844, 2, 1, 1, 1])
      try await browser.emulate(BrowserOptions())
      #expect(try await browser.evaluate(state, as: [Int].self) == [1280, 900, 1, 0, 0, 0])
    }
  }

  @Test("a screenshot is a PNG of the window, or of the whole page, in device pixels")
  func screenshot() async throws {
    try await Self.run(.phone) { browser, _ in
      let window = try await browser.screenshot()
      #expect(Self.size(window) == [780, 1688])
      let page = try await browser.screenshot(ofWholePage: true)
      #expect(Self.size(page).first == 780)
      #expect(try #require(Self.size(page).last) > 6000)
    }
  }

  /// Returns the size in a PNG's header, or an empty array for other bytes.
  private static func size(_ png: Data) -> [Int] {
    let bytes = [UInt8](png.prefix(24))
    guard bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]), bytes.count == 24 else { return [] }
    return [bytes[16..<20], bytes[20..<24]].map { $0.reduce(0) { $0 << 8 | Int($1) } }
  }
}
#endif
