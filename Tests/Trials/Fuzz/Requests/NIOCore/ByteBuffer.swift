// The part of NIOCore that the parser of requests uses. The target is thus built in seconds, and without other projects' code.
// The parser's unit tests use NIOCore itself.

/// Bytes with a position up to which they have been read. Views have the indices of the buffer, as those of NIOCore do.
public struct ByteBuffer: Sendable {
  private var bytes: [UInt8]
  public private(set) var readerIndex = 0

  public init(bytes: [UInt8] = []) { self.bytes = bytes }

  public var readableBytes: Int { bytes.count - readerIndex }

  public var readableBytesView: ArraySlice<UInt8> { bytes[readerIndex...] }

  public mutating func moveReaderIndex(to index: Int) {
    precondition((0...bytes.count).contains(index))
    readerIndex = index
  }

  public mutating func moveReaderIndex(forwardBy count: Int) { moveReaderIndex(to: readerIndex + count) }

  public mutating func readBytes(length: Int) -> [UInt8]? {
    precondition(length >= 0)
    guard length <= readableBytes else { return nil }
    defer { readerIndex += length }
    return Array(bytes[readerIndex..<readerIndex + length])
  }

  public mutating func readSlice(length: Int) -> ByteBuffer? { readBytes(length: length).map { ByteBuffer(bytes: $0) } }

  public func getInteger<Number: FixedWidthInteger>(at index: Int, as type: Number.Type = Number.self) -> Number? {
    let size = MemoryLayout<Number>.size
    guard index >= readerIndex, index + size <= bytes.count else { return nil }
    return bytes[index..<index + size].reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  public mutating func writeImmutableBuffer(_ other: ByteBuffer) { bytes += other.readableBytesView }

  public func withUnsafeReadableBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[readerIndex...])) }
  }
}
