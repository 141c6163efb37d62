#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The chunks of an animated PNG, parsed without decoding a frame (PNG, third edition, §4.9 and §11.3.2).
struct APNGFile {
  /// The treatment of a frame's area after the frame has been shown.
  enum Disposal: UInt8 { case keep, clear, restore }

  /// The way a frame is composed onto the canvas.
  enum Blending: UInt8 { case replace, over }

  struct Frame {
    /// The frame's area on the canvas.
    var rect: PixelRect
    var delay: Duration
    var disposal: Disposal
    var blending: Blending
    /// The ranges of the file that contain the frame's compressed pixels.
    var data: [Range<Int>] = []
  }

  /// The number of frames that the file declares.
  private(set) var frameCount = 0
  /// The number of plays; 0 means forever.
  private(set) var plays = 0
  private(set) var size = PixelSize(0, 0)
  /// The complete frames, in order.
  private(set) var frames: [Frame] = []
  /// The reason why frames are missing, or another defect; `nil` if the file is intact.
  private(set) var damage: String?

  /// The part of `IHDR` after the size: bit depth, color type and so on.
  private var headerRest: Range<Int> = 0..<0
  /// Chunks that apply to the pixels of all frames, such as the palette.
  private var shared: [Range<Int>] = []

  /// Returns `nil` if the file is a still image or not a PNG.
  ///
  /// - Parameter comparesSums: Whether a chunk with a wrong checksum is damage. Verification reads every byte, so
  ///   callers that need only the header pass `false`.
  init?(_ data: Data, comparesSums: Bool = true) {
    var reader = Reader(comparesSums: comparesSums)
    data.withUnsafeBytes { bytes in
      do throws(Reader.Damage) { try reader.read(bytes, &self) } catch { damage = error.reason }
    }
    guard frameCount > 0, !size.isEmpty else { return nil }
    if damage == nil, frames.count != frameCount {
      damage = "the file declares \(frameCount) frames and has \(frames.count)"
    }
  }

  /// Adds the properties of the animation to a header.
  func describe(in header: inout ImageHeader) {
    header.frameCount = frameCount
    guard header.isAnimated else { return }
    header.delays = (0..<frameCount).map { $0 < frames.count ? frames[$0].delay : ImageHeader.delay(.zero) }
    header.loopCount = plays == 0 ? nil : plays
  }

  /// Returns a frame as a standalone PNG.
  func png(of frame: Frame, in data: Data) -> Data {
    data.withUnsafeBytes { bytes in
      var file = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
      let size = frame.rect.size
      Self.append("IHDR", Self.number(size.width) + Self.number(size.height) + bytes[headerRest], to: &file)
      for chunk in shared { file.append(contentsOf: bytes[chunk]) }
      for part in frame.data { Self.append("IDAT", bytes[part], to: &file) }
      Self.append("IEND", [UInt8](), to: &file)
      return file
    }
  }

  private static func append(_ kind: String, _ content: some Collection<UInt8>, to file: inout Data) {
    var sum = CRC32()
    sum.add(kind.utf8)
    sum.add(content)
    file.append(contentsOf: number(content.count))
    file.append(contentsOf: kind.utf8)
    file.append(contentsOf: content)
    file.append(contentsOf: number(Int(sum.value)))
  }

  private static func number(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
}

extension APNGFile {
  /// A parser for the chunks.
  private struct Reader {
    struct Damage: Error { let reason: String }

