#if Tool && Service
import Browser
import Etagere
import Foundation
import HTTPTypes
import Testing

@Suite("etagere-cli serve: demo page in a browser", .enabled(if: WebDriver.shared != nil), .timeLimit(.minutes(30)))
struct ServeDemoBrowserTests {
  /// The page in a new browser.
  private struct Page {
    let browser: BrowserSession
    let service: RunningService

    /// Replaces the value of a field, like a user.
    func fill(_ field: String, _ text: String) async throws {
      try await browser.run("document.querySelector(arguments[0]).value = ''", ["#\(field)"])
      if !text.isEmpty { try await browser.type(text, into: "#\(field)") }
    }

    func choose(_ field: String, _ value: String) async throws {
      try await browser.click("#\(field) option[value='\(value)']")
      #expect(try await browser.evaluate("return document.querySelector(arguments[0]).value", ["#\(field)"]) == value)
    }

    /// Submits the form, and returns when its requests have ended.
    func submit() async throws {
      let runs: Int = try await browser.evaluate("return Number(document.body.dataset.runs ?? 0)")
      try await browser.click("#submit")
      try await browser.wait(until: "Number(document.body.dataset.runs ?? 0) > \(runs)")
    }

    var message: String {
      get async throws { try await browser.text(of: "#message") }
    }

    /// The cells of a row, one for each request.
    func fact(_ name: String) async throws -> [String] { try await browser.texts(of: "tr[data-fact=\(name)] td") }

    var url: String {
      get async throws { try await browser.evaluate("return document.querySelector('#url').value") }
    }

    /// The width of the shown image in its own pixels, or 0 if no image is shown.
    var imageWidth: Int {
      get async throws {
        try await browser.evaluate(
          """
          const image = document.querySelector("#image");
          return image.checkVisibility() && image.complete ? image.naturalWidth : 0;
          """
        )
      }
    }
  }

