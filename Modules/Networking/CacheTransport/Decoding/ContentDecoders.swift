#if ContentDecoding
internal import CEtagereZlib
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The decoder for gzip (RFC 1952) and deflate, based on zlib. Deflate data may be RFC 1950 or the raw RFC 1951 that some servers
/// send.
///
/// zlib verifies the checks of the formats: CRC-32 and length of each gzip member, Adler-32 of a zlib stream.
final class Inflater: ContentDecoder {
  enum Format { case gzip, deflate }

  private enum Phase {
    /// Too few bytes have arrived to distinguish a zlib stream from a raw one.
    case unread
    case inside
    /// A stream has ended. Another gzip member may follow (RFC 1952 §2.2).
    case ended
  }

  private let format: Format
  /// Heap memory, because zlib stores the address and compares it.
  private let stream: UnsafeMutablePointer<z_stream>
  private var phase = Phase.unread
  private var isOpen = false

  init(_ format: Format) {
    self.format = format
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
  }

  deinit {
    if isOpen { inflateEnd(stream) }
    stream.deinitialize(count: 1)
    stream.deallocate()
  }

  var isComplete: Bool { phase == .ended }

  func decode(_ input: inout Data) throws(CacheError) -> Data {
    while true {
      switch phase {
      case .unread:
        guard try open(by: input) else { return Data() }
        phase = .inside
      case .ended:
        guard try enterNext(&input) else { return Data() }
      case .inside:
        let output = try inflate(&input)
        // A stream ended without output. Another one may follow in the same bytes.
        if !output.isEmpty || phase == .inside { return output }
      }
    }
  }

  /// Detects the format by the first bytes and opens the stream.
  ///
  /// - Returns: Whether there were enough bytes.
  private func open(by input: Data) throws(CacheError) -> Bool {
    guard input.count >= (format == .gzip ? 1 : 2) else { return false }
    let windowBits: Int32
    switch format {
    case .gzip: windowBits = MAX_WBITS + 16
    case .deflate:
      let (first, second) = (input[input.startIndex], input[input.startIndex + 1])
      // RFC 1950 §2.2: method 8, a window of at most 32 KiB, and a checksum of both bytes.
      let isWrapped = first & 0x0f == 8 && first >> 4 <= 7 && (UInt16(first) << 8 | UInt16(second)) % 31 == 0
      windowBits = isWrapped ? MAX_WBITS : -MAX_WBITS
    }
    // The expansion of a macro that Swift cannot import. It compares the header's version and size with the library's.
    guard inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw CacheError(.other, reason: "cannot initialize zlib: \(message)")
    }
    isOpen = true
    return true
  }

  /// Handles the bytes after the end of a stream: none, padding or another member.
  private func enterNext(_ input: inout Data) throws(CacheError) -> Bool {
    let rest = input.drop { $0 == 0 }
    guard let first = rest.first else {
      input = Data()
      return false
    }
    guard format == .gzip, first == 0x1f else {
      throw CacheError(.damagedContentCoding, reason: "extra bytes after the body's \(format) coding")
    }
    input = rest
    guard inflateReset(stream) == Z_OK else { throw damaged }
    phase = .inside
    return true
  }

  private func inflate(_ input: inout Data) throws(CacheError) -> Data {
    // Uninitialized memory: zeroing it would cost as much as many of the steps.
    var output = Data()
    var taken = 0
    var code = Z_OK
    let capacity = DecodingLimits.step
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { buffer in
      input.withUnsafeBytes { bytes in
        // zlib only reads from the input, although the pointer type is mutable.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(clamping: bytes.count)
        let offered = stream.pointee.avail_in
        stream.pointee.next_out = buffer.baseAddress
        stream.pointee.avail_out = UInt32(capacity)
        code = CEtagereZlib.inflate(stream, Z_NO_FLUSH)
        taken = Int(offered - stream.pointee.avail_in)
        output = Data(buffer[..<(capacity - Int(stream.pointee.avail_out))])
        (stream.pointee.next_in, stream.pointee.next_out) = (nil, nil)
      }
    }
    input = input.dropFirst(taken)
    switch code {
    case Z_STREAM_END: phase = .ended
    // Z_BUF_ERROR: no progress was possible, so more input is needed.
    case Z_OK, Z_BUF_ERROR: break
    default: throw damaged
    }
    return output
  }

  private var message: String { stream.pointee.msg.map { String(cString: $0) } ?? "no reason given" }

  private var damaged: CacheError {
    CacheError(.damagedContentCoding, reason: "the body's \(format) coding is damaged: \(message)")
  }
}

/// A decoder for one content coding that works in steps. It is not safe for concurrent use.
protocol ContentDecoder: AnyObject {
  /// Decodes at most ``DecodingLimits/step`` bytes and removes the consumed bytes from `input`.
  ///
  /// - Returns: The decoded bytes, empty if all of `input` was consumed without further output.
  /// - Throws: `CacheError.Code.damagedContentCoding`.
  func decode(_ input: inout Data) throws(CacheError) -> Data

  /// Whether the encoded data may end at this point.
  var isComplete: Bool { get }
}

#if canImport(Compression)
internal import Compression

/// The decoder for br (RFC 7932), based on Apple's Compression framework.
final class BrotliDecoder: ContentDecoder {
  private let stream: UnsafeMutablePointer<compression_stream>
  private let output: UnsafeMutablePointer<UInt8>
  private let isOpen: Bool
  private(set) var isComplete = false

  init() {
    stream = .allocate(capacity: 1)
    output = .allocate(capacity: DecodingLimits.step)
    isOpen = compression_stream_init(stream, COMPRESSION_STREAM_DECODE, COMPRESSION_BROTLI) == COMPRESSION_STATUS_OK
  }

  deinit {
    if isOpen { compression_stream_destroy(stream) }
    output.deallocate()
    stream.deallocate()
  }

  func decode(_ input: inout Data) throws(CacheError) -> Data {
    guard isOpen else { throw CacheError(.other, reason: "cannot initialize the system's br decoder") }
    guard !isComplete else {
      guard input.allSatisfy({ $0 == 0 }) else {
        throw CacheError(.damagedContentCoding, reason: "extra bytes after the body's br coding")
      }
      input = Data()
      return Data()
    }
    var status = COMPRESSION_STATUS_OK
    var taken = 0
    stream.pointee.dst_ptr = output
    stream.pointee.dst_size = DecodingLimits.step
    input.withUnsafeBytes { bytes in
      // The framework requires a pointer even for an empty input.
      stream.pointee.src_ptr = bytes.bindMemory(to: UInt8.self).baseAddress ?? UnsafePointer(output)
      stream.pointee.src_size = bytes.count
      status = compression_stream_process(stream, 0)
      taken = bytes.count - stream.pointee.src_size
    }
    let produced = DecodingLimits.step - stream.pointee.dst_size
    input = input.dropFirst(taken)
    switch status {
    case COMPRESSION_STATUS_END: isComplete = true
    case COMPRESSION_STATUS_OK: break
    default: throw CacheError(.damagedContentCoding, reason: "the body's br coding is damaged")
    }
    let decoded = Data(bytes: output, count: produced)
    // The stream ended without output. The rest of the input is checked here, because callers stop after an empty step.
    return decoded.isEmpty && isComplete && !input.isEmpty ? try decode(&input) : decoded
  }
}
#endif
#endif
