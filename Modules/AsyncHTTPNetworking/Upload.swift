#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

/// A request with a body on its way.
///
/// It has a task of its own, with async-http-client's `async` calls: they let an answer end before the request's body has, as a
/// server's early refusal does; with the delegate calls of ``TransferDelegate`` such an answer's end is never told.
struct Upload: Sendable {
  let transfer: Transfer
  let client: HTTPClient
  let request: HTTPClientRequest
  let body: ResourceBody
  let method: HTTPRequest.Method

  /// Sends, and reads the answer into the transfer. Ends early when its task is cancelled.
  func run() async {
    // An answer that is complete wants no more of the request, whatever is left of it.
    defer { body.source.cancel() }
    do {
      let response = try await client.execute(request, deadline: .distantFuture)
      guard response.history.count <= 1 else { return transfer.fail(.followsRedirects) }
      transfer.receive(
        ReceivedHead(
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

/// A request's body as async-http-client wants it.
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
        // Here, since the client may tell of it in other words.
        transfer.fail(error)
        throw error
      }
    }
  }
}
#endif
