#if AsyncHTTP
public import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

/// A session with one window of a headless Chromium.
public struct BrowserSession: Sendable {
  private struct Created: Decodable { let sessionId: String }

  private struct Element: Decodable {
    let id: String

    /// The key is defined by the standard (WebDriver §12.1).
    private enum CodingKeys: String, CodingKey { case id = "element-6066-11e4-a52e-4f735466cecf" }
  }

  private let connection: WebDriverConnection
  private let path: String

  init(_ connection: WebDriverConnection, _ options: BrowserOptions) async throws {
    self.connection = connection
    let created = try await connection.post("session", ["capabilities": Capabilities(options)], as: Created.self)
    path = "session/\(created.sessionId)"
    do {
      try await emulate(options)
    } catch {
      try? await close()
      throw error
    }
  }

  func close() async throws { try await connection.delete(path) }

  // MARK: Pages

  /// Opens a page and returns after its `load` event.
  public func open(_ url: URL) async throws { try await connection.perform("\(path)/url", ["url": url.absoluteString]) }

  /// Reloads the page, like a user.
  public func reload() async throws { try await connection.perform("\(path)/refresh") }

  /// The address of the page.
  public var url: String {
    get async throws { try await connection.get("\(path)/url") }
  }

  /// The title of the page.
  public var title: String {
    get async throws { try await connection.get("\(path)/title") }
  }

  // MARK: Elements

  /// Clicks in the middle of the first matching element, like a user. The element is scrolled into view. It is an error
  /// if another element covers it.
  public func click(_ selector: String) async throws {
    try await connection.perform("\(path)/element/\(element(selector).id)/click")
  }

  /// Sends keys to the first matching element.
  public func type(_ text: String, into selector: String) async throws {
    try await connection.perform("\(path)/element/\(element(selector).id)/value", ["text": text])
  }

  /// Returns the visible text of the first matching element.
  public func text(of selector: String) async throws -> String {
    try await connection.get("\(path)/element/\(element(selector).id)/text")
  }

  /// Returns the visible texts of all matching elements, in document order.
  public func texts(of selector: String) async throws -> [String] {
    try await evaluate("return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)", [selector])
  }

  /// Returns the number of matching elements.
  public func count(_ selector: String) async throws -> Int {
    try await evaluate("return document.querySelectorAll(arguments[0]).length", [selector])
  }

  /// Returns the role and the name of the first matching element for assistive technologies.
  public func accessibility(of selector: String) async throws -> (role: String, name: String) {
    let element = try await element(selector).id
    return (
      try await connection.get("\(path)/element/\(element)/computedrole"),
      try await connection.get("\(path)/element/\(element)/computedlabel")
    )
  }

  private func element(_ selector: String) async throws -> Element {
    try await connection.post("\(path)/element", ["using": "css selector", "value": selector])
  }

  // MARK: Scripts

  /// Runs JavaScript in the page and returns its result.
  ///
  /// - Parameters:
  ///   - script: The body of an async function. It may use `await`, and its return value is the result.
  ///   - arguments: The `arguments` of the function, as JSON.
  ///   - type: The type that is decoded from the JSON result. A result of `undefined` is `null`.
  /// - Throws: ``BrowserError/refused(command:code:message:)`` with the code `javascript error` if the script throws.
  public func evaluate<Value: Decodable>(
    _ script: String, _ arguments: [any Encodable & Sendable] = [], as type: Value.Type = Value.self
  ) async throws -> Value {
    try await connection.post(
      "\(path)/execute/sync",
      [
        "script": "return (async function () {\n\(script)\n}).apply(null, arguments)",
        "args": arguments.map { EncodedArgument($0) },
      ], as: type)
  }

  /// Runs JavaScript in the page and ignores its result.
  public func run(_ script: String, _ arguments: [any Encodable & Sendable] = []) async throws {
    _ = try await evaluate(script, arguments, as: WebDriverConnection.Ignored.self)
  }

  /// Returns when an expression is true. The page evaluates it every 10 milliseconds.
  ///
  /// - Parameters:
  ///   - condition: A JavaScript expression. It may be a promise.
  ///   - limit: The time after which the call throws.
  /// - Throws: ``BrowserError/timedOut(condition:limit:url:)``.
  public func wait(until condition: String, limit: Duration = .seconds(120)) async throws {
    let isTrue = try await evaluate(
      """
      const end = performance.now() + arguments[0];
      while (!await (\(condition))) {
        if (performance.now() > end) return false;
        await new Promise(resolve => setTimeout(resolve, 10));
      }
      return true;
      """, [limit / .milliseconds(1)], as: Bool.self)
    guard isTrue else { throw BrowserError.timedOut(condition: condition, limit: limit, url: try await url) }
  }

  // MARK: Console

  /// Returns the console messages since the last call, including uncaught exceptions and failed requests.
  public func consoleMessages() async throws -> [ConsoleMessage] {
    try await connection.post("\(path)/se/log", ["type": "browser"], as: [ConsoleMessage].self)
  }

  /// Returns the errors among ``consoleMessages()``.
  public func consoleErrors() async throws -> [ConsoleMessage] {
    try await consoleMessages().filter { $0.level == "SEVERE" }
  }

  // MARK: Chrome DevTools Protocol

  /// Sends a command of the Chrome DevTools Protocol and returns its result.
  func command<Value: Decodable>(
    _ name: String, _ parameters: [String: any Encodable], as type: Value.Type = Value.self
  ) async throws -> Value {
    try await connection.post(
      "\(path)/goog/cdp/execute", ["cmd": name, "params": parameters.mapValues(EncodedArgument.init)], as: type)
  }

  /// Sends a command of the Chrome DevTools Protocol and ignores its result.
  func perform(_ name: String, _ parameters: [String: any Encodable]) async throws {
    _ = try await command(name, parameters, as: WebDriverConnection.Ignored.self)
  }
}

/// A message of the page's console.
public struct ConsoleMessage: Sendable, Decodable, CustomStringConvertible {
  /// `SEVERE` for errors, otherwise `WARNING`, `INFO` or `DEBUG`.
  public let level: String
  public let message: String
  /// `javascript`, `network`, `console-api`, `security` and others.
  public let source: String

  public var description: String { "\(level) (\(source)): \(message)" }
}

/// The capabilities of a new session (WebDriver §7).
struct Capabilities: Encodable {
  private struct Chrome: Encodable { let args: [String] }

  private struct Properties: Encodable {
    let browserName = "chrome"
    let timeouts: [String: Int]
    let chrome: Chrome
    let logging = ["browser": "ALL"]

    enum CodingKeys: String, CodingKey {
      case browserName, timeouts
      case chrome = "goog:chromeOptions"
      case logging = "goog:loggingPrefs"
    }
  }

  private let alwaysMatch: Properties

  init(_ options: BrowserOptions) {
    var arguments = [
      "--headless=new", "--window-size=\(options.size.width),\(options.size.height)", "--hide-scrollbars",
      "--force-color-profile=srgb", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-extensions",
      // The `/dev/shm` of a container is often too small for a page's images.
      "--disable-dev-shm-usage",
    ]
    // Chromium refuses to run with its sandbox as root.
    if geteuid() == 0 { arguments.append("--no-sandbox") }
    alwaysMatch = Properties(
      timeouts: ["script": Int(options.scriptTimeout / .milliseconds(1))], chrome: Chrome(args: arguments))
  }
}
#endif
