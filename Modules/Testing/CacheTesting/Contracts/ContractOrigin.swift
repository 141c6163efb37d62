internal import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An origin for running a ``DownloaderContract``. `LoopbackOrigin` is an origin for downloaders with sockets. A
/// ``ScriptedDownloader`` is its own origin.
public protocol ContractOrigin: Sendable {
  /// Whether responses cross a wire, so that connections, bytes and pace have a meaning:
  /// ``DownloaderContract/Trait/sockets``.
  var hasSockets: Bool { get }
  /// Returns a new URL whose requests get the given responses in order. The last one is repeated.
  ///
  /// - Throws: ``ContractViolation`` for a response that this origin cannot give.
  func serve(_ responses: [ContractResponse]) async throws -> URL
  /// Returns the requests for a URL, in order.
  func received(at url: URL) async -> [ContractRequest]
  /// Returns when the given number of request body bytes has arrived for a URL, including those of unfinished requests,
  /// or when the task is cancelled.
  func waitForRequestBody(at url: URL, bytes: Int) async
  /// Returns the number of body bytes sent for a URL, or `nil` if the origin does not count them.
  func bodyBytesSent(at url: URL) async -> Int?
  /// Returns a URL with a port on which no process listens.
  func refusingURL() async throws -> URL
  /// Returns a URL with a host name that does not resolve.
  func unresolvableURL() async throws -> URL
}

extension ContractOrigin {
  /// Returns a new URL whose requests all get the given response.
  public func serve(_ response: ContractResponse) async throws -> URL { try await serve([response]) }
}

/// A request that a ``ContractOrigin`` received.
public struct ContractRequest: Sendable {
  /// The method, target and fields.
  public var head: HTTPRequest
  /// The complete body.
  public var body: Data
  /// The number of the connection, or `nil` if the origin has no connections.
  public var connection: Int?

  /// Creates a request from its parts.
  public init(head: HTTPRequest, body: Data = Data(), connection: Int? = nil) {
    (self.head, self.body, self.connection) = (head, body, connection)
  }
}

/// A response that a ``DownloaderContract`` requests from an origin.
public struct ContractResponse: Sendable {
  /// The framing of a body (RFC 9112 §6).
  public enum Framing: Hashable, Sendable {
    /// `Content-Length` declares the length.
    case length
    /// Chunked, without a length.
    case chunks
    /// The body ends with the connection.
    case connection
    /// `Content-Length` declares the given length, correct or not. If it is wrong, the connection closes after the
    /// body.
    case claimed(Int)
  }

  /// The end of a response. Counts are of body bytes.
  public enum Ending: Hashable, Sendable {
    /// A complete response.
    case complete
    /// A complete response that promises to keep the connection open, although the connection closes.
    case closesAfterwards
    /// The connection closes after the given number of body bytes, although the head declares all of them.
    case cut(after: Int)
    /// The connection is reset after the given number of body bytes.
    case reset(after: Int)
    /// Nothing follows the given number of body bytes, and the connection stays open.
    case stall(after: Int)
    /// The body is sent one byte at a time, with a pause before each byte.
    case trickle(every: Duration)
    /// The connection closes before the head.
    case closeBeforeHead
    /// The connection is reset before the head.
    case resetBeforeHead
    /// The connection stays open, and nothing is sent.
    case stallBeforeHead
    /// The connection closes in the middle of the header section.
    case cutInHead
    /// The connection is reset in the middle of the header section.
    case resetInHead
    /// The head is sent one byte at a time, with a pause before each byte. The complete body follows.
    case trickleHead(every: Duration)
    /// The header section never ends.
    case endlessHead
    /// The given bytes replace the response, then the connection closes.
    case raw(Data)
  }

  /// The status.
  public var status: HTTPResponse.Status
  /// The fields, except those that frame the body.
  public var fields: HTTPFields
  /// The body.
  public var body: Data
  /// The framing of the body.
  public var framing: Framing
  /// The end of the response.
  public var ending: Ending
  /// Interim responses (1xx) before this response.
  public var interim: [HTTPResponse]
  /// The gate that holds back the response, including its head.
  public var gate: Gate?
  /// The gate that holds back the second half of the body.
  public var bodyGate: Gate?

  /// Creates a response from its parts.
  public init(
    status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], body: Data = Data(), framing: Framing = .length,
    ending: Ending = .complete, interim: [HTTPResponse] = [], gate: Gate? = nil, bodyGate: Gate? = nil
  ) {
    self.status = status
    self.fields = fields
    self.body = body
    self.framing = framing
    self.ending = ending
    self.interim = interim
    self.gate = gate
    self.bodyGate = bodyGate
  }
}

/// The error of a component that violates a statement of its contract.
public struct ContractViolation: Error, Sendable, CustomStringConvertible {
  /// The expected and the observed behavior.
  public let description: String

  /// Creates a violation with a description.
  public init(_ description: String) { self.description = description }

  static func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw ContractViolation(otherwise()) }
  }

  static func expectEqual<Value: Equatable>(_ seen: Value, _ expected: Value, _ what: String) throws {
    guard seen == expected else { throw ContractViolation("\(what): expected \(expected), saw \(seen)") }
  }
}

/// A request body that is produced while it is sent.
final class ChunkSource: ResourceBody.Source {
  private struct State {
    var next = 0
    var isCancelled = false
  }

  private let chunks: [Data]
  private let before: @Sendable (Int) async throws(CacheError) -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - chunks: The chunks of the body, none of them empty.
  ///   - before: A closure that is called before each chunk is returned. Its error becomes the error of the body.
  init(_ chunks: [Data], before: @escaping @Sendable (Int) async throws(CacheError) -> Void = { _ in }) {
    self.chunks = chunks
    self.before = before
  }

  /// Concatenates the chunks. Appending byte by byte would take seconds in a debug build.
  static func whole(_ chunks: [Data]) -> Data { chunks.reduce(into: Data()) { $0.append($1) } }

  func next() async throws(CacheError) -> Data? {
    let index = try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      defer { state.next += 1 }
      return state.next
    }
    guard index < chunks.count else { return nil }
    try await before(index)
    return chunks[index]
  }

  func cancel() { state.withLock { $0.isCancelled = true } }

  var trailers: HTTPFields? { nil }
}

/// A text and its gzip form (RFC 1952), for an origin that cannot encode.
enum GzipSample {
  static let decoded = Array(String(repeating: "the same words, the same words, the same words", count: 4).utf8)

  static let encoded: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xFF, 0x2B, 0xC9, 0x48, 0x55,
    0x28, 0x4E, 0xCC, 0x4D, 0x55, 0x28, 0xCF, 0x2F, 0x4A, 0x29, 0xD6, 0x51, 0x28, 0xC1,
    0xCB, 0x2F, 0x19, 0x34, 0xAA, 0x01, 0x25, 0x6A, 0x3E, 0x82, 0xB8, 0x00, 0x00, 0x00,
  ]
}
