#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

#if canImport(FoundationEssentials)
internal import FoundationEssentials
// No code calls it, but if it is linked, FoundationEssentials converts international hosts (see `HostName`).
internal import FoundationInternationalization
#else
internal import Foundation
#endif

/// A request in the form that async-http-client accepts.
struct OutgoingRequest: Sendable {
  let url: String
  /// The origin of the request, which connections are counted by.
  let hostAndPort: String
  /// The name or address alone, without brackets.
  let host: String
  let method: HTTPRequest.Method
  var headers: HTTPHeaders

  /// - Parameters:
  ///   - head: The request.
  ///   - userAgent: The `User-Agent` for requests that have none.
  ///   - sendsExactTarget: Whether the client's connections read ``RequestMarks/exactTarget``.
  /// - Throws: `CacheError.Code.invalidURL` or `.unsupportedScheme`.
  init(_ head: HTTPRequest, userAgent: String?, sendsExactTarget: Bool) throws(CacheError) {
    guard let scheme = head.scheme?.lowercased(), let path = head.path, path.utf8.first == UInt8(ascii: "/") else {
      throw CacheError(.invalidURL, reason: "the request has no URL")
    }
    guard scheme == "http" || scheme == "https" else {
      throw CacheError(.unsupportedScheme, reason: "the URL scheme is not http or https", url: head.absoluteURL?.address)
    }
    guard let authority = try Self.authority(of: head), let host = Self.host(authority) else {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: head.absoluteURL?.address)
    }
    self.host = host
    let origin = "\(scheme)://\(authority)"
    hostAndPort = origin.lowercased()
    // The client would encode the escapes of a part with an invalid byte again.
    let isPlain = URL.isPlainTarget(path)
    let target = isPlain ? path : URL.encodedTarget(path)
    url = origin + target
    method = head.method
    var headers = HTTPHeaders(sending: head.headerFields)
    if let userAgent, head.headerFields[.userAgent] == nil { headers.add(name: "User-Agent", value: userAgent) }
    if !isPlain {
      if sendsExactTarget {
        // A target with bytes beyond visible ASCII has no exact form.
        let isExact = path.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
        headers.add(name: RequestMarks.exactTarget, value: isExact ? path : target)
      } else if URL(string: url)?.path.isEmpty ?? true {
        // Without the exact target, the client would request "/" instead.
        throw CacheError(
          .invalidURL, reason: "the escapes of the path are not UTF-8, which needs HTTP/1.1 and a client of the downloader",
          url: head.absoluteURL?.address)
      }
    }
    self.headers = headers
  }

  /// Returns the client's request, without a body.
  func request(tls: TLSConfiguration?) throws(CacheError) -> HTTPClient.Request {
    do {
      return try HTTPClient.Request(
        url: url, method: HTTPMethod(rawValue: method.rawValue), headers: headers, body: nil, tlsConfiguration: tls)
    } catch {
      throw CacheError(clientError: error).about(url)
    }
  }

  /// Returns the client's request, with a body.
  func upload(_ body: ResourceBody, for transfer: Transfer, tls: TLSConfiguration?) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: url)
    request.method = HTTPMethod(rawValue: method.rawValue)
    request.headers = headers
    request.tlsConfiguration = tls
    request.body = .stream(
      UploadBody(body: body, transfer: transfer), length: body.length.map { .known($0) } ?? .unknown)
    return request
  }

  private static func authority(of head: HTTPRequest) throws(CacheError) -> String? {
    var head = head
    try head.convertHost()
    return head.authority
  }

  private static func host(_ authority: String) -> String? {
    // Otherwise the client, which parses the whole URL, could find another host than the one that is checked here.
    guard !authority.utf8.contains(where: endsAuthority) else { return nil }
    let rest = HostPort.withoutUserInformation(authority)
    if rest.utf8.first == UInt8(ascii: "[") {
      let inside = rest.utf8.dropFirst()
      guard let end = inside.firstIndex(of: UInt8(ascii: "]")) else { return nil }
      return String(Substring(inside[..<end]))
    }
    let host = rest.utf8.prefix { $0 != UInt8(ascii: ":") }
    return host.isEmpty ? nil : String(Substring(host))
  }

  /// Returns whether a byte begins a path, a query or a fragment (RFC 3986 §3.2), or is treated as such.
  private static func endsAuthority(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\\"): true
    default: false
    }
  }
}

/// A request without a body.
struct PlainRequest: Sendable {
  let transfer: Transfer
  let client: HTTPClient
  let request: HTTPClient.Request
  let method: HTTPRequest.Method
  /// The connection counter, or `nil` for a caller's client, whose connections are not counted.
  let connections: ConnectionCount?

  /// Passes the request to the client. Returns a closure that cancels it.
  func launch() -> @Sendable () -> Void {
    let task = client.execute(
      request: request, delegate: TransferDelegate(self, connectionsMade: connections?.made), eventLoop: .indifferent)
    // A client that has been shut down does not call its delegate. The downloader's own client lives as long as its transfers.
    if connections == nil {
      task.futureResult.whenFailure { [transfer] error in
        if error as? HTTPClientError == .alreadyShutdown { transfer.fail(clientError: error) }
      }
    }
    return { task.cancel() }
  }

  /// Passes the request to the client again.
  func launchAgain() {
    let attempt = transfer.metrics.attempts
    transfer.launched(attempt: attempt, launch())
  }
}

/// A request with a body.
///
/// It runs in a task with async-http-client's `async` calls. They let a response end before the request body, as a server's early
/// refusal does. The delegate calls of ``TransferDelegate`` never report such an end.
struct Upload: Sendable {
  let transfer: Transfer
  let client: HTTPClient
  let request: HTTPClientRequest
  let body: ResourceBody
  let method: HTTPRequest.Method

  /// Sends the request and reads the response into the transfer. Ends early if its task is cancelled.
  func run() async {
    // A complete response ends the request, even if part of its body was not sent.
    defer { body.source.cancel() }
    do {
      let response = try await client.execute(request, deadline: .distantFuture)
      guard response.history.count <= 1 else { return transfer.fail(.followsRedirects) }
      transfer.receive(
        try TransferHead(
          status: Int(response.status.code), version: response.version, headers: response.headers, method: method))
      let eventLoop = client.eventLoopGroup.any()
      for try await bytes in response.body {
        if let demand = transfer.receive(bytes, on: eventLoop) { try await demand.get() }
      }
      transfer.finish()
    } catch {
      transfer.fail(clientError: error)
    }
  }
}

/// A request body in the form that async-http-client accepts.
struct UploadBody: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  let body: ResourceBody
  let transfer: Transfer

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: body, transfer: transfer) }

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: ResourceBody
    let transfer: Transfer

    mutating func next() async throws -> ByteBuffer? {
      transfer.produces(true)
      defer { transfer.produces(false) }
      do {
        return try await body.source.next().map { ByteBuffer(bytes: $0) }
      } catch {
        // Reported here, because the client may throw another error for it.
        transfer.fail(error)
        throw error
      }
    }
  }
}
#endif
