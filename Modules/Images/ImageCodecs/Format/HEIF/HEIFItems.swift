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

/// The items of a HEIF file, with their types and the ranges of their bytes (ISO/IEC 14496-12 §8.11).
struct HEIFItems {
  struct Item {
    let kind: String
    let extents: [Range<Int>]
  }

  private(set) var items: [Item] = []
  /// Whether the file has more extents than any real image. Parsing stops at the limit.
  private(set) var isExcessive = false
  private static let most = 100_000

  /// - Parameter meta: The content of the `meta` box, without version and flags.
  init(_ boxes: HEIFBoxes, meta: Range<Int>) {
    // If a box occurs twice, some decoders use the first and some the last, so all occurrences are read.
    var kinds: [Int: Set<String>] = [:]
    var (tables, data): ([Range<Int>], [Range<Int>]) = ([], [])
    boxes.each(meta) { kind, content in
      switch kind {
      case "iinf":
        // A version, flags and a count of 16 or 32 bits.
        let start = min(content.lowerBound + (boxes.number(content.lowerBound, 1) == 0 ? 6 : 8), content.upperBound)
        boxes.each(start..<content.upperBound) { kind, entry in
          let version = boxes.number(entry.lowerBound, 1)
          guard kind == "infe", version >= 2, entry.count >= 12 else { return }
          let width = version == 2 ? 2 : 4
          let place = entry.lowerBound + 4 + width + 2
          guard place + 4 <= entry.upperBound else { return }
          let kind = String(decoding: boxes.bytes[place..<place + 4], as: UTF8.self)
          kinds[boxes.number(entry.lowerBound + 4, width), default: []].insert(kind)
        }
      case "iloc": tables.append(content)
      case "idat": data.append(content)
      default: break
      }
    }
    guard tables.count * data.count <= 16 else {
      isExcessive = true
      return
    }
    for table in tables {
      for data in data.isEmpty ? [0..<0] : data { locate(boxes, table, kinds, data) }
    }
  }

  private mutating func locate(_ boxes: HEIFBoxes, _ table: Range<Int>, _ kinds: [Int: Set<String>], _ data: Range<Int>) {
    let version = boxes.number(table.lowerBound, 1)
    let sizes = boxes.number(table.lowerBound + 4, 2)
    let (offsetSize, lengthSize, baseSize) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
    let indexSize = version == 0 ? 0 : sizes & 15
    let wide = version < 2 ? 2 : 4
    var next = table.lowerBound + 6
    func take(_ count: Int) -> Int {
      defer { next += count }
      return boxes.number(next, min(count, 8))
    }
    var (left, extentCount) = (take(wide), 0)
    while left > 0, next < table.upperBound {
      left -= 1
      let id = take(wide)
      let method = version == 0 ? 0 : take(2) & 15
      _ = take(2)
      let base = take(baseSize)
      let source = method == 1 ? data : 0..<boxes.bytes.count
      var extents: [Range<Int>] = []
      for _ in 0..<take(2) {
        extentCount += 1
        guard extentCount <= Self.most else {
          isExcessive = true
          return
        }
        _ = take(indexSize)
        let (offset, length) = (take(offsetSize), take(lengthSize))
        let (sum, overflows) = base.addingReportingOverflow(offset)
        guard !overflows, sum < source.count else { continue }
        let start = source.lowerBound + sum
        // Length 0 means everything to the end.
        extents.append(start..<start + min(length == 0 ? .max : length, source.upperBound - start))
      }
      if method < 2 { for kind in kinds[id] ?? [] { items.append(Item(kind: kind, extents: extents)) } }
    }
  }
}
