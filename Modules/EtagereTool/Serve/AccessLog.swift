#if Tool && Service
import Dispatch
import Etagere
import Foundation
import HTTPTypes
import Hummingbird
import ImageService

/// A middleware that writes a line of JSON for each request. The time is that to the head of the response.
struct AccessLog: RouterMiddleware {
  private struct Line: Encodable {
    var time: String
    var client: String?
    var method: String
    var path: String
    var status: Int
    /// The length of the body, or `nil` if the response does not state it.
    var bytes: Int?
    var milliseconds: Double
    var cache: String?
    var agent: String?
    /// The code and the reason of an error.
    var error: String?
  }

  /// The field in which a proxy states the client's address.
  let field: HTTPField.Name?
  let writer: LogWriter

  @concurrent func handle(
    _ request: Request, context: ClientContext, next: @concurrent (Request, ClientContext) async throws -> Response
  ) async throws -> Response {
    let (start, clock) = (Date(), ContinuousClock())
    let began = clock.now
    var line = Line(
      time: start.ISO8601Format(), client: context.client(request, field), method: request.method.rawValue,
      path: shortened(request.head.path ?? ""), status: 0, milliseconds: 0, agent: request.headers[.userAgent])
    do {
      let response = try await next(request, context)
      line.status = response.status.code
      line.bytes = response.headers[.contentLength].flatMap(Int.init)
      line.cache = HTTPField.Name("Cache-Status").flatMap { response.headers[$0] }
      line.error = context.failure.value.map { "\($0.code.rawValue): \($0.reason)" }
      write(line, clock.now - began)
      return response
    } catch {
      line.status = (error as? any HTTPResponseError)?.status.code ?? 500
      write(line, clock.now - began)
      throw error
    }
  }

  /// Returns a path with the start of its signature only, so that readers of the log cannot use the URL.
  private func shortened(_ path: String) -> String {
    path.split(separator: "/", omittingEmptySubsequences: false)
      .map { $0.utf8.count == 43 ? "\($0.prefix(6))…" : String($0) }.joined(separator: "/")
  }

  private func write(_ line: Line, _ duration: Duration) {
    var line = line
    line.milliseconds = (Text.milliseconds(duration) * 1_000).rounded() / 1_000
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if let data = try? encoder.encode(line) { writer.write(data) }
  }
}

/// A writer of lines to standard output, on a thread of its own. If the reader is slow or gone, it drops lines: neither may stop
/// the service.
final class LogWriter: Sendable {
  private struct State {
    var waiting = 0
    var dropped = 0
  }

  private let limit: Int
  private let output: @Sendable (Data) -> Void
  private let queue = DispatchQueue(label: "etagere.access-log", qos: .utility)
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: The number of lines that wait for the reader.
  ///   - output: Writes whole lines. It may block.
  init(
    limit: Int = 10_000,
    output: @escaping @Sendable (Data) -> Void = { try? FileHandle.standardOutput.write(contentsOf: $0) }
  ) {
    (self.limit, self.output) = (limit, output)
  }

  func write(_ line: Data) {
    let dropped = state.withLock { state -> Int? in
      guard state.waiting < limit else {
        state.dropped += 1
        return nil
      }
      state.waiting += 1
      defer { state.dropped = 0 }
      return state.dropped
    }
    guard let dropped else { return }
    queue.async { [self] in
      var text = dropped == 0 ? Data() : Data("{\"dropped\":\(dropped)}\n".utf8)
      text.append(line)
      text.append(UInt8(ascii: "\n"))
      output(text)
      state.withLock { $0.waiting -= 1 }
    }
  }

  /// Waits until all lines are written, for at most a second.
  func drain() async {
    for _ in 0..<100 where state.withLock({ $0.waiting }) > 0 { try? await Task.sleep(for: .milliseconds(10)) }
  }
}
#endif
