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

  private let buffer: UnsafeMutableRawBufferPointer
  /// Bytes that could be read; fewer than were asked for where the file ends.
  let count: Int

  /// Reads `count` bytes from `offset` on.
  init(_ file: FileDescriptor, at offset: Int64, count: Int) throws(SystemError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    do throws(SystemError) {
      self.count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[0..<count]), at: offset)
      self.buffer = buffer
    } catch {
      buffer.deallocate()
      throw error
    }
  }

  deinit { buffer.deallocate() }

  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: buffer[0..<count]))
  }

  /// Bytes of the memory as `Data` that counts from zero; large ones are not copied.
  func data(_ range: Range<Int>) -> Data {
    guard !range.isEmpty, let start = buffer.baseAddress else { return Data() }
    if range.count <= Self.copyLimit { return Data(bytes: start + range.lowerBound, count: range.count) }
    return Data(
      bytesNoCopy: start + range.lowerBound, count: range.count, deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
  }
}