  private static func run(_ options: BrowserOptions = BrowserOptions(), _ body: (Page) async throws -> Void) async throws {
    // A result must stay fresh for the whole test.
    let service = try await RunningService(
      "--demo", "true", "--cache-control", "max-age=86400", "--preset", "small=width=10,gray")
    try await WebDriver.withSession(options) { browser in
      try await browser.open(try #require(URL(string: "http://\(service.address)/demo")))
      try await body(Page(browser: browser, service: service))
    }
    #expect(try await service.stop() == 0)
  }

  @Test("the form shows an image, and the table has the size, the bytes, the time and the cache of three requests")
  func image() async throws {
    try await Self.run { page in
      try await page.fill("source", "site/a.png")
      try await page.fill("width", "20")
      #expect(try await page.browser.text(of: "#operations") == "width=20")
      try await page.submit()
      #expect(try await page.imageWidth == 20)
      let url = try await page.url
      #expect(url.hasPrefix("http://\(page.service.address)/img/"))
      let response = try await page.service.get(url, [.accept: "image/webp"])
      #expect(response.status == 200)

      let status = try await page.fact("status")
      #expect(status.map { $0.prefix(3) } == ["200", "200", "304"])
      #expect(try await page.fact("size") == ["20 × 15", "20 × 15", "–"])
      #expect(try await page.fact("type") == [RunningService.typeOfWebP, RunningService.typeOfWebP, "–"])
      #expect(try await page.fact("bytes") == ["\(response.data.count) B", "\(response.data.count) B", "0 B"])
      let times = try await page.fact("time")
      #expect(times.count == 3 && times.allSatisfy { $0.wholeMatch(of: /\d+(\.\d)? ms/) != nil }, "\(times)")
      #expect(try await page.fact("cache") == ["no hit: uri-miss", "hit", "hit"])
      let message = try await page.message
      #expect(message.hasPrefix("20 × 15 pixels, \(response.data.count) B.") && message.hasSuffix("(hit)."), "\(message)")
      #expect(try await page.browser.consoleMessages().isEmpty)
    }
  }

  @Test("the operations follow the form: a preset, both sides, further operations, a format and a quality")
  func operations() async throws {
    try await Self.run { page in
      try await page.fill("source", "site/a.png")
      try await page.fill("width", "12")
      try await page.fill("height", "12")
      try await page.choose("mode", "fill")
      try await page.choose("format", "png")
      try await page.fill("quality", "50")
      try await page.fill("more", "radius=2")
      #expect(try await page.browser.text(of: "#operations") == "fill=12x12,radius=2,format=png,quality=50")
      try await page.submit()
      #expect(try await page.fact("size").first == "12 × 12")
      #expect(try await page.fact("type").first == "image/png")
      #expect(try await page.imageWidth == 12)

      for field in ["width", "height", "quality", "more"] { try await page.fill(field, "") }
      try await page.choose("preset", "small")
      #expect(try await page.browser.text(of: "#operations") == "preset=small,format=png")
      try await page.submit()
      #expect(try await page.imageWidth == 10)

      try await page.choose("preset", "")
      try await page.choose("format", "auto")
      #expect(try await page.browser.text(of: "#operations") == "format=auto")
      try await page.submit()
      #expect(try await page.imageWidth == 40)
      #expect(try await page.browser.consoleMessages().isEmpty)
    }
  }

  @Test("the page shows the reason of an error, and hides the result of the run before")
  func errors() async throws {
    try await Self.run { page in
      try await page.fill("source", "site/a.png")
      try await page.submit()
      #expect(try await page.imageWidth == 40)

      try await page.fill("more", "blur=0")
      try await page.submit()
      #expect(try await page.message.hasPrefix("400 Bad Request: the operation 'blur' needs "))
      #expect(try await page.imageWidth == 0)
      #expect(try await page.browser.evaluate("return document.querySelector('#signed').hidden") == true)

      try await page.fill("more", "")
      try await page.fill("source", "site/none.png")
      try await page.submit()
      #expect(try await page.message == "404 Not Found: the source does not exist")
      #expect(try await page.imageWidth == 0)
      #expect(try await page.url.contains("none.png"))

      try await page.fill("source", "site/a.png")
      try await page.submit()
      #expect(try await page.imageWidth == 40)
      #expect(try await page.fact("cache").first == "hit")
      #expect(try await page.browser.evaluate("return document.querySelector('#message').className") == "")
      // The browser reports the two failed requests itself.
      let errors = try await page.browser.consoleErrors()
      #expect(errors.count == 2 && errors.allSatisfy { $0.source == "network" }, "\(errors)")
    }
  }

  @Test("the copy button copies the URL, or selects it and says so")
  func copying() async throws {
    try await Self.run { page in
      try await page.fill("source", "site/a.png")
      try await page.submit()
      try await page.browser.run("navigator.clipboard.writeText = async (text) => { document.body.dataset.copied = text }")
      try await page.browser.click("#copy")
      try await page.browser.wait(until: "document.querySelector('#message').textContent === 'The URL is copied.'")
      #expect(try await page.browser.evaluate("return document.body.dataset.copied") == (try await page.url))
      try await page.browser.run("navigator.clipboard.writeText = async () => { throw new Error('refused') }")
      try await page.browser.click("#copy")
      try await page.browser.wait(until: "document.querySelector('#message').className === 'failed'")
      let selected: [Int] = try await page.browser.evaluate(
        "const url = document.querySelector('#url'); return [url.selectionStart, url.selectionEnd, url.value.length]")
      #expect(selected[0] == 0 && selected[1] == selected[2])
    }
  }

  @Test(
    "at a width of 360 pixels nothing scrolls sideways, text has a contrast of at least 4.5, and fields have labels"
  )
  func looks() async throws {
    let options = BrowserOptions {
      $0.size = .init(width: 360, height: 740)
      $0.isMobile = true
      $0.scale = 2
    }
    try await Self.run(options) { page in
      try await page.fill("source", "site/a.png")
      try await page.submit()
      #expect(try await page.browser.evaluate("return document.documentElement.scrollWidth <= innerWidth") == true)
      for (field, name) in [("source", "Source"), ("width", "Width"), ("mode", "Width and height"), ("url", "Signed URL")] {
        #expect(try await page.browser.accessibility(of: "#\(field)").name == name)
      }
      #expect(
        try await page.browser.evaluate(
          "return [...document.querySelector('form').elements].every(e => e.labels.length || e.type === 'submit')") == true)
      #expect(try await page.browser.accessibility(of: "#message").role == "status")
      #expect(try await page.browser.accessibility(of: "#image").name == "Result of width=400")
      for scheme in [BrowserOptions.ColorScheme.light, .dark] {
        var look = options
        look.colorScheme = scheme
        try await page.browser.emulate(look)
        if let folder = ProcessInfo.processInfo.environment["ETAGERE_SCREENSHOTS"] {
          let file = URL(filePath: folder).appending(path: "demo-\(scheme.rawValue).png")
          try await page.browser.screenshot(ofWholePage: true).write(to: file)
        }
        let low = try await page.browser.lowContrasts(of: "h1, p, label, small, code, input, select, button, th, td")
        #expect(low.isEmpty, "\(scheme.rawValue)")
      }
    }
  }
}
#endif
