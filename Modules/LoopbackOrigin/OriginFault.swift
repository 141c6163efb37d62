#if Origin
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A fault in a response. Byte counts refer to body bytes, without chunk headers.
public enum OriginFault: Sendable, Hashable {
  /// The connection is closed in an orderly way before the first byte of the response.
  case closeBeforeHead
  /// The connection is closed in the middle of the header section, after the status line and half of the field bytes.
  case closeMidHead
  /// The connection is reset (RST) at the position of `closeMidHead`.
  case resetMidHead
  /// Header fields are sent without end, as fast as the client reads them.
  case endlessHead
  /// The head is sent one byte at a time, with the given pause after each. The body follows normally.
  case trickleHead(every: Duration)
  /// The body is sent one byte at a time, with the given pause after each. It is never silent and practically never complete.
  case trickle(every: Duration)
  /// The connection is closed after the given number of body bytes. With chunks it is closed in the middle of a chunk. The last
  /// chunk is never sent, even if the number covers the whole body.
  case cut(afterBodyBytes: Int)
  /// The connection is reset (RST) before the first byte of the response.
  case resetBeforeHead
  /// The connection is reset (RST) after the given number of body bytes. A reset discards bytes that the origin's kernel has not
  /// yet sent to the client. Use at most a few hundred KB.
  case reset(afterBodyBytes: Int)
  /// No byte is sent. The connection stays open until the client or `stop()` closes it.
  case stallBeforeHead
  /// No more bytes are sent after the given number of body bytes. The connection stays open.
  case stall(afterBodyBytes: Int)
  /// A chunk with an invalid size follows the given number of body bytes. Then the connection is closed. Chunks are used
  /// regardless of `framing`.
  case malformedChunk(afterBodyBytes: Int)
  /// The complete response is followed by these unannounced bytes. The connection stays open in an invalid state.
  case surplus(Data)
  /// The connection is closed after a complete response that promised to keep it open. The client's next request fails on it.
  case closeAfterwards
  /// Bytes that no HTTP parser accepts are sent instead of the response. Then the connection is closed.
  case garbage
  /// These bytes are sent instead of the response. If `thenCloses` is `false`, the connection stays open for the next request.
  case raw(Data, thenCloses: Bool = true)
}
#endif
