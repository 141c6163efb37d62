#if Thumbnails
import Dispatch
import Foundation

/// SIGINT and SIGTERM as a cancel: what is under way ends in good order. A second one ends the process, as ever.
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
#endif
