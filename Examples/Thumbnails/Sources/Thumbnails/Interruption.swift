import Dispatch
import Foundation

/// The handling of SIGINT and SIGTERM, which cancel the run so that all files stay complete. A second signal ends the process.
enum Interruption {
  static func cancelling<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) async -> Value {
    let task = Task { await work() }
    let sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        signal(number, SIG_DFL)
        task.cancel()
      }
      source.resume()
      return source
    }
    let value = await task.value
    for source in sources { source.cancel() }
    return value
  }
}
