/// A HEIF file's boxes (ISO/IEC 14496-12 §4.2), where they are.
struct HEIFBoxes {
  let bytes: UnsafeRawBufferPointer

  /// The boxes that stand one behind the other in a part of the file, by kind and content.
  func each(_ range: Range<Int>, _ body: (String, Range<Int>) -> Void) {
    var start = range.lowerBound
    while start + 8 <= range.upperBound {
      var (length, head) = (number(start, 4), 8)
      // 0: to the end. 1: in 64 bits, behind the kind.
      if length == 0 { length = range.upperBound - start }
      if length == 1 {
        (length, head) = (number(start + 8, 8), 16)
        guard start + 16 <= range.upperBound else { return }
      }
      guard length >= head else { return }
      let end = length > range.upperBound - start ? range.upperBound : start + length
      let kind = String(decoding: bytes[start + 4..<start + 8], as: UTF8.self)
      body(kind, start + head..<end)
      start = end
    }
  }

  /// A number of some bytes, the highest first; zeros stand behind the end. One of eight bytes that is too large is the largest.
  func number(_ start: Int, _ count: Int) -> Int {
    var value: UInt64 = 0
    for index in start..<start + count { value = value << 8 | (index < bytes.count ? UInt64(bytes[index]) : 0) }
    return Int(clamping: value)
  }
}