    private static let sharedKinds: Set<String> = ["PLTE", "tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "sBIT", "cICP"]

    private let comparesSums: Bool
    /// The sequence number that the next animation chunk must have.
    private var sequence = 0
    private var current: Frame?
    private var isPastImageData = false

    init(comparesSums: Bool) { self.comparesSums = comparesSums }

    mutating func read(_ bytes: UnsafeRawBufferPointer, _ file: inout APNGFile) throws(Damage) {
      var next = 8
      while next + 12 <= bytes.count {
        let length = number(bytes, next)
        guard length <= bytes.count - next - 12 else { break }
        let (kind, content) = (next + 4..<next + 8, next + 8..<next + 8 + length)
        next = content.upperBound + 4
        let name = String(decoding: bytes[kind], as: UTF8.self)
        // The codec checks still images itself.
        if comparesSums, file.frameCount > 0, ["fcTL", "fdAT", "IDAT"].contains(name) {
          try check(bytes[kind.lowerBound..<content.upperBound], number(bytes, content.upperBound), name)
        }
        if name == "IEND" { return try end(&file) }
        try take(name, content, whole: kind.lowerBound - 4..<next, bytes, &file)
      }
      guard file.frameCount > 0 else { return }
      throw Damage(reason: "the file is truncated")
    }

    private func check(_ chunk: Slice<UnsafeRawBufferPointer>, _ stated: Int, _ name: String) throws(Damage) {
      var sum = CRC32()
      sum.add(UnsafeRawBufferPointer(rebasing: chunk))
      guard Int(sum.value) == stated else { throw Damage(reason: "the checksum of a chunk \(name) is wrong") }
    }

    private mutating func take(
      _ name: String, _ content: Range<Int>, whole: Range<Int>, _ bytes: UnsafeRawBufferPointer, _ file: inout APNGFile
    ) throws(Damage) {
      switch name {
      // The first one: the codec uses it, and the limits were checked against it.
      case "IHDR" where content.count == 13 && file.headerRest.isEmpty:
        file.size = PixelSize(number(bytes, content.lowerBound), number(bytes, content.lowerBound + 4))
        file.headerRest = content.lowerBound + 8..<content.upperBound
      case "acTL" where content.count == 8 && !isPastImageData && file.frameCount == 0:
        file.frameCount = number(bytes, content.lowerBound)
        file.plays = number(bytes, content.lowerBound + 4)
      case "IDAT":
        isPastImageData = true
        // Without a frame before it, `IDAT` is the default image for decoders without APNG support.
        current?.data.append(content)
      case "fcTL" where file.frameCount > 0:
        try end(&file)
        current = try frame(bytes, content, file.size)
      case "fdAT" where file.frameCount > 0:
        guard content.count >= 4, current != nil, isPastImageData else { throw Damage(reason: "pixel data without a frame") }
        try count(number(bytes, content.lowerBound))
        current?.data.append(content.lowerBound + 4..<content.upperBound)
      case _ where Self.sharedKinds.contains(name) && !isPastImageData: file.shared.append(whole)
      default: break
      }
    }

    private mutating func end(_ file: inout APNGFile) throws(Damage) {
      guard let frame = current else { return }
      guard !frame.data.isEmpty else { throw Damage(reason: "frame \(file.frames.count) has no pixels") }
      file.frames.append(frame)
      current = nil
    }

    /// Frames and their data chunks share one sequence.
    private mutating func count(_ stated: Int) throws(Damage) {
      guard stated == sequence else { throw Damage(reason: "part \(sequence) of the animation is missing") }
      sequence += 1
    }

    private mutating func frame(
      _ bytes: UnsafeRawBufferPointer, _ content: Range<Int>, _ canvas: PixelSize
    ) throws(Damage) -> Frame {
      let start = content.lowerBound
      guard content.count == 26, let disposal = Disposal(rawValue: bytes[start + 24]),
        let blending = Blending(rawValue: bytes[start + 25])
      else { throw Damage(reason: "a frame control chunk is invalid") }
      try count(number(bytes, start))
      let size = PixelSize(number(bytes, start + 4), number(bytes, start + 8))
      let rect = PixelRect(x: number(bytes, start + 12), y: number(bytes, start + 16), size: size)
      guard !size.isEmpty, rect.x + size.width <= canvas.width, rect.y + size.height <= canvas.height else {
        throw Damage(reason: "a frame of \(size) at \(rect.x), \(rect.y) does not fit the image of \(canvas)")
      }
      guard isPastImageData || size == canvas else { throw Damage(reason: "the first frame is smaller than the image") }
      let (time, parts) = (
        Int(bytes[start + 20]) << 8 | Int(bytes[start + 21]), Int(bytes[start + 22]) << 8 | Int(bytes[start + 23])
      )
      let delay = ImageHeader.delay(.seconds(time) / (parts == 0 ? 100 : parts))
      return Frame(rect: rect, delay: delay, disposal: disposal, blending: blending)
    }

    private func number(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
      Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
    }
  }
}

/// The checksum of PNG chunks (PNG, third edition, annex D).
struct CRC32 {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
  }

  private var state: UInt32 = 0xFFFF_FFFF

  mutating func add(_ bytes: some Sequence<UInt8>) {
    Self.table.withUnsafeBufferPointer { table in
      for byte in bytes { state = table[Int(UInt8(truncatingIfNeeded: state) ^ byte)] ^ state >> 8 }
    }
  }

  var value: UInt32 { ~state }
}
