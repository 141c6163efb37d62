#if AsyncHTTP
internal import Foundation

/// A WebDriver (W3C) remote end: `chromedriver`, which starts a headless Chromium for each session.
///
/// ```swift
/// @Suite("The page in a browser", .enabled(if: WebDriver.shared != nil))
/// struct PageTests {
///   @Test("the button says that it was pressed")
///   func press() async throws {
///     try await WebDriver.withSession { browser in
///       try await browser.open(url)
///       try await browser.click("button")
///       try await browser.wait(until: "document.querySelector('output').textContent !== ''")
///       #expect(try await browser.text(of: "output") == "pressed")
///       #expect(try await browser.consoleErrors().isEmpty)
///     }
///   }
/// }
/// ```
public struct WebDriver: Sendable {
  /// The chromedriver that `Scripts/test --interop` starts, or `nil` without it.
  public static let shared: WebDriver? = {
    ProcessInfo.processInfo.environment["ETAGERE_WEBDRIVER"].map { WebDriver(String($0.trimmingPrefix("http://"))) }
  }()

  let connection: WebDriverConnection
  private let limit: SessionLimit

  /// - Parameters:
  ///   - address: The `HOST:PORT` of a running chromedriver.
  ///   - sessions: The number of browsers that run at the same time. Further sessions wait, because each browser uses
  ///     several processes.
  public init(_ address: String, sessions: Int = 2) {
    connection = WebDriverConnection(address)
    limit = SessionLimit(sessions)
  }

  /// Runs `body` with a new browser of ``shared``, and always closes the browser.
  ///
  /// - Throws: ``BrowserError/noDriver`` without a chromedriver, and the errors of `body`.
  public static func withSession<Result: Sendable>(
    _ options: BrowserOptions = BrowserOptions(), _ body: (BrowserSession) async throws -> Result
  ) async throws -> Result {
    guard let shared else { throw BrowserError.noDriver }
    return try await shared.withSession(options, body)
  }

  /// Runs `body` with a new browser, and always closes the browser.
  public func withSession<Result: Sendable>(
    _ options: BrowserOptions = BrowserOptions(), _ body: (BrowserSession) async throws -> Result
  ) async throws -> Result {
    await limit.enter()
    do {
      let result = try await run(options, body)
      await limit.leave()
      return result
    } catch {
      await limit.leave()
      throw error
    }
  }

  private func run<Result: Sendable>(
    _ options: BrowserOptions, _ body: (BrowserSession) async throws -> Result
  ) async throws -> Result {
    let browser = try await BrowserSession(connection, options)
    do {
      let result = try await body(browser)
      try await browser.close()
      return result
    } catch {
      // The first error is the informative one.
      try? await browser.close()
      throw error
    }
  }
}
#endif
