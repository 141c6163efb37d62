#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

@Suite("Concurrent processing")
struct ConcurrentProcessingTests {
  private let executors = (0..<4).map { _ in ProcessingExecutor(width: 2) }

  /// If a library shares state without a lock, the process crashes here.
  @Test("images processed on many threads equal those processed on one")
  func images() async throws {
    let (image, sizes) = (TestImages.quarters(), (0..<35).map { PixelSize(20 + $0 % 7, 17 + $0 % 5) })
    let alone = try sizes.map { try ImageProcessor.resize(.exact($0.width, $0.height)).process(image).pixels.bytes }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4_000 {
        let executor = executors[number % executors.count]
        group.addTask(executorPreference: executor) { @concurrent @Sendable in
          let size = sizes[number % sizes.count]
          let pixels = try ImageProcessor.resize(.exact(size.width, size.height)).process(image).pixels
          #expect(pixels.bytes == alone[number % sizes.count])
        }
      }
      try await group.waitForAll()
    }
  }
}
#endif
