import CacheTesting
import Foundation

/// A kind of damage to a file, by a faulty disk or an attacker.
enum Damage: String, CaseIterable, Sendable {
  case flip = "one bit"
  case flips = "several bits"
  case burst = "a run of bytes"
  case cut = "truncated"
  case extended = "extended"
  case zeroed = "a page of zeros"
  case emptied = "emptied"
  case foreign = "another file's content"

  /// Returns a random kind, usually one that disks cause.
  static func random(_ generator: inout SplitMix) -> Damage {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<40: .flip
    case 40..<60: .flips
    case 60..<68: .burst
    case 68..<80: .cut
    case 80..<88: .extended
    case 88..<96: .zeroed
    case 96..<98: .emptied
    default: .foreign
    }
  }

  /// Damages the file at `path` in place.
  ///
  /// - Parameter other: A file whose content may replace it.
  func apply(to path: String, other: String, _ generator: inout SplitMix) throws {
    let file = open(path, O_RDWR | O_CLOEXEC)
    try require(file >= 0, "cannot open \(path) to damage it: \(errno)")
    defer { close(file) }
    var status = stat()
    try require(fstat(file, &status) == 0, "cannot examine \(path)")
    let size = Int(status.st_size)
    switch self {
    case .flip: try Self.flip(file, size, &generator)
    case .flips: for _ in 0..<Int.random(in: 2...64, using: &generator) { try Self.flip(file, size, &generator) }
    case .burst:
      guard size > 0 else { return }
      let start = Self.place(size, &generator)
      let bytes = (0..<min(size - start, Int.random(in: 1...600, using: &generator))).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      try Self.write(bytes, file, at: start)
    case .cut: try require(ftruncate(file, off_t(size > 0 ? Self.place(size, &generator) : 0)) == 0, "cannot truncate \(path)")
    case .extended:
      let isZero = Bool.random(using: &generator)
      let bytes = (0..<Int.random(in: 1...5_000, using: &generator)).map { _ in
        isZero ? 0 : UInt8.random(in: 0...255, using: &generator)
      }
      try Self.write(bytes, file, at: size)
    case .zeroed:
      let start = size > 0 ? Int.random(in: 0..<size, using: &generator) / 4096 * 4096 : 0
      try Self.write([UInt8](repeating: 0, count: min(4096, size - start)), file, at: start)
    case .emptied: try require(ftruncate(file, 0) == 0, "cannot empty \(path)")
    case .foreign:
      let bytes = FileManager.default.contents(atPath: other).map { Array($0) } ?? []
      try require(ftruncate(file, 0) == 0, "cannot empty \(path)")
      try Self.write(bytes, file, at: 0)
    }
  }

  /// Returns an offset in a file, often near its ends, where the descriptions of the other parts are.
  private static func place(_ size: Int, _ generator: inout SplitMix) -> Int {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: Int.random(in: 0..<min(size, 192), using: &generator)
    case 1: size - 1 - Int.random(in: 0..<min(size, 2_048), using: &generator)
    default: Int.random(in: 0..<size, using: &generator)
    }
  }

  private static func flip(_ file: Int32, _ size: Int, _ generator: inout SplitMix) throws {
    guard size > 0 else { return }
    let place = place(size, &generator)
    var byte: UInt8 = 0
    try require(pread(file, &byte, 1, off_t(place)) == 1, "cannot read the byte to damage")
    try write([byte ^ 1 << UInt8.random(in: 0..<8, using: &generator)], file, at: place)
  }

  private static func write(_ bytes: [UInt8], _ file: Int32, at place: Int) throws {
    let count = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(place)) }
    try require(count == bytes.count, "cannot write the damage")
  }
}
