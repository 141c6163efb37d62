import CacheCore
import Foundation

@testable import ImageCodecs

/// Fuzzes the code that examines an image file before a codec reads it. The last byte selects the code.
///
/// For any input, there must be a result or a reason in a short time, and no count or size that exceeds the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzImage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.popLast() else { return 0 }
  let data = Data(bytes)
  switch choice % 8 {
  case 0: describe(data)
  case 1: countFrames(data)
  case 2: _ = HEIFDimensions(data)
  case 3: _ = ICCProfile(bytes)?.name
  case 4: checkStyle(bytes)
  case 5: checkEmbedded(bytes)
  case 6: _ = (AV1Sequence(bytes)?.hasOwnSize(frame: bytes), HEVCSequence.size(bytes))
  default: checkDrawing(data)
  }
  return 0
}

private func describe(_ data: Data) {
  if let format = ImageFormat(of: data) { precondition(!format.name.isEmpty) }
  precondition(!ForeignContent(data).description.isEmpty)
}

private func countFrames(_ data: Data) {
  let gif = GIFFrames(data)
  precondition(gif.count <= data.count && gif.largest.width <= 65_535 && gif.largest.height <= 65_535)
  // More bytes must not lower the count, because a codec may read on.
  precondition(GIFFrames(data + Data([0])).count >= gif.count)
  precondition(WebPFrames.count(data) * 8 <= data.count)
  precondition(JPEGScans.count(data) * 2 <= data.count)
  precondition((0..<1 << 42).contains(JPEGCoefficients.byteCount(data)))
  precondition((0...5).contains(WebPPlanes.bytesPerPixel(data)))
  precondition(PNGFrames.count(data) <= Int(UInt32.max))
}

private func checkStyle(_ bytes: [UInt8]) {
  guard let target = StyleReferences.embedded(in: bytes) else { return }
  precondition(!target.isEmpty && target.count <= bytes.count)
}

private func checkEmbedded(_ bytes: [UInt8]) {
  guard let image = try? EmbeddedImage(Array("data:image/gif;base64,R0lGODlh".utf8)[...] + bytes) else { return }
  precondition(image.format == .gif && image.data.starts(with: "GIF89a".utf8) && image.data.count <= bytes.count + 8)
}

private func checkDrawing(_ data: Data) {
  let limits = ImageLimits {
    $0.pixels = 10_000
    $0.time = .seconds(4)
  }
  var imageCount = 0
  let outcome = Result { () throws(CacheError) in
    try SVGCheck.check(data, limits, DecodingDeadline(limits, .svg)) { image throws(CacheError) in
      precondition(ImageFormat(of: image) != nil)
      imageCount += 1
      return ImageHeader(format: .png, size: PixelSize(100, 10))
    }
  }
  switch outcome {
  case .success:
    precondition(imageCount <= 10)
  case .failure(let error):
    precondition(error.reason.hasPrefix("SVG: ") && !error.reason.contains("took longer"))
  }
}
