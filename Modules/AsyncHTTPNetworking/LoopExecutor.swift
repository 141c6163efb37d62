#if AsyncHTTP
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// An event loop's thread as a place for tasks to run.
///
/// A load that runs where its answer's bytes arrive changes no threads between the head, the body and its own next step.
final class LoopExecutor: TaskExecutor {
  let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The event loops of the process's own group, by turns.
///
/// Only of that one: it never ends. A loop that has been shut down drops what it is given, and a task that waits for its turn
/// there would wait for ever.
final class LoopExecutors: Sendable {
  static let shared = LoopExecutors(MultiThreadedEventLoopGroup.singleton)

  private let executors: [LoopExecutor]
  private let turn = Atomic(0)

  private init(_ group: MultiThreadedEventLoopGroup) { executors = group.makeIterator().map { LoopExecutor($0) } }

  /// That of the loop which runs the caller, else the next one.
  func next() -> LoopExecutor {
    if let current = executors.first(where: { $0.eventLoop.inEventLoop }) { return current }
    return executors[turn.wrappingAdd(1, ordering: .relaxed).oldValue % executors.count]
  }
}
#endif
