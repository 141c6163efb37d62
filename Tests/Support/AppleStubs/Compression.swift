// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Declarations of Compression.
//
// Source: Apple's documentation of compression_stream (iOS 18 SDK).
public struct compression_stream {
  public var dst_ptr: UnsafeMutablePointer<UInt8>
  public var dst_size: Int
  public var src_ptr: UnsafePointer<UInt8>
  public var src_size: Int
  public var state: UnsafeMutableRawPointer?
}

public struct compression_stream_operation: Equatable, Sendable { public let rawValue: UInt32 }
public struct compression_algorithm: Equatable, Sendable { public let rawValue: UInt32 }
public struct compression_status: Equatable, Sendable { public let rawValue: Int32 }

public let COMPRESSION_STREAM_DECODE = compression_stream_operation(rawValue: 1)
public let COMPRESSION_BROTLI = compression_algorithm(rawValue: 0xB02)
public let COMPRESSION_STATUS_OK = compression_status(rawValue: 0)
public let COMPRESSION_STATUS_ERROR = compression_status(rawValue: -1)
public let COMPRESSION_STATUS_END = compression_status(rawValue: 1)

public func compression_stream_init(
  _ stream: UnsafeMutablePointer<compression_stream>, _ operation: compression_stream_operation,
  _ algorithm: compression_algorithm
) -> compression_status { fatalError() }
public func compression_stream_process(
  _ stream: UnsafeMutablePointer<compression_stream>, _ flags: Int32
) -> compression_status { fatalError() }
@discardableResult
public func compression_stream_destroy(_ stream: UnsafeMutablePointer<compression_stream>) -> compression_status { fatalError() }
