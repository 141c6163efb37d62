#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The largest image that a HEIF file (AVIF, HEIC) can decode to, determined before a codec reads the file. Codecs have
/// fixed limits, which are not the caller's.
///
/// The boxes declare a size (ISO/IEC 23008-12 §6.5.3, `ispe`), but decoders use the sizes in the bitstreams and grids.
/// Therefore these are parsed too.
struct HEIFDimensions {
  private(set) var largest: PixelSize?
  /// Whether the file has more parts than any real image.
  private(set) var isExcessive = false
  /// The AV1 sequence headers outside the frames.
  private var sequences: [AV1Sequence] = []
  /// The remaining parsing budget in bytes. Each unit has a fixed cost in addition to its bytes.
  private var work: Int
  /// The time limit. After it, parsing stops.
  private let watch: DecodingDeadline?
  private var unitCount = 0

  init(_ data: Data, _ watch: DecodingDeadline? = nil) {
    work = data.count * 2 + 1_000_000
    self.watch = watch
    data.withUnsafeBytes { bytes in
      let boxes = HEIFBoxes(bytes: bytes)
      boxes.each(0..<bytes.count) { kind, content in
        // `meta` is a full box: a version and flags precede its boxes.
        if kind == "meta", content.count >= 4 { read(boxes, meta: content.dropFirst(4)) }
      }
    }
  }

  private mutating func read(_ boxes: HEIFBoxes, meta: Range<Int>) {
    boxes.each(meta) { kind, content in
      guard kind == "iprp" else { return }
      boxes.each(content) { kind, content in
        guard kind == "ipco" else { return }
        boxes.each(content) { kind, content in read(boxes, property: kind, content) }
      }
    }
    let items = HEIFItems(boxes, meta: meta)
    isExcessive = isExcessive || items.isExcessive
    for item in items.items {
      let length = item.extents.reduce(0) { $0 + $1.count }
      guard goOn(length) else { return }
      switch item.kind {
      case "av01": readAV1(bytes(boxes, item)[...])
      case "hvc1", "hev1": readHEVC(bytes(boxes, item))
      case "grid", "iovl": readDerived(item.kind, bytes(boxes, item))
      default: break
      }
    }
  }

  private func bytes(_ boxes: HEIFBoxes, _ item: HEIFItems.Item) -> [UInt8] {
    item.extents.reduce(into: []) { $0.append(contentsOf: boxes.bytes[$1]) }
  }

  private mutating func goOn(_ length: Int = 0) -> Bool {
    work -= length + 64
    unitCount += 1
    if unitCount % 256 == 0, watch?.end != nil { work = -1 }
    if work < 0 { isExcessive = true }
    return work >= 0
  }

  private mutating func take(_ size: PixelSize?) {
    if let size, size.area > largest?.area ?? -1 { largest = size }
  }

  private mutating func read(_ boxes: HEIFBoxes, property kind: String, _ content: Range<Int>) {
    let start = content.lowerBound
    switch kind {
    case "ispe" where content.count >= 12: take(PixelSize(boxes.number(start + 4, 4), boxes.number(start + 8, 4)))
    // The configuration starts after four bytes (AV1 Codec ISO Media File Format Binding §2.3.3).
    case "av1C" where content.count > 4: readAV1(Array(boxes.bytes[start + 4..<content.upperBound])[...], isApart: true)
    case "hvcC" where content.count > 23: readParameterSets(boxes, content)
    default: break
    }
  }

  /// Reads `grid` and `iovl`: images composed of other items (ISO/IEC 23008-12 §6.6.2).
  private mutating func readDerived(_ kind: String, _ bytes: [UInt8]) {
    guard bytes.count >= 2 else { return }
    var bits = BitReader(bytes)
    bits.skip(8)
    let width = bits.read(8) & 1 == 1 ? 32 : 16
    bits.skip(kind == "grid" ? 16 : 64)
    take(PixelSize(bits.read(width), bits.read(width)))
  }

