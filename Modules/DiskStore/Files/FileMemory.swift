#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Bytes of a file, in memory that was not zeroed before the read.
// Proof of `@unchecked Sendable`: only `init` writes the memory, and afterwards it is only read.
final class FileMemory: @unchecked Sendable {
  /// The size up to which copying is cheaper than retaining the whole memory.
  private static let copyLimit = 4096

  private let start: UnsafeMutableRawPointer
  /// The number of bytes that could be read, which is less than requested at the end of the file.
  let count: Int

  /// Reads `count` bytes from `offset` on.
  init(_ file: FileDescriptor, at offset: Int64, count: Int) throws(SystemError) {
    // `malloc`, because Swift's own allocation is slower with a stated alignment.
    guard let start = malloc(max(count, 1)) else { throw .outOfMemory }
    do throws(SystemError) {
      self.count = try file.read(into: UnsafeMutableRawBufferPointer(start: start, count: count), at: offset)
      self.start = start
    } catch {
      free(start)
      throw error
    }
  }

  deinit { free(start) }

  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Returns a range of the memory as `Data` with indices from zero. Large ranges are not copied.
  func data(_ range: Range<Int>) -> Data {
    guard !range.isEmpty else { return Data() }
    if range.count <= Self.copyLimit { return Data(bytes: start + range.lowerBound, count: range.count) }
    return Data(
      bytesNoCopy: start + range.lowerBound, count: range.count, deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
  }
}
