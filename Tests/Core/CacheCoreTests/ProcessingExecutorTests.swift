import CacheCore
import Dispatch
import Testing

@Suite("The processing executor")
struct ProcessingExecutorTests {
  /// A log of the number of running jobs and their order.
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

  private func run(_ count: Int, on executor: ProcessingExecutor) async -> Log {
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

  @Test("the executor runs at most its width of jobs at once, and completes all of them", arguments: [1, 3])
  func width(width: Int) async {
    let log = await run(200, on: ProcessingExecutor(width: width))
    #expect(Set(log.order) == Set(0..<200))
    #expect(log.most <= width)
  }

  @Test("the executor starts jobs in the order in which they arrive")
  func order() async {
    #expect(await run(200, on: ProcessingExecutor(width: 1)).order == Array(0..<200))
  }

  @Test("the executor runs jobs on a given queue, in the order of the queue")
  func queue() async {
    let serial = ProcessingExecutor(queue: DispatchQueue(label: "serial"))
    let log = await run(200, on: serial)
    #expect(log.order == Array(0..<200) && log.most == 1)
  }

  @Test("an executor may be released by the last task that it runs, also while another thread is adding a job")
  func release() async {
    for _ in 0..<10_000 {
      let tasks = releasingTasks()
      for task in tasks { await task.value }
    }
  }

  /// Starts two tasks on one executor, and returns without a reference to it.
  private func releasingTasks() -> [Task<Void, Never>] {
    let executor = ProcessingExecutor(width: 4)
    return (0..<2).map { _ in
      Task.detached { await withTaskExecutorPreference(executor) { await Task.yield() } }
    }
  }

  @Test("computations on all threads of the executor leave the cooperative pool free")
  func separation() async {
    let executor = ProcessingExecutor()
    let state = Lock((running: 0, isOver: false))
    let bound = ContinuousClock.now + .seconds(600)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<executor.width {
        group.addTask(executorPreference: executor) { @concurrent @Sendable in
          state.withLock { $0.running += 1 }
          // Only a failure reaches the bound.
          while !state.withLock({ $0.isOver }), ContinuousClock.now < bound {}
        }
      }
      group.addTask { @concurrent @Sendable in
        while state.withLock({ $0.running }) < executor.width { await Task.yield() }
        for _ in 0..<10 { await Task.detached {}.value }
        state.withLock { $0.isOver = true }
      }
    }
    #expect(ContinuousClock.now < bound)
  }

  @Test("the width defaults to the number of cores and is at least 1")
  func cores() {
    #expect(ProcessingExecutor().width >= 1)
    #expect(ProcessingExecutor(width: 0).width == 1)
  }
}
