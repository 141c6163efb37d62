#if Tool && Service
import CommandIO
import Dispatch
import Etagere
import Foundation
import HTTPServing
import HTTPTypes
import NIOCore

/// A log with a line of JSON for each request.
struct AccessLog: Sendable {
  private struct Line: Encodable, Sendable {
    /// The time at which the head of the request was complete.
    var time: String
    var client: String?
    /// The method and the path, or `nil` if the request was invalid.
    var method: String?
    var path: String?
    var status: Int
    /// The bytes of the body that were sent.
    var bytes: Int64
    /// The time from the head of the request to the end of the response.
    var milliseconds: Double
    /// Whether the response was not sent completely, or `nil` if it was.
    var aborted: Bool?
    var cache: String?
    var agent: String?
    /// The code and the reason of an error.
    var error: String?
  }

  /// The field in which a proxy states the client's address.
  let field: HTTPField.Name?
  let writer: LogWriter

  /// Writes the line of a response.
  ///
  /// - Parameter request: The request, or `nil` if it was invalid.
  func write(
    _ request: ServerRequest?, from peer: SocketAddress?, _ response: HTTPResponse, _ error: CacheError?,
    _ delivery: ServerResponse.Delivery, _ duration: Duration
  ) {
    let line = Line(
      time: Date(timeIntervalSinceNow: -(duration / .seconds(1))).ISO8601Format(),
      client: ClientAddress.of(request, from: peer, field: field),
      method: request?.head.method.rawValue, path: request.map { $0.head.path ?? "" }, status: response.status.code,
      bytes: delivery.bodyBytes, milliseconds: (Text.milliseconds(duration) * 1_000).rounded() / 1_000,
      aborted: delivery.isComplete ? nil : true, cache: CacheStatus.fieldName.flatMap { response.headerFields[$0] },
      agent: request?.head.headerFields[.userAgent], error: error.map { "\($0.code.rawValue): \($0.reason)" })
    writer.write(Self.encoded(line))
  }

  private struct FailureLine: Encodable, Sendable {
    var time: String
    /// The source without its query.
    var source: String?
    var codecFailure: String
  }

  /// Returns the line of an image whose codec failed in a worker.
  static func line(codecFailure error: CacheError) -> Data {
    let source = error.url.map { String($0.prefix { $0 != "?" }) }
    let line = FailureLine(
      time: Date().ISO8601Format(), source: source, codecFailure: "\(error.code.rawValue): \(error.reason)")
    return (try? JSONEncoder.line.encode(line)) ?? Data()
  }

  private static func encoded(_ line: Line) -> Data {
    var line = line
    line.path = line.path.map(shortened)
    return (try? JSONEncoder.line.encode(line)) ?? Data()
  }

  /// Returns a target with the start of its signature only, so that readers of the log cannot use the URL. For the same reason
  /// the user information and the query of its source are left out: the source can be a presigned URL.
  private static func shortened(_ target: String) -> String {
    // A signature has 43 characters.
    ServerRequest.logged(target, hidesQueries: true).split(separator: "/", omittingEmptySubsequences: false)
      .map { $0.utf8.count == 43 ? "\($0.prefix(6))…" : String($0) }.joined(separator: "/")
  }
}

/// A writer of lines to standard output, on a thread of its own. If the reader is slow or gone, it drops lines, so that the
/// service does not stop.
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
    output: @escaping @Sendable (Data) -> Void = { try? Descriptor.standardOutput.write($0) }
  ) {
    (self.limit, self.output) = (limit, output)
  }

  /// - Parameter line: The line without its end. It is made on the thread of the writer.
  func write(_ line: @autoclosure @escaping @Sendable () -> Data) {
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
      text.append(line())
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

/// The address of a client, as text. An IPv6 address is reduced to its /64 network, because one client can use all of it.
enum ClientAddress {
  /// Returns the last address in `field`, or the address of the connection.
  static func of(_ request: ServerRequest?, from peer: SocketAddress?, field: HTTPField.Name?) -> String? {
    if let field, let value = request?.head.headerFields[values: field].last, let client = stated(in: value) {
      return client
    }
    return peer.map { peer in
      let address = peer.withSockAddr { address, _ in
        IPAddress(socketAddress: address, family: Int32(address.pointee.sa_family))
      }
      return address.map(text) ?? "unix"
    }
  }

  /// Returns the last address of a field, or `nil` if that is not an address.
  static func stated(in value: String) -> String? {
    // Some proxies add the port: `192.0.2.1:5678`, `[2001:db8::1]:5678`.
    guard let text = value.split(separator: ",").last?.filter({ $0 != " " }) else { return nil }
    let isIPv4WithPort = text.contains(".") && text.count(where: { $0 == ":" }) == 1
    let host =
      text.hasPrefix("[") ? text.dropFirst().prefix { $0 != "]" } : isIPv4WithPort ? text.prefix { $0 != ":" } : text[...]
    // A zone has a meaning only on the machine of the proxy.
    return host.contains("%") ? nil : IPAddress(String(host)).map(Self.text)
  }

  private static func text(_ address: IPAddress) -> String {
    guard address.isV6 else { return address.description }
    // An IPv4 client of a port for both protocols.
    let mapped = [UInt8](repeating: 0, count: 10) + [255, 255]
    if address.bytes.starts(with: mapped) { return address.bytes.suffix(4).map { "\($0)" }.joined(separator: ".") }
    let network = IPAddress(bytes: address.bytes.prefix(8) + [UInt8](repeating: 0, count: 8))
    return network.map { "\($0)/64" } ?? address.description
  }
}
#endif
