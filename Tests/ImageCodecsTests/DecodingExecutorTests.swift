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

  @Test("is as wide as the machine has cores, and never of no width")
  func cores() {
    #expect(DecodingExecutor().width >= 1)
    #expect(DecodingExecutor(width: 0).width == 1)
  }
}
