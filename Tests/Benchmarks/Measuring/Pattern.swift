import Foundation

/// Bytes that are the same in every run, that no compression could shorten, and that can be checked from any place on.
enum Pattern {
  /// A prime, so that a piece that is lost or doubled shows wherever it lies.
  static let period = 65_521

  /// One period.
  static let block: [UInt8] = {
    var dice = Dice(seed: 1)
    return (0..<period).map { _ in UInt8(truncatingIfNeeded: dice.next() >> 24) }
  }()

  /// The first bytes.
  static func bytes(_ count: Int) -> Data {
    var data = Data(capacity: count)
    while data.count < count { data.append(contentsOf: block.prefix(count - data.count)) }
    return data
  }

  /// Writes a file of so many bytes, unless it is there.
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

  /// Whether these are the bytes from `offset` on.
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

  /// Whether a file holds the first `count` bytes, and nothing more.
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

/// Seeded, so that a run can be had again (xorshift).
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
