import CacheCore
import ImageCodecs
import Testing

@Suite("The place where pictures are decoded")
struct DecodingExecutorTests {
  /// What has happened, and in which order.
  private final class Log: Sendable {
    private let state = Lock((running: 0, most: 0, order: [Int]()))

    var most: Int { state.withLock { $0.most } }
    var order: [Int] { state.withLock { $0.order } }

    func begin() {
      state.withLock {
        $0.running += 1
        $0.most = max($0.most, $0.running)
      }
    }

    func end(_ number: Int) {
      state.withLock {
        $0.running -= 1
        $0.order.append(number)
      }
    }
  }

  private func run(_ count: Int, on executor: DecodingExecutor) async -> Log {
    let log = Log()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask(executorPreference: executor) { @concurrent @Sendable in
          log.begin()
          for _ in 0..<1000 { _ = log.most }
          log.end(number)
        }
      }
    }
    return log
  }

  @Test("runs as many pieces of work at once as it is wide, and all of them in the end", arguments: [1, 3])
  func width(width: Int) async {
    let log = await run(200, on: DecodingExecutor(width: width))
    #expect(Set(log.order) == Set(0..<200))
    #expect(log.most <= width)
  }

  @Test("begins work in the order in which it came")
  func order() async {
    #expect(await run(200, on: DecodingExecutor(width: 1)).order == Array(0..<200))
  }

  #if canImport(ImageIO) || VIPS
  /// A library below that shares something without a lock ends the process here.
  @Test("makes pictures on many threads at once, each as it would be alone")
  func pictures() async throws {
    let (image, sizes) = (Pictures.quarters(), (0..<35).map { PixelSize(20 + $0 % 7, 17 + $0 % 5) })
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

  private let executors = (0..<4).map { _ in DecodingExecutor(width: 2) }
  #endif

  @Test("is as wide as the machine has cores, and never of no width")
  func cores() {
    #expect(DecodingExecutor().width >= 1)
    #expect(DecodingExecutor(width: 0).width == 1)
  }
}
