#if VIPS && os(Linux)
import CPlainVIPS
import Foundation
import ImageCodecs

/// The decoding of one image at the size of a thumbnail, alternating with libvips' function in one thread.
struct ThumbnailJob: Job {
  static let name = "thumbnail"

  enum Way: String, Codable, Hashable, Sendable, CaseIterable {
    case own = "ImageDecoder"
    case ownInFull = "ImageDecoder, full decode, then resize"
    case plainInFull = "libvips, full decode, then resize"
    case plainThreads = "libvips, one thread per core"
  }

  let way: Way
  let image: URL
  /// The size of the image in pixels.
  let width: Int
  let height: Int
  let batches: Int

  static let side = 400

  func run() async throws -> Measurement {
    let bytes = try Data(contentsOf: image)
    var measurement = Measurement()
    // Initializes libraries, threads and generated code. The scale is that of the measured image.
    _ = try ImageDecoder(size: .fit(40, 40)).decode(DrawnPhotograph.jpeg(PixelSize(400, 300)))
    let before = ProcessUsage.peakMemory
    try work(way, bytes, &measurement)
    if let before, let after = ProcessUsage.peakMemory { measurement.add(after - before, to: .peakMemory) }
    for _ in 0..<batches {
      let watch = Stopwatch()
      try work(way, bytes, &measurement)
      watch.stop(&measurement)
      let plainWatch = Stopwatch()
      check(plain(bytes, threads: 1), &measurement)
      measurement.add(plainWatch.wall, to: .raw)
      measurement.add(plainWatch.processor, to: .rawProcessor)
    }
    return measurement
  }

  private func work(_ way: Way, _ bytes: Data, _ measurement: inout Measurement) throws {
    switch way {
    case .own: check(try ImageDecoder(size: .fit(Self.side, Self.side)).decode(bytes).cost, &measurement)
    case .ownInFull:
      let full = try ImageDecoder().decode(bytes)
      measurement.check("bytes of pixels", full.cost, is: width * height * 3)
      check(try ImageProcessor.resize(.fit(Self.side, Self.side)).process(full).cost, &measurement)
    case .plainInFull: check(plain(bytes, threads: 1, inFull: true), &measurement)
    case .plainThreads:
      check(plain(bytes, threads: ProcessInfo.processInfo.activeProcessorCount), &measurement)
    }
  }

  private func check(_ count: Int, _ measurement: inout Measurement) {
    let size = ImageSizing.fit(Self.side, Self.side).size(of: PixelSize(width, height))
    measurement.check("bytes of pixels", count, is: size.area * 3)
  }

  private func plain(_ bytes: Data, threads: Int, inFull: Bool = false) -> Int {
    bytes.withUnsafeBytes {
      etagere_plain_vips_thumbnail($0.baseAddress, $0.count, Int32(Self.side), Int32(threads), inFull)
    }
  }
}
#endif
