#if Origin
internal import CacheTesting
public import HTTPTypes
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A complete request as the origin received it. Body bytes beyond the origin's limit are not included.
public struct ReceivedRequest: Sendable, Hashable {
  /// The method, the path with the query (as received), and the fields.
  public var head: HTTPRequest
  /// The body without chunk framing, up to the origin's `recordedBodyLimit`.
  public var body: Data
  /// The number of bytes of the whole body.
  public var bodyLength: Int
  /// The digest of the whole body if it is longer than ``body``, otherwise `nil`. Compare it with `digest(of:)`.
  public var bodyDigest: UInt64?
  /// The position among all requests of the origin, from 0, in the order of completion.
  public var order: Int
  /// The number of the request's connection, from 0, in the order of acceptance.
  public var connection: Int
  /// The target as received, if the client used the origin as its proxy: in absolute form (`http://host/a?b`, RFC 9112 §3.2.2) or
  /// as `host:port` for CONNECT (§3.2.3). `nil` for an ordinary request. `head` has the scheme, authority and path of the target,
  /// so routes match by path for any host.
  public var proxyTarget: String?

  var isHTTP10 = false
  var requestsClose = false

  /// Creates a request for a test of a handler.
  public init(head: HTTPRequest, body: Data = Data(), order: Int = 0, connection: Int = 0) {
    (self.head, self.body, self.order, self.connection) = (head, body, order, connection)
    bodyLength = body.count
  }

  /// Returns the `bodyDigest` of a body with these bytes: 64-bit FNV-1a.
  public static func digest(of body: Data) -> UInt64 { ReceivedBody.digest(of: body) }

  /// Whether the client used the origin as its proxy.
  public var isProxied: Bool { proxyTarget != nil }
  /// The method.
  public var method: HTTPRequest.Method { head.method }
  /// The header fields.
  public var fields: HTTPFields { head.headerFields }
  /// The path and query as received. For a proxy request, those of its target.
  public var target: String { head.path ?? "/" }
  /// The path in percent-encoded form, as received, without the query.
  public var path: String { String(target.prefix { $0 != "?" }) }
  /// The query after the first question mark, or `nil` if there is none.
  public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
  /// Whether the request has `If-None-Match` or `If-Modified-Since`.
  public var isConditional: Bool { fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) }
}

/// The body of a request as it arrives. Its first bytes are stored and all are counted. A digest is computed if some are not
/// stored.
struct ReceivedBody {
  private let recordedLimit: Int
  private var buffer = ByteBuffer()
  private var hash: UInt64?
  private(set) var length = 0

  init(recordedLimit: Int) { self.recordedLimit = max(0, recordedLimit) }

  /// The stored bytes.
  var start: Data { Data(buffer.readableBytesView) }

  /// The digest of the whole body, or `nil` if all of it is stored.
  var digest: UInt64? { hash }

  mutating func append(_ part: ByteBuffer) {
    length += part.readableBytes
    if hash == nil, length > recordedLimit { hash = Self.hash(buffer.readableBytesView, from: Self.offsetBasis) }
    if let hash { self.hash = Self.hash(part.readableBytesView, from: hash) }
    let space = max(0, recordedLimit - buffer.readableBytes)
    if var slice = part.getSlice(at: part.readerIndex, length: min(space, part.readableBytes)) { buffer.writeBuffer(&slice) }
  }

  /// Computes the 64-bit FNV-1a digest. It detects lost, duplicated and swapped bytes, which is sufficient for tests.
  static func digest(of bytes: some Sequence<UInt8>) -> UInt64 { hash(bytes, from: offsetBasis) }

