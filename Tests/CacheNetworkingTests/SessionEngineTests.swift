#if Origin
import CacheCore
@testable import CacheNetworking
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Session engine", .timeLimit(.minutes(30))) struct SessionEngineTests {
  #if os(Linux)
  // In a process of its own: a session that is asked for a task after its end ends the process.
  @Test("a session's end waits for a task that is being made, and the session makes no task after it")
  func endWaits() async {
    await #expect(processExitsWith: .success) {
      let origin = try await OriginServer.start()
      let address = origin.url("/a")
      let ends = Recorder<Bool>()
      let engine = SessionEngine(
        configuration: .init(),
        observer: { event in
          if case .sessionEnded(let error) = event { ends.record(error == nil) }
        })

      let task = engine.whileOpen {
        engine.end()
        let task = engine.session.dataTask(with: URLRequest(url: address))
        task.resume()
        return task
      }

      guard task != nil, engine.whileOpen({ true }) == nil else { throw CacheError(.other, reason: "open at the wrong time") }
      await ends.wait(for: 1)
      await origin.stop()
    }
  }
  #endif
}
#endif
