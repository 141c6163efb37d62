#if Origin && AsyncHTTP
import Browser
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// Tests without a browser: an origin simulates chromedriver.
@Suite("WebDriver client")
struct WebDriverTests {
  private struct Interrupted: Error {}

  private static func json(_ text: String, status: HTTPResponse.Status = .ok) -> OriginResponse {
    OriginResponse(Data(text.utf8), contentType: "application/json; charset=utf-8", status: status)
  }

  /// Runs `body` with an origin that creates sessions and returns `script` for each script.
  private static func run(
    script: OriginResponse = json(#"{"value": null}"#), _ body: (WebDriver, OriginServer) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    origin.setFallback { _ in json(#"{"value": null}"#) }
    origin.setRoute("/session", Route(json(#"{"value": {"sessionId": "s1", "capabilities": {}}}"#)))
    origin.setRoute("/session/s1/execute/sync", Route(script))
    do {
      try await body(WebDriver("127.0.0.1:\(origin.port)", sessions: 1), origin)
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  @Test("a session requests a headless browser of the given size, and is deleted at its end")
  func capabilities() async throws {
    try await Self.run { driver, origin in
      try await driver.withSession(BrowserOptions { $0.size = .init(width: 640, height: 480) }) { _ in
        let body = try #require(origin.requests(for: "/session").first?.body)
        let text = String(decoding: body, as: UTF8.self)
        #expect(text.contains("--headless=new"))
        #expect(text.contains("--window-size=640,480"))
        #expect(text.contains(#""goog:loggingPrefs":{"browser":"ALL"}"#))
        #expect(!origin.requests.contains { $0.method == .delete })
      }
      #expect(origin.requests.last?.method == .delete)
      #expect(origin.requests.last?.path == "/session/s1")
    }
  }

  @Test("a session is deleted after a failed test, and the next session begins")
  func failure() async throws {
    try await Self.run { driver, origin in
      for _ in 0..<2 {
        await #expect(throws: Interrupted.self) { try await driver.withSession { _ in throw Interrupted() } }
      }
      #expect(origin.requests.count { $0.method == .delete } == 2)
    }
  }

  @Test("a session is deleted if its window cannot be set up")
  func setUp() async throws {
    try await Self.run { driver, origin in
      origin.setRoute(
        "/session/s1/goog/cdp/execute",
        Route(Self.json(#"{"value": {"error": "unknown error", "message": "no"}}"#, status: .internalServerError)))
      await #expect(throws: BrowserError.self) { try await driver.withSession { _ in } }
      #expect(origin.requests.last?.method == .delete)
    }
  }

  @Test("the result of a script is decoded")
  func result() async throws {
    try await Self.run(script: Self.json(#"{"value": {"a": [1, 2]}}"#)) { driver, _ in
      let value = try await driver.withSession { try await $0.evaluate("return 1", as: [String: [Int]].self) }
      #expect(value == ["a": [1, 2]])
    }
  }

  @Test("an error of the driver contains the command, the code and the first line of the message")
  func refusal() async throws {
    let response = #"{"value": {"error": "javascript error", "message": "x is not defined\n  (Session info)", "stacktrace": ""}}"#
    try await Self.run(script: Self.json(response, status: .internalServerError)) { driver, _ in
      let error = await #expect(throws: BrowserError.self) { try await driver.withSession { try await $0.run("x") } }
      #expect(error?.description == "POST /session/s1/execute/sync: javascript error: x is not defined")
    }
  }

  @Test("a response that does not conform to WebDriver is an error", arguments: [HTTPResponse.Status.ok, .notFound])
  func malformed(status: HTTPResponse.Status) async throws {
    try await Self.run(script: Self.json("<html>", status: status)) { driver, _ in
      let error = await #expect(throws: BrowserError.self) { try await driver.withSession { try await $0.run("x") } }
      #expect(error?.description == "POST /session/s1/execute/sync: unexpected response '<html>'")
    }
  }

  @Test("a condition that stays false is an error with the page's address")
  func timeout() async throws {
    try await Self.run(script: Self.json(#"{"value": false}"#)) { driver, origin in
      origin.setRoute("/session/s1/url", Route(Self.json(#"{"value": "http://a.example/"}"#)))
      let error = await #expect(throws: BrowserError.self) {
        try await driver.withSession { try await $0.wait(until: "isReady", limit: .seconds(2)) }
      }
      #expect(error?.description == "'isReady' did not become true within 2.0 seconds on http://a.example/")
    }
  }
}
#endif
