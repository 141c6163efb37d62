#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Previews of a JPEG during its transfer")
struct ImagePreviewerTests {
  private let progressive: Data
  private let baseline: Data

  init() throws {
    var random = SplitMix(state: 3)
    let size = PixelSize(160, 120)
    let pixels = try #require(
      PixelBuffer(size: size, channels: .rgb) { bytes in
        for index in bytes.indices { bytes[index] = UInt8(clamping: index / 3 % 160 + Int.random(in: 0..<60, using: &random)) }
      })
    var encoder = ImageEncoder(.jpeg, quality: 90)
    baseline = try encoder.encode(DecodedImage(pixels))
    encoder.isProgressive = true
    progressive = try encoder.encode(DecodedImage(pixels))
  }

  private func chunks(_ data: Data, of size: Int) -> [Data] {
    stride(from: 0, to: data.count, by: size).map { data.subdata(in: $0..<min($0 + size, data.count)) }
  }

  /// Returns the ends of the scans in the order in which they are found.
  private func ends(_ data: Data, chunk: Int) -> [Int] {
    var (scans, ends) = (ProgressiveScans(), [Int]())
    for chunk in chunks(data, of: chunk) {
      scans.take(chunk)
      if scans.end > 0, ends.last != scans.end { ends.append(scans.end) }
    }
    return ends
  }

  @Test("scan ends do not depend on the chunk size")
  func scans() {
    let each = ends(progressive, chunk: 1)
    #expect(each.count >= 4)
    for end in each { #expect(progressive[end] == 0xFF && ![0x00, 0xD9].contains(progressive[end + 1])) }
    for size in [2, 3, 7, 64, 1_000] { #expect(Set(ends(progressive, chunk: size)).isSubset(of: each)) }
    #expect(ends(progressive, chunk: progressive.count) == [each[each.count - 1]])
    #expect(ends(baseline, chunk: 1).isEmpty)
    #expect(ends(Data("<html>".utf8), chunk: 1).isEmpty)
  }

  @Test("damage never traps")
  func damage() {
    var random = SplitMix(state: 11)
    for _ in 0..<300 {
      var data = progressive.prefix(Int.random(in: 0...progressive.count, using: &random))
      for _ in 0..<3 where !data.isEmpty {
        data[Int.random(in: 0..<data.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      var scans = ProgressiveScans()
      for chunk in chunks(Data(data), of: 333) { scans.take(chunk) }
      #expect(scans.end <= data.count)
    }
  }

  /// An executor that runs its jobs on demand.
  private final class HeldExecutor: TaskExecutor {
    private let jobs = Lock<[UnownedJob]>([])

    var count: Int { jobs.withLock { $0.count } }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      jobs.withLock { $0.append(job) }
    }

    func run() {
      let waiting = jobs.withLock { jobs in
        defer { jobs = [] }
        return jobs
      }
      for job in waiting { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }

  private func previewer(
    _ executor: HeldExecutor, _ shown: @escaping @Sendable (DecodedImage) -> Void,
    _ change: (inout ImagePreviews) -> Void = { _ in }
  ) -> ImagePreviewer {
    ImagePreviewer(.resize(.fit(40, 40)), previews: ImagePreviews(change), executor: executor, show: shown)
  }

  @Test("only the last of the scans that arrive during decoding is used, and previews become finer")
  func backPressure() throws {
    let executor = HeldExecutor()
    let shown = Lock<[DecodedImage]>([])
    let previewer = previewer(executor) { image in shown.withLock { $0.append(image) } }
    let all = chunks(progressive, of: 50)
    for chunk in all.dropLast(2) {
      previewer.take(chunk)
      #expect(executor.count <= 1)
    }
    executor.run()
    #expect(shown.withLock { $0.count } == 1 && executor.count == 1)
    executor.run()
    #expect(executor.count == 0)

    let images = shown.withLock { $0 }
    #expect(images.count == 2)
    #expect(images.allSatisfy { $0.isPartial && $0.size == PixelSize(40, 30) && $0.header.size == PixelSize(160, 120) })
    let whole = try ImageDecoder(size: .fit(40, 40)).decode(progressive)
    let distances = images.map { image in
      zip(image.pixels.bytes, whole.pixels.bytes).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
    }
    #expect(distances[0] > distances[1])
  }

  @Test("the number of previews is limited, and large or sequential images have none")
  func bounds() {
    let shown = Lock(0)
    func count(_ data: Data, _ change: (inout ImagePreviews) -> Void) -> Int {
      shown.withLock { $0 = 0 }
      let executor = HeldExecutor()
      let previewer = previewer(executor, { _ in shown.withLock { $0 += 1 } }, change)
      for chunk in chunks(data, of: 50) {
        previewer.take(chunk)
        executor.run()
      }
      return shown.withLock { $0 }
    }
    #expect(count(progressive) { $0.maximum = 100 } >= 4)
    #expect(count(progressive) { $0.maximum = 2 } == 2)
    #expect(count(progressive) { $0.maximum = 0 } == 0)
    #expect(count(progressive) { $0.pixels = 160 * 120 - 1 } == 0)
    #expect(count(baseline) { _ in } == 0)
  }

  @Test("a stopped previewer shows nothing, and a restart discards the bytes")
  func stopped() {
    let executor = HeldExecutor()
    let shown = Lock(0)
    let previewer = previewer(executor) { _ in shown.withLock { $0 += 1 } }
    previewer.take(progressive.dropLast(2))
    previewer.restart()
    executor.run()
    #expect(shown.withLock { $0 } == 0)
    previewer.take(progressive.dropLast(2))
    executor.run()
    #expect(shown.withLock { $0 } == 1)
    previewer.restart()
    previewer.take(progressive.dropLast(2))
    previewer.stop()
    executor.run()
    previewer.take(progressive)
    #expect(executor.count == 0 && shown.withLock { $0 } == 1)
  }
}
#endif
