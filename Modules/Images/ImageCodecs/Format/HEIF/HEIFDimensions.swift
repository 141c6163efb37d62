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
