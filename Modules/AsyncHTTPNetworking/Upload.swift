#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

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
        try ReceivedHead(
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
