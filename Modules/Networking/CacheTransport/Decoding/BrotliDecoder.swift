#if ContentDecoding && canImport(Compression)
internal import CacheCore
internal import Compression
internal import Foundation

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
