#if Server
import CacheCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A writer of responses. A body in memory goes out in one buffer with one flush. Other bodies are written piece by piece, as
/// fast as the client reads.
struct ResponseWriter: Sendable {
  /// The largest number of bytes of a body per write to the socket. A client that reads slowly costs a buffer of this size.
  private static let pieceBytes = 128 * 1024

  let channel: any Channel
  let connection: NIOLoopBound<ConnectionHandler>
  let headWriter: ResponseHeadWriter
  /// Whether the client accepts trailers (RFC 9110 §6.5.1).
  let sendsTrailers: Bool
  /// The time that the head waits for the first piece of the body.
  let headDelay: TimeAmount

  private var framing: ResponseFraming { headWriter.framing }

  /// Writes a response. Does not throw: the result says whether the response was sent completely.
  ///
  /// - Parameter waitsForClient: Whether to return only when the system has all bytes. Closing a channel drops the others.
  func write(_ response: ServerResponse, waitsForClient: Bool) async -> ServerResponse.Delivery {
    var sent = ServerResponse.Delivery()
    do {
      try await write(response, &sent)
      if waitsForClient { try await drain() }
      sent.isComplete = true
    } catch {
      sent.error = error as? CacheError ?? CacheError(.connectionLost, reason: "the connection to the client has ended")
      response.body.source.cancel()
    }
    return sent
  }

  private func write(_ response: ServerResponse, _ sent: inout ServerResponse.Delivery) async throws {
    let data = framing.hasBody ? response.body.data : nil
    var buffer = channel.allocator.buffer(capacity: 1024 + min(data?.count ?? 0, Self.pieceBytes))
    headWriter.write(response.head, to: &buffer)
    guard framing.hasBody else {
      // An empty body is read to its end too, because a response is stored while its body is read.
      if try await response.body.source.next() != nil { response.body.source.cancel() }
      sent.hasBegun = true
      return try await flush(buffer)
    }
    if let data, data.count <= Self.pieceBytes, case .length = framing {
      buffer.writeBytes(data)
      sent.hasBegun = true
      try await flush(buffer)
      sent.bodyBytes = Int64(data.count)
      return
    }
    let head = NIOLoopBoundBox<ByteBuffer?>(buffer, eventLoop: channel.eventLoop)
    defer {
      sent.hasBegun = head.value == nil
      head.value = nil
    }
    try await write(response.body.source, after: head, &sent)
  }

  /// Writes a head and a streamed body.
  ///
  /// The head is written with the first piece, in one flush, or alone after the delay. Until then, a failure of the body leaves
  /// the connection without any byte of this response.
  private func write(
    _ body: any ResourceBody.Source, after head: NIOLoopBoundBox<ByteBuffer?>, _ sent: inout ServerResponse.Delivery
  ) async throws {
    // The task is not cancelled, because SwiftNIO searches all timers of the loop for it.
    channel.eventLoop.scheduleTask(in: headDelay) { [self] in
      guard head.value != nil else { return }
      write(head)
      channel.flush()
      connection.value.didWrite()
    }
    var next = try await body.next()
    while let piece = next {
      let read = sent.bodyBytes + Int64(piece.count)
      // The end of the body is read before the last byte is sent. Then a client that has the whole response finds it stored.
      if framing == .length(read) { next = try await body.next() }
      try await write(piece, after: head, &sent)
      if framing != .length(read) { next = try await body.next() }
    }
    if case .length(let length) = framing, sent.bodyBytes != length {
      throw CacheError.truncated(received: sent.bodyBytes, expected: length)
    }
    let isUnsent = head.value != nil
    write(head)
    if framing == .chunked {
      try await flush(lastChunk(body.trailers))
    } else if isUnsent {
      try await flush(ByteBuffer())
    }
  }

  /// Writes a head without a flush, unless it was written before.
  private func write(_ head: NIOLoopBoundBox<ByteBuffer?>) {
    guard let buffer = head.value else { return }
    head.value = nil
    channel.write(buffer, promise: nil)
  }

  private func write(
    _ piece: Data, after head: NIOLoopBoundBox<ByteBuffer?>, _ sent: inout ServerResponse.Delivery
  ) async throws {
    if case .length(let length) = framing, sent.bodyBytes + Int64(piece.count) > length {
      throw CacheError(.malformedResponse, reason: "the body has more than the announced \(length) bytes")
    }
    write(head)
    var rest = piece[...]
    while !rest.isEmpty {
      let part = rest.prefix(Self.pieceBytes)
      rest = rest.dropFirst(part.count)
      // A buffer's capacity is a power of 2, so a few bytes more would double that of a whole piece.
      var buffer = channel.allocator.buffer(capacity: framing == .chunked ? part.count + 16 : part.count)
      if framing == .chunked { buffer.writeString("\(String(part.count, radix: 16))\r\n") }
      buffer.writeBytes(part)
      if framing == .chunked { buffer.writeStaticString("\r\n") }
      try await flush(buffer)
      sent.bodyBytes += Int64(part.count)
    }
  }

  private func lastChunk(_ trailers: HTTPFields?) -> ByteBuffer {
    var buffer = ByteBuffer(staticString: "0\r\n")
    for field in sendsTrailers ? trailers?.endToEnd() ?? [:] : [:] {
      buffer.writeString("\(field.name.rawName): ")
      field.withUnsafeBytesOfValue { _ = buffer.writeBytes($0) }
      buffer.writeStaticString("\r\n")
    }
    buffer.writeStaticString("\r\n")
    return buffer
  }

  /// Writes a buffer, and returns when the socket accepts more bytes. That is immediately unless too many bytes wait for the
  /// client.
  private func flush(_ buffer: ByteBuffer) async throws {
    guard channel.isActive else { throw CacheError.cancelled }
    channel.writeAndFlush(buffer, promise: nil)
    if !channel.isWritable { try await drain() }
    connection.value.didWrite()
  }

  /// Returns when the system has all written bytes.
  private func drain() async throws {
    connection.value.setWriteDeadline(isActive: true)
    // An empty write completes after all earlier ones.
    try await channel.writeAndFlush(ByteBuffer()).get()
    connection.value.setWriteDeadline(isActive: false)
  }
}
#endif
