#if Gateway
import NIOCore

/// Runs tasks on one event loop, so that a request is served by the thread that reads and writes its connection: no hop, and no
/// lock that two threads want.
final class EventLoopExecutor: TaskExecutor {
  private let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
#endif
