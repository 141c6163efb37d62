#if AsyncHTTP
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A task executor that runs on the thread of an event loop.
///
/// A load that runs on the event loop of its connection changes no threads between the head, the body and its next step.
final class LoopExecutor: TaskExecutor {
  let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The executors of the process's shared event loop group, in rotation.
///
/// Only the shared group is used, because it is never shut down. A loop that was shut down drops its jobs, so a task on it would
/// never continue.
final class LoopExecutors: Sendable {
  static let shared = LoopExecutors(MultiThreadedEventLoopGroup.singleton)

  private let executors: [LoopExecutor]
  private let turn = Atomic(0)

  private init(_ group: MultiThreadedEventLoopGroup) { executors = group.makeIterator().map { LoopExecutor($0) } }

  /// Returns the executor of the current event loop, or the next one if the caller runs on none.
  func next() -> LoopExecutor {
    if let current = executors.first(where: { $0.eventLoop.inEventLoop }) { return current }
    return executors[turn.wrappingAdd(1, ordering: .relaxed).oldValue % executors.count]
  }
}
#endif
