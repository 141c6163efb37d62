#if Origin
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What goes wrong with an answer. Byte counts are of body bytes: chunk heads are not counted.
public enum OriginFault: Sendable, Hashable {
  /// The connection is closed in good order before a byte of the answer.
  case closeBeforeHead
  /// The connection is closed in the middle of the header section, after the status line and half of the fields' bytes.
  case closeMidHead
  /// The connection is reset (RST) in the middle of the header section, where `closeMidHead` closes it.
  case resetMidHead
  /// Header fields follow one another for ever, as fast as the client reads them.
  case endlessHead
  /// The head comes one byte at a time, each after that pause; the body follows as it should.
  case trickleHead(every: Duration)
  /// The body comes one byte at a time, each after that pause: never silent, and as good as never done.
  case trickle(every: Duration)
  /// The connection is closed after so many body bytes. With chunks it ends in mid-chunk, and the last chunk is never sent,
  /// even when the number covers the whole body.
  case cut(afterBodyBytes: Int)
  /// The connection is reset (RST) before a byte of the answer.
  case resetBeforeHead
  /// The connection is reset (RST) after so many body bytes. A reset drops what the client's full receive window still kept in
  /// the kernel of the origin, so keep the number below a few hundred KB.
  case reset(afterBodyBytes: Int)
  /// No byte is ever sent; the connection stays open until the client, or `stop()`, ends it.
  case stallBeforeHead
  /// Nothing more is sent after so many body bytes; the connection stays open.
  case stall(afterBodyBytes: Int)
  /// After so many body bytes, in chunks whatever `framing` says, comes a chunk whose size is no number; then the connection is
  /// closed.
  case malformedChunk(afterBodyBytes: Int)
  /// The answer is whole, and these bytes follow it that nobody announced. The connection stays open, spoiled.
  case surplus(Data)
  /// The answer is whole and promises that the connection stays open; it is closed all the same. The client's next request meets
  /// it, or its end.
  case closeAfterwards
  /// Bytes that no HTTP parser accepts come instead of the answer, then the connection is closed.
  case garbage
  /// These bytes come instead of the answer, as they are. With `thenCloses` false the connection stays open for the next
  /// request.
  case raw(Data, thenCloses: Bool = true)
}
#endif