  /// Reads open bitstream units (§5.3). Each has a header, and a length if another unit follows.
  private mutating func readAV1(_ bytes: ArraySlice<UInt8>, isApart: Bool = false) {
    var sequences = sequences
    var rest = bytes
    while let head = rest.first {
      guard goOn() else { return }
      rest = rest.dropFirst(head & 4 == 0 ? 1 : 2)
      var length = rest.count
      if head & 2 != 0 {
        var value = 0
        for index in 0..<8 {
          guard let byte = rest.popFirst() else { return }
          value |= Int(byte & 0x7F) << (7 * index)
          if byte & 0x80 == 0 { break }
        }
        length = min(value, rest.count)
      }
      let unit = rest.prefix(length)
      rest = rest.dropFirst(length)
      switch head >> 3 & 15 {
      case 1:
        guard let sequence = AV1Sequence(unit.prefix(1024)) else { continue }
        take(sequence.size)
        if isApart { keep(sequence) } else { sequences = [sequence] }
      case 3, 6:
        for sequence in sequences.prefix(16) where sequence.hasOwnSize(frame: unit.prefix(64)) { take(sequence.bound) }
      default: break
      }
    }
  }

  /// Records a sequence. Each frame is checked against each sequence, so their number is limited.
  private mutating func keep(_ sequence: AV1Sequence) {
    sequences.append(sequence)
    if sequences.count > 16 { isExcessive = true }
  }

