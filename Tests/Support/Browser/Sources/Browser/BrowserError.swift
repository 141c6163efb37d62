/// An error of a command to the browser.
public enum BrowserError: Error, CustomStringConvertible {
  /// No chromedriver is running.
  case noDriver
  /// chromedriver returned an error: the command, WebDriver's error code (`no such element`) and chromedriver's
  /// message.
  case refused(command: String, code: String, message: String)
  /// The response does not conform to WebDriver.
  case unexpected(command: String, body: String)
  /// The condition did not become true in time. `url` is the address of the page at that time.
  case timedOut(condition: String, limit: Duration, url: String)

  public var description: String {
    switch self {
    case .noDriver: "no chromedriver is running: use Scripts/test --interop"
    case .refused(let command, let code, let message): "\(command): \(code): \(message.prefix { $0 != "\n" })"
    case .unexpected(let command, let body): "\(command): unexpected response '\(body.prefix(200))'"
    case .timedOut(let condition, let limit, let url): "'\(condition)' did not become true within \(limit) on \(url)"
    }
  }
}
