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

/// Bytes of a file, in memory that was not cleared before it was read into.
// Proof of `@unchecked Sendable`: the memory is written by `init` alone and read only afterwards.
final class FileMemory: @unchecked Sendable {
  /// Copying so few bytes is cheaper than keeping their surroundings.
  private static let copyLimit = 4096

  private let start: UnsafeMutableRawPointer
  /// Bytes that could be read; fewer than were asked for where the file ends.
  let count: Int

  /// Reads `count` bytes from `offset` on.
  init(_ file: FileDescriptor, at offset: Int64, count: Int) throws(SystemError) {
    // Not by Swift's own allocation, which takes a slower way for a stated alignment.
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

  /// Bytes of the memory as `Data` that counts from zero; large ones are not copied.
  func data(_ range: Range<Int>) -> Data {
    guard !range.isEmpty else { return Data() }
    if range.count <= Self.copyLimit { return Data(bytes: start + range.lowerBound, count: range.count) }
    return Data(
      bytesNoCopy: start + range.lowerBound, count: range.count, deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
  }
}
