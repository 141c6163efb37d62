#if Redis
internal import CHiredis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// hiredis's reader of replies. It is used on one event loop.
final class ReplyReader {
  /// hiredis moves the rest of its buffer after each reply, so the buffer is kept small.
  private static let slice = 16_384
  /// The maximum size in bytes of an incomplete reply. The largest replies are lists of metadata.
  private static let sizeLimit = 256 << 20

  private let reader: UnsafeMutablePointer<redisReader>

  init() throws(CacheError) {
    guard let reader = redisReaderCreate() else {
      throw CacheError(.storeUnavailable, reason: "cannot allocate a reader for Redis replies")
    }
    // By default, hiredis frees a buffer of more than 16 KiB whenever it is empty.
    reader.pointee.maxbuf = 0
    self.reader = reader
  }

  deinit { redisReaderFree(reader) }

  /// Passes received bytes to the reader and calls `receive` with each complete reply.
  ///
  /// - Throws: `CacheError.Code.storeUnavailable` if the bytes are not RESP.
  func feed(_ bytes: UnsafeRawBufferPointer, _ receive: (RESPValue) -> Void) throws(CacheError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let slice = UnsafeRawBufferPointer(rebasing: rest.prefix(Self.slice))
      rest = rest.dropFirst(Self.slice)
      guard redisReaderFeed(reader, slice.baseAddress?.assumingMemoryBound(to: CChar.self), slice.count) == REDIS_OK,
        reader.pointee.len <= Self.sizeLimit
      else { throw failure() }
      while true {
        var reply: UnsafeMutableRawPointer?
        guard redisReaderGetReply(reader, &reply) == REDIS_OK else { throw failure() }
        guard let reply else { break }
        let value = Self.value(reply.assumingMemoryBound(to: redisReply.self))
        freeReplyObject(reply)
        receive(value)
      }
    }
  }

  private func failure() -> CacheError {
    let reason = withUnsafeBytes(of: reader.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let cause = reason.isEmpty ? "a reply is too large" : reason
    return CacheError(.storeUnavailable, reason: "the server does not speak the Redis protocol: \(cause)")
  }

  /// Converts a reply. The bytes of a bulk string are taken over instead of copied.
  private static func value(_ reply: UnsafeMutablePointer<redisReply>) -> RESPValue {
    switch reply.pointee.type {
    case REDIS_REPLY_STRING:
      let count = Int(reply.pointee.len)
      guard count > 0, let bytes = reply.pointee.str else { return .bytes(Data()) }
      // freeReplyObject ignores a null pointer.
      reply.pointee.str = nil
      return .bytes(Data(bytesNoCopy: bytes, count: count, deallocator: .free))
    case REDIS_REPLY_STATUS: return .status(text(reply))
    case REDIS_REPLY_ERROR: return .error(text(reply))
    case REDIS_REPLY_INTEGER: return .integer(Int64(reply.pointee.integer))
    case REDIS_REPLY_ARRAY:
      var values: [RESPValue] = []
      values.reserveCapacity(Int(reply.pointee.elements))
      for index in 0..<Int(reply.pointee.elements) {
        values.append(reply.pointee.element[index].map(value) ?? .null)
      }
      return .array(values)
    default: return .null
    }
  }

  private static func text(_ reply: UnsafeMutablePointer<redisReply>) -> String {
    String(decoding: UnsafeRawBufferPointer(start: reply.pointee.str, count: Int(reply.pointee.len)), as: UTF8.self)
  }
}
#endif
