/// The boxes of a HEIF file (ISO/IEC 14496-12 §4.2), read in place.
struct HEIFBoxes {
  let bytes: UnsafeRawBufferPointer

  /// Calls `body` with the type and content of each consecutive box in a range.
  func each(_ range: Range<Int>, _ body: (String, Range<Int>) -> Void) {
    var start = range.lowerBound
    while start + 8 <= range.upperBound {
      var (length, head) = (number(start, 4), 8)
      // Length 0: to the end of the range. Length 1: a 64-bit length follows the type.
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

  /// Reads a big-endian number. Bytes beyond the end are zero. An eight-byte number that does not fit is `Int.max`.
  func number(_ start: Int, _ count: Int) -> Int {
    var value: UInt64 = 0
    for index in start..<start + count { value = value << 8 | (index < bytes.count ? UInt64(bytes[index]) : 0) }
    return Int(clamping: value)
  }
}