  /// Reads length-prefixed NAL units.
  private mutating func readHEVC(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while rest.count > 4 {
      guard goOn() else { return }
      let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      take(HEVCSequence.size(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
  }

  /// Reads arrays of NAL units (ISO/IEC 14496-15 §8.3.2.1), which start after 22 bytes.
  private mutating func readParameterSets(_ boxes: HEIFBoxes, _ content: Range<Int>) {
    var next = content.lowerBound + 23
    for _ in 0..<boxes.number(content.lowerBound + 22, 1) {
      let count = boxes.number(next + 1, 2)
      next += 3
      for _ in 0..<count {
        guard next + 2 <= content.upperBound, goOn() else { return }
        let start = min(next + 2, content.upperBound)
        let end = min(start + boxes.number(next, 2), content.upperBound)
        take(HEVCSequence.size(boxes.bytes[start..<end]))
        next = end
      }
    }
  }
}

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

/// The frame sizes that an AV1 bitstream declares (AV1 Bitstream & Decoding Process Specification §5.5, §5.9).
struct AV1Sequence {
  /// The largest declared frame size.
  private(set) var size = PixelSize(0, 0)
  /// The largest size that a frame with an explicit size can have.
  private(set) var bound = PixelSize(0, 0)
  private var isReduced = false
  private var presentationTimeLength: Int?
  private var frameIDLength: Int?
  private var screenContentTools = 2
  private var integerMotionVectors = 2

  /// Parses `sequence_header_obu`. Returns `nil` if it is truncated.
  init?(_ bytes: some Sequence<UInt8>) {
    var bits = BitReader(bytes)
    bits.skip(4)
    isReduced = bits.flag()
    if isReduced { bits.skip(5) } else { readOperatingPoints(&bits) }
    let (widthBits, heightBits) = (bits.read(4) + 1, bits.read(4) + 1)
    size = PixelSize(bits.read(widthBits) + 1, bits.read(heightBits) + 1)
    bound = PixelSize(1 << widthBits, 1 << heightBits)
    if !isReduced, bits.flag() {
      let delta = bits.read(4) + 2
      frameIDLength = delta + bits.read(3) + 1
    }
    bits.skip(3)
    if !isReduced {
      bits.skip(4)
      if bits.flag() { bits.skip(2) }
      screenContentTools = bits.flag() ? 2 : bits.read(1)
      if screenContentTools > 0 { integerMotionVectors = bits.flag() ? 2 : bits.read(1) }
    }
    if bits.isOver { return nil }
  }

  private mutating func readOperatingPoints(_ bits: inout BitReader) {
    var delayLength: Int?
    if bits.flag() {
      bits.skip(64)
      let hasEqualIntervals = bits.flag()
      if hasEqualIntervals { _ = bits.readVariable() }
      if bits.flag() {
        delayLength = bits.read(5) + 1
        bits.skip(37)
        let length = bits.read(5) + 1
        if !hasEqualIntervals { presentationTimeLength = length }
      }
    }
    let hasDisplayDelay = bits.flag()
    for _ in 0...bits.read(5) {
      bits.skip(12)
      if bits.read(5) > 7 { bits.skip(1) }
      if let delayLength, bits.flag() { bits.skip(2 * delayLength + 1) }
      if hasDisplayDelay, bits.flag() { bits.skip(4) }
    }
  }

  /// Returns whether a frame has an explicit size. Parses the beginning of `uncompressed_header` up to that flag.
  func hasOwnSize(frame bytes: some Sequence<UInt8>) -> Bool {
    if isReduced { return false }
    var bits = BitReader(bytes)
    if bits.flag() { return false }
    let (kind, isShown) = (bits.read(2), bits.flag())
    if isShown, let presentationTimeLength { bits.skip(presentationTimeLength) }
    if !isShown { bits.skip(1) }
    let isSwitch = kind == 3
    if !isSwitch, !(kind == 0 && isShown) { bits.skip(1) }
    bits.skip(1)
    if screenContentTools == 2 ? bits.flag() : screenContentTools == 1, integerMotionVectors == 2 { bits.skip(1) }
    if let frameIDLength { bits.skip(frameIDLength) }
    return isSwitch || bits.flag()
  }
}

/// The frame size in an HEVC sequence parameter set (ITU-T H.265 §7.3.2.2).
enum HEVCSequence {
  /// - Parameter unit: A NAL unit.
  /// - Returns: `nil` if the unit is of another type or truncated.
  static func size(_ unit: some Collection<UInt8>) -> PixelSize? {
    // Type 33 in layer 0: no decoder used by this package reads further layers. Decoders ignore the first bit, which
    // must be 0.
    guard unit.count > 2, let first = unit.first, first >> 1 & 63 == 33, first & 1 == 0 else { return nil }
    var bits = BitReader(payload(unit.dropFirst(2)))
    bits.skip(4)
    let sublayers = bits.read(3)
    bits.skip(1 + 96)
    let flags = (0..<sublayers).map { _ in (hasProfile: bits.flag(), hasLevel: bits.flag()) }
    if sublayers > 0 { bits.skip(2 * (8 - sublayers)) }
    for flag in flags { bits.skip((flag.hasProfile ? 88 : 0) + (flag.hasLevel ? 8 : 0)) }
    _ = bits.readVariable()
    if bits.readVariable() == 3 { bits.skip(1) }
    let size = PixelSize(bits.readVariable(), bits.readVariable())
    return bits.isOver ? nil : size
  }

  /// Removes the emulation prevention bytes (§7.4.2).
  private static func payload(_ unit: some Sequence<UInt8>) -> [UInt8] {
    var (payload, zeros): ([UInt8], Int) = ([], 0)
    for byte in unit.prefix(256) {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      payload.append(byte)
    }
    return payload
  }
}

/// A reader for unsigned numbers of any bit count, most significant bit first. Beyond the end it returns zeros and sets
/// `isOver`.
struct BitReader {
  private let bytes: [UInt8]
  private var next = 0

  init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

  var isOver: Bool { next > bytes.count * 8 }

  mutating func read(_ count: Int) -> Int {
    var value = 0
    for _ in 0..<count {
      let byte = next / 8
      value = value << 1 | (byte < bytes.count ? Int(bytes[byte] >> UInt8(7 - next % 8)) & 1 : 0)
      next += 1
    }
    return value
  }

  mutating func flag() -> Bool { read(1) == 1 }

  mutating func skip(_ count: Int) { next += count }

  /// Reads a variable-length number whose leading zeros give its bit count: `uvlc` of AV1 (§4.10.3), `ue` of HEVC
  /// (§9.2).
  mutating func readVariable() -> Int {
    var zeros = 0
    while zeros < 32, !isOver, !flag() { zeros += 1 }
    return (1 << zeros) - 1 + read(zeros)
  }
}
