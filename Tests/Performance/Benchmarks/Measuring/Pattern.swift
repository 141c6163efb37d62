import Foundation

/// Incompressible bytes that are the same in every run and can be checked from any offset.
enum Pattern {
  /// The period in bytes. It is a prime, so that a lost or repeated chunk is detected at any offset.
  static let period = 65_521

  /// The bytes of one period.
  static let block: [UInt8] = {
    var dice = Dice(seed: 1)
    return (0..<period).map { _ in UInt8(truncatingIfNeeded: dice.next() >> 24) }
  }()

  /// Returns the first `count` bytes.
  static func bytes(_ count: Int) -> Data {
    var data = Data(capacity: count)
    while data.count < count { data.append(contentsOf: block.prefix(count - data.count)) }
    return data
  }

  /// Writes a file of `count` bytes, unless a file of that size exists.
  static func write(_ count: Int, to file: URL) throws {
    if let size = try? FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int, size == count { return }
    let sink = try FileSink(file)
    var left = count
    while left > 0 {
      try block.prefix(left).withUnsafeBytes(sink.append)
      left -= min(left, period)
    }
    sink.finish()
  }

  /// Returns whether `bytes` are those from `offset` on.
  static func matches(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    block.withUnsafeBytes { block in
      guard let expected = block.baseAddress, let seen = bytes.baseAddress else { return bytes.isEmpty }
      var done = 0
      while done < bytes.count {
        let start = (offset + done) % period
        let count = min(period - start, bytes.count - done)
        guard memcmp(expected + start, seen + done, count) == 0 else { return false }
        done += count
      }
      return true
    }
  }

  /// Returns whether a file consists of exactly the first `count` bytes.
  static func matches(_ file: URL, count: Int) throws -> Bool {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    var offset = 0
    while let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty {
      guard piece.withUnsafeBytes({ matches($0, at: offset) }) else { return false }
      offset += piece.count
    }
    return offset == count
  }
}

/// A seeded random number generator (xorshift), so that runs are repeatable.
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 | 1 }

  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }
}
