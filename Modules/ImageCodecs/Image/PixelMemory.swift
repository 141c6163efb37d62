#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A block of memory that holds a picture's bytes, given back when nobody has it any more.
// Proof of `@unchecked Sendable`: written by the initialiser's caller alone, before anybody else has it, and only read from then
// on.
final class PixelMemory: @unchecked Sendable {
  let byteCount: Int
  private let start: UnsafeMutableRawPointer
  private let release: @Sendable (UnsafeMutableRawPointer) -> Void

  /// Where memory comes from, as zeros, to be given back with `free`; nil where there is none. Tests put an end to it.
  @TaskLocal static var allocate: @Sendable (Int) -> UnsafeMutableRawPointer? = { calloc(max($0, 1), 1) }

  /// Takes memory over that somebody else has allocated.
  init(taking start: UnsafeMutableRawPointer, byteCount: Int, release: @escaping @Sendable (UnsafeMutableRawPointer) -> Void) {
    self.start = start
    self.byteCount = byteCount
    self.release = release
  }

  /// Zeros, for `fill` to write over. Nil where there is no room: a trap would be the attacker's.
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
