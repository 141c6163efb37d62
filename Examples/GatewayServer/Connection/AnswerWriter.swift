#if Gateway
import CacheCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes an answer: one buffer and one flush where its bytes are at hand, else piece by piece, at the client's pace.
struct AnswerWriter: Sendable {
  /// How far it came.
  struct Sent {
    var bodyBytes: Int64 = 0
    var isComplete = false
  }

  /// Bytes that are given to the socket at a time.
  private static let pieceBytes = 256 * 1024

  let channel: any Channel
  let connection: NIOLoopBound<ConnectionHandler>
  let headWriter: ResponseHeadWriter
  /// Whether the client said that it understands them (RFC 9110 §6.5.1).
  let sendsTrailers: Bool

  private var framing: ResponseFraming { headWriter.framing }

  /// Never throws: an answer that can't be brought to its end is told as such.
  func write(_ answer: ProxyAnswer) async -> Sent {
    var sent = Sent()
    do {
      try await write(answer, &sent)
      sent.isComplete = true
    } catch {
      answer.body.source.cancel()
    }
    return sent
  }

  private func write(_ answer: ProxyAnswer, _ sent: inout Sent) async throws {
    let data = framing.hasBody ? answer.body.data : nil
    var buffer = channel.allocator.buffer(capacity: 1024 + min(data?.count ?? 0, Self.pieceBytes))
    headWriter.write(answer.head, to: &buffer)
    guard framing.hasBody else {
      // To its end, where it has none: an answer is stored as it is read.
      if try await answer.body.source.next() != nil { answer.body.source.cancel() }
      return try await flush(buffer)
    }
    if let data, data.count <= Self.pieceBytes, case .length = framing {
      buffer.writeBytes(data)
      sent.bodyBytes = Int64(data.count)
      return try await flush(buffer)
    }
    channel.write(buffer, promise: nil)
    // When the first piece is there already, both go out at once; when it is not, the head does not wait for it.
    channel.eventLoop.execute { [channel] in channel.flush() }
    var next = try await answer.body.source.next()
    while let piece = next {
      let read = sent.bodyBytes + Int64(piece.count)
      // The end is read before the last byte leaves: whoever has seen the whole answer finds it stored.
      if framing == .length(read) { next = try await answer.body.source.next() }
      try await write(piece, &sent)
      if framing != .length(read) { next = try await answer.body.source.next() }
    }
    if case .length(let length) = framing, sent.bodyBytes != length {
      throw CacheError(.truncatedBody, reason: "the body ended after \(sent.bodyBytes) of \(length) bytes")
    }
    if framing == .chunked { try await flush(lastChunk(answer.body.source.trailers)) }
  }

  private func write(_ piece: Data, _ sent: inout Sent) async throws {
    if case .length(let length) = framing, sent.bodyBytes + Int64(piece.count) > length {
      throw CacheError(.malformedResponse, reason: "the body has more than the \(length) bytes that were announced")
    }
    var rest = piece[...]
    while !rest.isEmpty {
      let part = rest.prefix(Self.pieceBytes)
      rest = rest.dropFirst(part.count)
      var buffer = channel.allocator.buffer(capacity: part.count + 16)
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

  /// Returns when the socket can take more: at once, as long as little waits for the client.
  private func flush(_ buffer: ByteBuffer) async throws {
    guard channel.isActive else { throw CacheError.cancelled }
    channel.writeAndFlush(buffer, promise: nil)
    guard !channel.isWritable else { return }
    connection.value.awaitsClient(true)
    // Behind everything that waits.
    try await channel.writeAndFlush(ByteBuffer()).get()
    connection.value.awaitsClient(false)
  }
}
#endif