  private static let offsetBasis: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ bytes: some Sequence<UInt8>, from start: UInt64) -> UInt64 {
    let hash: UInt64? = bytes.withContiguousStorageIfAvailable { storage in
      var hash = start
      for byte in storage { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      return hash
    }
    return hash ?? bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}

/// A parsed request target (RFC 9112 §3.2).
struct ReceivedTarget: Hashable {
  var scheme: String
  /// The authority in the target, or `nil` in origin form, where the `Host` field has it.
  var authority: String?
  var path: String?

  /// Whether the form is used only for proxies.
  var isForProxy: Bool { authority != nil }

  init(_ text: String, method: HTTPRequest.Method) {
    if method == .connect {
      self.init(scheme: "https", authority: text, path: nil)
    } else if !text.hasPrefix("/"), let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
      let rest = text[colon...].dropFirst(3)
      let authority = rest.prefix { $0 != "/" && $0 != "?" }
      let path = rest.dropFirst(authority.count)
      self.init(
        scheme: text[..<colon].lowercased(), authority: String(authority), path: path.hasPrefix("/") ? String(path) : "/\(path)")
    } else {
      self.init(scheme: "http", authority: nil, path: text)
    }
  }

  private init(scheme: String, authority: String?, path: String?) {
    (self.scheme, self.authority, self.path) = (scheme, authority, path)
  }
}

/// The recorder of an origin's requests and counters.
final class OriginRecorder: Sendable {
  private struct State: Sendable {
    var total = OriginCounters()
    var paths: [String: OriginCounters] = [:]
    var log: CircularBuffer<ReceivedRequest> = []
    var nextOrder = 0
    var nextConnection = 0

    mutating func count(_ path: String?, _ change: (inout OriginCounters) -> Void) {
      change(&total)
      if let path { change(&paths[path, default: OriginCounters()]) }
    }
  }

  private let state = WatchedState(State())
  private let logLimit: Int

  init(logLimit: Int) { self.logLimit = max(0, logLimit) }

  // MARK: Events

  func connectionOpened() -> Int {
    state.update { state in
      state.total.connectionsAccepted += 1
      state.total.openConnections += 1
      defer { state.nextConnection += 1 }
      return state.nextConnection
    }
  }

  func connectionClosed() { state.update { $0.total.openConnections -= 1 } }

  func received(bytes: Int) { state.update { $0.total.bytesReceived += bytes } }

  func receivedBody(bytes: Int, path: String) { state.update { $0.count(path) { $0.requestBodyBytes += bytes } } }

  /// Adds a request to the log and the counters, and assigns its position.
  func record(_ request: ReceivedRequest, bytes: Int) -> ReceivedRequest {
    state.update { [logLimit] state in
      var request = request
      request.order = state.nextOrder
      state.nextOrder += 1
      state.count(request.path) {
        $0.requests += 1
        if request.isConditional { $0.conditionalRequests += 1 }
      }
      state.paths[request.path]?.bytesReceived += bytes
      state.log.append(request)
      if state.log.count > logLimit { _ = state.log.popFirst() }
      return request
    }
  }

  func recordNotModified(_ path: String) { state.update { $0.count(path) { $0.notModified += 1 } } }

  /// Counts sent bytes. The numbers are negative if bytes that were counted could not be sent.
  func sent(bytes: Int, ofBody: Int, path: String?) {
    state.update {
      $0.count(path) {
        $0.bytesSent += bytes
        $0.bodyBytesSent += ofBody
      }
    }
  }

  // MARK: Queries

  var total: OriginCounters { state.read { $0.total } }

  func counters(for path: String) -> OriginCounters { state.read { $0.paths[path] ?? OriginCounters() } }

  var requests: [ReceivedRequest] { state.read { Array($0.log) } }

  func reset() {
    state.update { state in
      let open = state.total.openConnections
      state.total = OriginCounters()
      state.total.openConnections = open
      state.paths = [:]
      state.log = []
      state.nextOrder = 0
    }
  }

  func waitForRequests(path: String?, count: Int) async {
    await state.wait { state in
      let counters = path.map { state.paths[$0] ?? OriginCounters() } ?? state.total
      return counters.requests >= count
    }
  }

  func waitForRequestBody(path: String, bytes: Int) async {
    await state.wait { ($0.paths[path]?.requestBodyBytes ?? 0) >= bytes }
  }

  func waitForOpenConnections(atMost count: Int) async { await state.wait { $0.total.openConnections <= count } }

  /// Resumes all waiting calls.
  func close() { state.close() }
}
#endif
