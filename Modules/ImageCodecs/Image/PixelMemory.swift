#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A block of memory for pixels, released with its last reference.
// Proof of `@unchecked Sendable`: only the caller of the initializer writes the memory, before it shares the reference.
// After that, it is only read.
final class PixelMemory: @unchecked Sendable {
  let byteCount: Int
  private let start: UnsafeMutableRawPointer
  private let release: @Sendable (UnsafeMutableRawPointer) -> Void

  /// Allocates zeroed memory, to be released with `free`, or returns `nil`. Tests replace it to simulate exhausted
  /// memory.
  @TaskLocal static var allocate: @Sendable (Int) -> UnsafeMutableRawPointer? = { calloc(max($0, 1), 1) }

  /// Takes ownership of allocated memory.
  init(taking start: UnsafeMutableRawPointer, byteCount: Int, release: @escaping @Sendable (UnsafeMutableRawPointer) -> Void) {
    self.start = start
    self.byteCount = byteCount
    self.release = release
  }

  /// Allocates zeroed memory and calls `fill` to write it. Returns `nil` if there is not enough memory, because a trap
  /// would let an attacker stop the process.
  convenience init?(byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    guard let start = Self.allocate(byteCount) else { return nil }
    fill(UnsafeMutableRawBufferPointer(start: start, count: byteCount))
    self.init(taking: start, byteCount: byteCount) { free($0) }
  }

  deinit { release(start) }

  func withBytes<Result, Failure: Error>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: start, count: byteCount))
  }
}
