#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A finder of the scan ends of a progressive JPEG while its bytes arrive (ISO/IEC 10918-1, annexes B and G). It reads
/// each byte once.
struct ProgressiveScans {
  private enum State {
    /// Before the marker at the start of the file.
    case start(Int)
    /// Before a marker, and within a marker.
    case marker, kind
    /// Within the length of a segment, and within the segment.
    case length(UInt8), restOfLength(UInt8, Int), segment(UInt8, Int)
    /// Within entropy-coded data, and after a byte in it that may begin a marker.
    case numbers, escape(Int)
  }

  private var state = State.start(0)
  private var position = 0
  private var isProgressive = false

  /// The number of bytes up to the end of the last complete scan that another scan follows, or 0.
  private(set) var end = 0
  /// Whether there is nothing more to find: the file is complete, damaged, or not a progressive JPEG.
  private(set) var isOver = false

  mutating func take(_ chunk: Data) {
    chunk.withUnsafeBytes { bytes in
      var next = 0
      while next < bytes.count, !isOver {
        switch state {
        case .segment(let kind, let rest):
          let skipped = min(rest, bytes.count - next)
          next += skipped
          state = skipped < rest ? .segment(kind, rest - skipped) : behind(kind)
        case .numbers:
          let found = bytes[next...].firstIndex(of: 0xFF)
          if let found { state = .escape(position + found) }
          next = found.map { $0 + 1 } ?? bytes.count
        default:
          step(bytes[next])
          next += 1
        }
      }
      position += bytes.count
    }
  }

  private mutating func step(_ byte: UInt8) {
    switch state {
    case .start(let index):
      guard byte == [0xFF, 0xD8][index] else { return isOver = true }
      state = index == 0 ? .start(1) : .marker
    case .marker:
      guard byte == 0xFF else { return isOver = true }
      state = .kind
    case .kind: begin(byte)
    case .length(let kind): state = .restOfLength(kind, Int(byte) << 8)
    case .restOfLength(let kind, let high):
      let length = high | Int(byte)
      guard length >= 2 else { return isOver = true }
      state = length == 2 ? behind(kind) : .segment(kind, length - 2)
    case .escape(let start):
      switch byte {
      case 0x00, 0xD0...0xD7: state = .numbers
      case 0xFF: break
      case 0xD9: isOver = true
      default:
        end = start
        begin(byte)
      }
    case .segment, .numbers: break
    }
  }

  private mutating func begin(_ kind: UInt8) {
    switch kind {
    case 0xFF: break
    case 0x01, 0xD0...0xD7: state = .marker
    case 0x00, 0xD8, 0xD9: isOver = true
    // The frame header declares the coding. Sequential files have one scan, and no codec reads the other variants.
    case 0xC0, 0xC1, 0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF: isOver = true
    default:
      if kind == 0xC2 { isProgressive = true }
      state = .length(kind)
    }
  }

  private mutating func behind(_ kind: UInt8) -> State {
    guard kind == 0xDA else { return .marker }
    if !isProgressive { isOver = true }
    return .numbers
  }
}
