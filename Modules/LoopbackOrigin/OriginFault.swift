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
    /// Bytes that no HTTP parser accepts come instead of the answer, then the connection is closed.
    case garbage
    /// These bytes come instead of the answer, as they are. With `thenCloses` false the connection stays open for the next
    /// request.
    case raw(Data, thenCloses: Bool = true)
  }
#endif
